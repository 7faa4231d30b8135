"""The training rewards of a sweep: smoothed as the paper smooths them, and held against the largest population."""

import csv
import json

import pytest

from broadreach.experiments.sweep import SweepPlan
from broadreach.experiments.sweep_curves import write_curves


def finished(folder, rewards):
    """What of a finished run the curves are read from."""
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps({"reward_mean": one}) + "\n" for one in rewards))
    (folder / "DONE").write_text("")


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_populations_are_held_against_the_largest_of_the_same_settings_and_seed(tmp_path):
    grid = (("es.population", ("8", "16")), ("es.sigma", ("0.01", "0.02")))
    plan = SweepPlan(("demo",), (), grid, (0,), tmp_path)
    finished(plan.run(("8", "0.01"), 0), [0.5, 0.5, 0.5])
    finished(plan.run(("16", "0.01"), 0), [0.505, 0.505, 0.505])
    finished(plan.run(("8", "0.02"), 0), [0.2, 0.6, 0.6])
    finished(plan.run(("16", "0.02"), 0), [0.4, 0.4, 0.4])
    curves, table = write_curves(plan)
    rows = {(row["es.sigma"], row["es.population"]): row for row in read(table)}
    assert len(rows) == 4
    assert rows["0.01", "8"]["adequate_share"] == "1" and rows["0.01", "8"]["adequate_from"] == "1"
    # sigma 0.02: smoothed 0.2, 0.4010, 0.4680 against 0.4: short at the first update only
    assert rows["0.02", "8"]["adequate_from"] == "2" and float(rows["0.02", "8"]["adequate_share"]) == pytest.approx(
        2 / 3, abs=1e-4
    )
    lines = [row for row in read(curves) if row["es.population"] == "8" and row["es.sigma"] == "0.02"]
    assert [float(row["smoothed"]) for row in lines] == pytest.approx([0.2, 0.40101, 0.46800], abs=1e-4)


def test_unfinished_runs_are_left_out_and_one_population_has_no_reference(tmp_path):
    plan = SweepPlan(("demo",), (), (("es.sigma", ("0.01", "0.02")),), (0,), tmp_path)
    finished(plan.run(("0.01",), 0), [0.1, 0.2])
    plan.run(("0.02",), 0).mkdir(parents=True)
    written = write_curves(plan)
    assert [path.name for path in written] == ["curves.csv"]
    assert {row["es.sigma"] for row in read(written[0])} == {"0.01"}
