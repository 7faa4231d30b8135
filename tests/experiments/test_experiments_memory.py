"""How much memory cells take, and that they run side by side only where it is enough."""

from dataclasses import replace
from pathlib import Path

import pytest

from broadreach.config import load_config
from broadreach.experiments import memory
from broadreach.experiments.catalogue import resolve
from broadreach.experiments.cells import Cell, Job, run_cells
from broadreach.experiments.memory import MIB, Shape, model_shape, sized, training_peak
from broadreach.experiments.study import StudyPlan, study_cells
from broadreach.experiments.sweep import SweepPlan, parse_grid, sweep_cells
from broadreach.models.locate import locate
from broadreach.runs.folder import RunFolder
from broadreach.training.budget import budget_of
from broadreach.training.setup import prepare
from broadreach.types import Request, UserError

LISTING = (Job("listing", ("tasks", "list")),)
SMOLLM2 = Shape(134_515_008, layers=30, hidden=576, intermediate=1536, key_values=384, vocabulary=49_152)
COMMON = ["sampling.max_new_tokens=64", "model.dtype=float32"]
SMALL = ("train.updates=2", "train.batch=4", "es.population=2", "eval.problems=4", "eval.samples=2")


class Crowd:
    """A watcher that remembers the most memory and the most cells that ran at once."""

    def __init__(self):
        self.running = {}
        self.memory = self.cells = 0

    def started(self, cell, job):
        self.running[cell.name] = cell.memory
        self.memory = max(self.memory, sum(self.running.values()))
        self.cells = max(self.cells, len(self.running))

    def event(self, cell, job, event):
        pass

    def ended(self, cell, failure):
        assert failure is None
        del self.running[cell.name]


@pytest.fixture(scope="module")
def prompts():
    """Prompts of 223 tokens, of which 150 are the same in all: two-shot SVAMP."""
    prepared = prepare(resolve(["demo"]))
    requests = [Request(str(i), (*range(150), i, *range(72))) for i in range(len(prepared.problems))]
    return replace(prepared, requests=requests)


@pytest.mark.parametrize(
    ("settings", "measured"),
    [
        (["train.batch=64", "es.population=2"], 2306),
        (["train.method=grpo", "train.batch=8", "grpo.group_size=8", "grpo.mini_batch=8"], 9259),
    ],
)
def test_estimates_lie_above_the_measured_peaks_and_not_far(prompts, settings, measured):
    # measured: benchmarks/methods_memory.py on SmolLM2-135M (docs/results.md)
    peak = training_peak(load_config([], [*COMMON, *settings]), prompts, SMOLLM2) / MIB
    assert measured < peak < 1.25 * measured


def test_a_smaller_micro_batch_needs_less(prompts):
    peaks = [
        training_peak(load_config([], [*COMMON, "train.method=grpo", f"grpo.micro_batch={n}"]), prompts, SMOLLM2)
        for n in (1, 2, 4)
    ]
    assert peaks[1] - peaks[0] == pytest.approx((peaks[2] - peaks[1]) / 2, abs=8) and peaks[0] < peaks[1]


def test_the_shape_of_the_bundled_model():
    assert model_shape(locate("nano")) == Shape(854_016, 4, 128, 384, 128, 519)


def test_a_composition_takes_what_its_largest_stage_takes(tmp_path):
    plan = StudyPlan(("demo",), (), ("es", "grpo", "es->grpo"), (0,), "updates", None, False, tmp_path)
    by_name = {cell.name: cell.memory for cell in sized(study_cells(plan), tmp_path)}
    assert by_name["es-grpo-seed0"] == max(by_name["es-seed0"], by_name["grpo-seed0"]) > memory.IMPORTS


def test_a_real_run_stays_below_its_estimate_and_its_peak_serves_other_seeds(tmp_path, monkeypatch):
    plan = SweepPlan(("demo",), SMALL, parse_grid(["es.sigma=0.02"]), (0, 1), tmp_path)
    cells = sized(sweep_cells(plan), tmp_path)
    train = replace(cells[0], jobs=cells[0].jobs[:1])
    assert run_cells([train], 1, tmp_path / "logs", Crowd(), memory=cells[0].memory) == {}
    measured = budget_of(RunFolder(plan.run(("0.02",), 0))).peak_memory_mb
    assert 100 < measured < cells[0].memory / MIB
    monkeypatch.setattr(memory, "evaluation_peak", lambda *_: 0)
    assert [cell.memory for cell in sized(cells, tmp_path)] == [int(measured * MIB)] * 2


def test_cells_begin_only_when_the_running_ones_leave_room(tmp_path):
    cells = [Cell(name, LISTING, memory=size) for name, size in (("a", 60), ("b", 60), ("c", 40), ("d", 0))]
    crowd = Crowd()
    assert run_cells(cells, 4, tmp_path / "logs", crowd, memory=100.0) == {}
    assert crowd.memory <= 100 and crowd.cells >= 2, "c passes b, which has to wait for a"


def test_a_cell_that_never_fits_is_refused_before_anything_begins(tmp_path):
    settings = resolve(["demo"], ["train.method=grpo"])
    cells = [Cell("small", LISTING, memory=10), Cell("grpo-seed0", LISTING, config=settings, memory=2_000_000_000)]
    said = r"grpo-seed0 may take 2\.0 GB, and 1\.0 GB are allowed: a smaller grpo\.micro_batch.*--memory-gb"
    with pytest.raises(UserError, match=said) as caught:
        run_cells(cells, 2, tmp_path / "logs", Crowd(), memory=1e9)
    assert "\n" not in str(caught.value) and not (tmp_path / "logs").exists()


def test_the_default_budget_is_a_share_of_what_is_available(monkeypatch):
    assert memory.budget(2.5) == 2.5e9
    monkeypatch.setattr(memory, "available_memory", lambda: 50e9)
    assert memory.budget(None) == 40e9
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(UserError, match="--memory-gb"):
            memory.budget(wrong)


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="Linux tells what is available in /proc/meminfo")
def test_available_memory_is_less_than_there_is():
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert 0 < memory.available_memory() < total


def test_the_sentence_names_the_smallest_and_the_largest():
    cells = [Cell("es-seed0", (), memory=1_100_000_000), Cell("grpo-seed0", (), memory=9_300_000_000)]
    said = "2 runs, up to 3 at a time within 20.0 GB; one takes at most 1.1 GB (es-seed0) to 9.3 GB (grpo-seed0)"
    assert memory.sentence(cells, 3, 20e9) == said
    assert memory.sentence(cells[:1], 1, 20e9) == "1 run, up to 1 at a time within 20.0 GB; one takes at most 1.1 GB"
    assert memory.sentence([Cell("other", ())], 1, 20e9) == "1 run, up to 1 at a time within 20.0 GB"
