"""The paper's items without training: published numbers, claims from rows, plans, costs."""

import csv
import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from broadreach.es.shaping import centred_ranks
from broadreach.evaluation.published import FOLDER, published_rows
from broadreach.experiments.catalogue import resolve
from broadreach.experiments.cells import Cell, Job
from broadreach.experiments.paper import table_06, table_13
from broadreach.experiments.paper.catalogue import ITEMS, find
from broadreach.experiments.paper.cost import costs
from broadreach.experiments.paper.parts import PARTS, cells_for
from broadreach.experiments.paper.plan import PaperPlan
from broadreach.experiments.paper.scale import LAPTOP, PAPER, SCALES, Population, get_scale
from broadreach.experiments.paper.stamps import Stamping, Stamps
from broadreach.experiments.paper.taus import is_published, study_taus
from broadreach.experiments.paper.variants import plan_variants
from broadreach.report.paper_files import read_about, read_items
from broadreach.report.paper_page import write_paper_page
from broadreach.types import UserError

SHARED = Path(__file__).parents[2].parent / "shared" / "paper"


def test_every_table_and_figure_of_the_paper_is_an_item():
    numbered = {f"table-{n}" for n in range(2, 14)} | {f"figure-{n}" for n in range(1, 7)}
    assert numbered | {"largest-updates", "precision", "settings", "theory", "paths", "continual"} == set(ITEMS)
    assert all(item.id == name and set(item.needs) <= set(PARTS) for name, item in ITEMS.items())


def test_every_published_number_is_shown_once():
    shown = {name: len(item.published()) for name, item in ITEMS.items()}
    assert shown["table-2"] + shown["table-3"] + shown["table-5"] == len(published_rows("passk.csv"))
    assert shown["table-7"] + shown["table-8"] + shown["table-9"] == len(published_rows("majk.csv"))
    assert shown["table-6"] == len(published_rows("population.csv"))
    assert shown["table-10"] == len(published_rows("heldout_change.csv"))
    assert shown["table-13"] == 4 * len(published_rows("estimator.csv"))
    thresholds = published_rows("threshold.csv")
    printed = sum(2 + bool(row["delta_points"]) for row in thresholds)
    assert shown["table-11"] + shown["table-12"] == printed
    assert shown["figure-4"] == len(thresholds)
    for name, item in ITEMS.items():
        places = [(one.panel, one.row, one.column, one.x) for one in item.published()]
        assert len(set(places)) == len(places), name


def test_a_published_number_stands_where_the_table_has_it():
    row = next(r for r in published_rows("passk.csv") if (r["method"], r["task"], r["k"]) == ("es", "gsm8k", "32"))
    entry = next(
        one
        for one in ITEMS["table-2"].published()
        if (one.panel, one.row, one.column) == (f"{row['model']}, gsm8k", "ES", "Pass@32")
    )
    assert entry.value == float(row["value"])


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared folder with the published tables is not here")
def test_the_packaged_tables_are_the_published_ones():
    for path in FOLDER.glob("*.csv"):
        assert path.read_bytes() == (SHARED / path.name).read_bytes(), path.name


def test_names_are_found_or_the_nearest_is_offered():
    assert [item.id for item in find(["table-4", "theory", "table-4"])] == ["table-4", "theory"]
    assert len(find(["all"])) == len(ITEMS)
    with pytest.raises(UserError, match=r"no item named tabel-4: did you mean table-4\?"):
        find(["tabel-4"])
    with pytest.raises(UserError, match=r"--scale laptp: did you mean laptop\? scales are laptop, workstation, paper"):
        get_scale("laptp")


@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
def test_every_recipe_of_every_scale_resolves_and_is_costed(scale, tmp_path):
    plan = PaperPlan(scale, tmp_path)
    for study in scale.studies:
        for method in ("train.method=es", "train.method=grpo"):
            config = resolve((study.recipe,), (*study.overrides, method))
            assert config.eval.samples == 32
    found = costs(PARTS, plan)
    assert [one.part for one in found] == list(PARTS)
    assert all(one.operations > 0 for one in found if one.responses)


def test_the_published_runs_are_counted_as_the_paper_counts_them(tmp_path):
    """Easy: 234 updates of 2,048 (ES) and 512 (GRPO) responses; the compositions train one half each of both."""
    easy = next(one for one in costs(["easy"], PaperPlan(PAPER, tmp_path)))
    asked = (1319 + 1221 + 7405 + 1000 + 198 + 257) * 32
    training = 234 * (2048 + 512) * 1.5
    seeds, models = 3, 3
    assert easy.responses == models * (seeds * training + (1 + 4 * seeds) * asked)


def test_cells_come_in_order_of_need_and_once(tmp_path):
    plan = PaperPlan(LAPTOP, tmp_path)
    cells = cells_for(["easy", "easy weights", "easy threshold", "theory", "easy"], plan)
    names = [cell.name for cell in cells]
    assert len(set(names)) == len(names)
    for cell in cells:
        assert all(names.index(name) < names.index(cell.name) for name in cell.after), cell.name
    report = cells[-1]
    assert report.name == "easy:report" and "easy:es-seed0-threshold" in report.after
    assert set(cells_for(["easy"], plan)[-1].after) == {f"easy:{m}-seed{s}" for m in METHODS for s in (0, 1, 2)}


METHODS = ("es", "grpo", "es-grpo", "grpo-es")


def test_thresholds_keep_their_place_in_the_random_walk(tmp_path):
    """alpha sqrt(T / N) of the demo is 0.006 sqrt(40 / 32); of the paper 2.5e-4 sqrt(234 / 32)."""
    laptop, paper = PaperPlan(LAPTOP, tmp_path), PaperPlan(PAPER, tmp_path)
    taus = study_taus(laptop, LAPTOP.studies[0])
    ratio = 0.006 * math.sqrt(40 / 32) / (2.5e-4 * math.sqrt(234 / 32))
    np.testing.assert_allclose(taus, [ratio * tau for tau in (2.5e-4, 5e-4, 1e-3, 1.5e-3, 2e-3)], rtol=1e-12)
    assert not is_published(laptop, LAPTOP.studies[0])
    hard = study_taus(laptop, LAPTOP.hard[0])
    spread = 0.006 * math.sqrt(40 / 32)
    noise = [math.erf(tau / (spread * math.sqrt(2))) for tau in hard]
    # of 630 updates: 1e-3 is 0.90 of what noise moves a coordinate by, where DeepSeek's printed sparsity is 62.18 %
    assert len(noise) == 7 and noise[2] == pytest.approx(0.6327, abs=1e-4)
    assert study_taus(paper, PAPER.studies[0]) == (2.5e-4, 5e-4, 1e-3, 1.5e-3, 2e-3)
    assert study_taus(paper, PAPER.hard[0])[-1] == 3e-3


def test_variants_take_steps_of_the_same_expected_length(tmp_path):
    """alpha / sqrt(N) times the root mean square weight of a direction, for distinct rewards."""
    plan = PaperPlan(LAPTOP, tmp_path)
    base = resolve(("demo",))
    ranks = next(one for one in plan_variants(plan) if one.name == "ranks")
    config = resolve(("demo",), ranks.overrides)
    rewards = np.random.default_rng(0).permutation(base.es.population) / 7
    spread = centred_ranks(rewards.tolist()).std()
    assert config.es.alpha * spread == pytest.approx(base.es.alpha, rel=1e-5)
    two = resolve(("demo",), next(one for one in plan_variants(plan) if one.name == "two-point").overrides)
    assert two.es.evaluations == base.es.evaluations and two.es.population == base.es.population // 2


def test_an_adequate_population_is_judged_by_its_interval():
    population = Population("p", "demo", (32, 64), (0, 1, 2), (1, 2))
    reference = np.full((3, 2), 0.5)
    close, far = reference - 0.005, reference - 0.02
    mixed = reference - np.array([[0.0], [0.0], [0.05]])
    for curves, verdict in ((close, "confirmed"), (far, "refuted"), (mixed, "undecided")):
        assert table_06._claim("m", {32: curves, 64: reference}, population).verdict == verdict
    one = table_06._claim("m", {32: close[:1], 64: reference[:1]}, population)
    assert one.verdict == "undecided" and "one seed" in one.evidence


def test_subtraction_is_judged_by_kappa_and_its_interval():
    def row(objective, low, value, high, sigma="0.02"):
        ends = {"kappa_pair": value, "kappa_pair_low": low, "kappa_pair_high": high}
        return {"objective": objective, "coupling": "common_seed", "sigma": sigma, **ends}

    rows = [
        row("regenerated_reward", "1.2", "1.9", "2.3"),
        row("regenerated_reward", "0.2", "0.5", "0.7", sigma="0.001"),  # smaller sigma: not judged
        row("grpo_surrogate", "0.1", "0.2", "0.3"),
        row("policy_sequence_loss", "0.8", "0.9", "1.1"),
        row("mean_token_log_probability", "", "", ""),
    ]
    verdicts = [claim.verdict for claim in table_13._claims(rows)]
    assert verdicts == ["confirmed", "confirmed", "undecided", "undecided"]


class Silent:
    def started(self, cell, job):
        pass

    def event(self, cell, job, event):
        pass

    def ended(self, cell, failure):
        pass


def test_a_stamp_holds_until_the_command_or_an_input_changes(tmp_path):
    stamps = Stamps(tmp_path / "done")
    first = Cell("a:x", (Job("training", ("train", "demo")),))
    second = Cell("a:y", (Job("measuring", ("analyze", "drift", "r")),), ("a:x",))
    watcher = Stamping(stamps, Silent())
    assert stamps.unfinished([first, second]) == [first, second]
    for cell in (first, second):
        watcher.started(cell, cell.jobs[0])
        watcher.ended(cell, None)
    assert stamps.unfinished([first, second]) == []
    assert set(stamps.seconds()) == {"a:x", "a:y"}
    changed = dataclasses.replace(first, jobs=(Job("training", ("train", "demo", "--set", "seed=1")),))
    assert stamps.unfinished([changed, second]) == [changed, second]
    watcher = Stamping(stamps, Silent())
    watcher.started(first, first.jobs[0])
    watcher.ended(first, "failed")  # must run again, and what was made from it too
    assert stamps.unfinished([first, second]) == [first, second]
    watcher.ended(first, None)
    assert stamps.unfinished([first, second]) == [second]


def test_the_tables_of_the_package_are_readable_csv():
    for path in FOLDER.glob("*.csv"):
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        assert len({len(row) for row in rows}) == 1, path.name


def test_the_committed_results_draw_the_page(tmp_path):
    """docs/results/paper holds every item, and its CSV files alone make the page."""
    folder = Path(__file__).parents[2] / "docs" / "results" / "paper"
    items = read_items(folder, [item.blank() for item in ITEMS.values()])
    assert all(any(entry.origin == "ours" for entry in item.entries) for item in items)
    about = read_about(folder)
    assert about["commit"] and about["command"] == ["broadreach paper run all --scale laptop"]
    assert write_paper_page(items, about, tmp_path).stat().st_size > 500_000
