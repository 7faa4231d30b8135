"""`broadreach paper` for real, on the bundled model and at a scale so small that it takes a minute."""

import csv
import json

import pytest
from typer.testing import CliRunner

from broadreach.cli import app
from broadreach.experiments.paper import scale as scales
from broadreach.experiments.paper.catalogue import find
from broadreach.experiments.paper.collect import collect_into
from broadreach.experiments.paper.plan import PaperPlan, held
from broadreach.experiments.paper.scale import Population, Scale, Study
from broadreach.types import UserError

SMALL = (
    "train.updates=2",
    "train.batch=4",
    "es.population=4",
    "grpo.group_size=4",
    "grpo.mini_batch=0",
    "sampling.max_new_tokens=12",
    "eval.problems=3",
    "eval.samples=4",
    "eval.curve_at=[1,2]",
    "eval.curve_problems=2",
    "eval.curve_samples=4",
)
TINY = Scale(
    name="tiny",
    words="a test",
    studies=(Study("easy", "easy", "demo", "nano", (0,), SMALL),),
    populations=(Population("population", "demo", (2, 4), (0,), (1, 2), SMALL),),
    settings_seeds=(0,),
    estimator_model="nano",
    estimator_task="nano-chain",
    estimator_sigmas="0.01",
    continual_tasks=("nano-chain", "nano-countdown"),
    theory_steps="1",
    theory_sizes=("--members", "2", "--samples", "4", "--problems", "2", "--centre-samples", "16", "--gradients", "1"),
    gpu_memory=0,
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The items of one tiny run."""
    folder = tmp_path_factory.mktemp("paper")
    patch = pytest.MonkeyPatch()
    patch.setitem(scales.SCALES, "tiny", TINY)
    wanted = ["table-2", "table-4", "table-6", "table-11", "figure-2", "figure-3", "figure-5", "largest-updates"]
    answer = CliRunner().invoke(app, ["paper", "run", *wanted, "--scale", "tiny", "--out", str(folder)])
    assert answer.exit_code == 0, answer.output
    yield folder, answer.output
    patch.undo()


def rows(folder, item):
    with open(folder / "items" / f"{item}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_item_that_was_asked_for_has_our_numbers(place):
    folder, said = place
    table = rows(folder, "table-2")
    assert {row["row"] for row in table} == {"Base", "ES", "GRPO", "ES→GRPO", "GRPO→ES"}
    assert {row["panel"] for row in table} >= {"nano, nano-chain", "nano, nano-choice", "nano, Average, all tasks"}
    assert all(row["origin"] == "ours" for row in table)
    assert {row["row"] for row in rows(folder, "table-4")} >= {"ES", "GRPO", "ES / GRPO", "noise alone (ES)"}
    assert {row["column"] for row in rows(folder, "table-6")} >= {"N = 2", "N = 4", "N = 2 minus N = 4"}
    assert {row["x"] for row in rows(folder, "figure-5")} == {"1", "2"}
    assert {row["column"] for row in rows(folder, "figure-2")} >= {"token entropy", "Pass@1"}
    shares = [float(row["value"]) for row in rows(folder, "largest-updates") if row["column"] == "ES, of the top 100"]
    assert sum(shares) == pytest.approx(100)
    assert "4c" in said and "7c" in said


def test_a_thresholded_table_starts_at_the_full_update_and_ends_near_the_base(place):
    cells = {(row["panel"], row["row"], row["column"]): row["value"] for row in rows(place[0], "table-11")}
    assert float(cells["nano, seed 0", "full update", "reset"]) == 0
    assert float(cells["nano, seed 0", "base", "length left"]) == 0
    lengths = [float(v) for (panel, _, column), v in cells.items() if "smallest" in panel and column == "length left"]
    assert len(lengths) == 5 and lengths == sorted(lengths, reverse=True)


def test_the_same_command_again_runs_nothing(place):
    folder, _ = place
    before = {path: path.stat().st_mtime_ns for path in (folder / "done").iterdir()}
    answer = CliRunner().invoke(app, ["paper", "run", "table-2", "table-6", "--scale", "tiny", "--out", str(folder)])
    assert answer.exit_code == 0, answer.output
    assert "training" not in answer.output
    assert {path: path.stat().st_mtime_ns for path in (folder / "done").iterdir() if path in before} == before | {
        folder / "done" / "easy:report.json": (folder / "done" / "easy:report.json").stat().st_mtime_ns
    }


def test_the_page_has_ours_and_what_was_published(place):
    folder, _ = place
    answer = CliRunner().invoke(app, ["paper", "report", "--scale", "tiny", "--out", str(folder)])
    assert answer.exit_code == 0, answer.output
    page = (folder / "report" / "index.html").read_text()
    assert "Qwen2.5-7B-Instruct" in page and "nano, nano-chain" in page
    assert "broadreach paper run theory" in page  # what was not measured says how
    about = json.loads((folder / "items" / "about.json").read_text())
    assert about["seconds"]["easy"] > 0 and about["commit"] and "table-2" in about["collected"]


def test_the_published_scale_is_refused_with_its_estimate_where_there_is_no_gpu():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    answer = CliRunner().invoke(app, ["paper", "run", "table-2", "--scale", "paper"])
    assert isinstance(answer.exception, UserError)
    said = str(answer.exception)
    assert "needs a GPU with 80 GiB, and there is no GPU here" in said and "GPU-hours" in said


def test_a_dry_run_says_what_every_part_costs(tmp_path):
    answer = CliRunner().invoke(app, ["paper", "run", "all", "--scale", "paper", "--dry-run", "--out", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    assert "easy threshold" in answer.output and "GPU-hours" in answer.output and "order of magnitude" in answer.output
    assert not list(tmp_path.iterdir())


def test_other_settings_in_the_same_folder_are_refused(place):
    folder, _ = place
    before = (folder / "items" / "table-2.csv").read_bytes()
    asked = ["paper", "run", "table-2", "--scale", "tiny", "--out", str(folder), "--set", "es.sigma=0.01"]
    answer = CliRunner().invoke(app, asked)
    assert isinstance(answer.exception, UserError)
    assert "give the same --scale and --set, or another --out" in str(answer.exception)
    assert (folder / "items" / "table-2.csv").read_bytes() == before


@pytest.mark.parametrize("command", [["run", "table-2"], ["report"]], ids=["run", "report"])
def test_a_file_in_the_place_of_the_folder_is_one_clear_error(place, tmp_path, command):
    (tmp_path / "file").write_text("")
    answer = CliRunner().invoke(app, ["paper", *command, "--scale", "tiny", "--out", str(tmp_path / "file")])
    assert isinstance(answer.exception, UserError) and "a file stands in its way" in str(answer.exception)


def test_a_folder_in_use_is_refused(place):
    folder, _ = place
    with held(PaperPlan(TINY, folder)):
        answer = CliRunner().invoke(app, ["paper", "run", "table-2", "--scale", "tiny", "--out", str(folder)])
    assert isinstance(answer.exception, UserError) and "being written by another process" in str(answer.exception)


def test_the_theory_is_measured_and_one_bad_file_does_not_stop_the_others(place):
    folder, _ = place
    damaged = folder / "estimator" / "estimator.csv"
    damaged.parent.mkdir()
    asked = ["paper", "run", "theory", "--scale", "tiny", "--out", str(folder)]
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert {"nats", "ratio"} == {row["unit"] for row in rows(folder, "theory")}
    assert any(row["row"] == "js_succ" for row in rows(folder, "theory"))
    damaged.write_text("objective,sigma\nregenerated_reward,0.01\n")
    plan = PaperPlan(TINY, folder)
    found = collect_into(find(["table-13", "theory"]), plan, {})
    assert found.failures["table-13"].startswith("not made, KeyError") and "theory.csv" in found.lines[0]
    damaged.unlink()


@pytest.mark.slow
def test_the_remaining_items_on_a_tiny_run(place):
    folder, _ = place
    answer = CliRunner().invoke(app, ["paper", "run", "all", "--scale", "tiny", "--out", str(folder)])
    assert answer.exit_code == 0, answer.output
    assert {row["column"] for row in rows(folder, "settings")} >= {"Pass@1", "Pass@4 minus z-score"}
    assert {row["x"] for row in rows(folder, "paths")} >= {"-0.5", "0", "1", "1.5"}
    assert {row["row"] for row in rows(folder, "precision")} == {"exact arithmetic", "paper arithmetic"}
    matrix = [row for row in rows(folder, "continual") if row["panel"] == "nano, Pass@1, ES"]
    assert {row["row"] for row in matrix} == {"base", "after nano-chain", "after nano-countdown"}
    assert any(row["column"] == "kappa pair" for row in rows(folder, "table-13"))
