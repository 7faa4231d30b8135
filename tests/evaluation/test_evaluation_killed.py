"""An evaluation killed (SIGKILL) at any instant and started again leaves the files of an undisturbed one."""

import json
import multiprocessing
import os
import sys
from pathlib import Path

import pytest

from broadreach.evaluation.table import load

sys.path.insert(0, str(Path(__file__).parent))
import eval_child

STORES = ["model", "model/greedy", "baselines/temperature-0.3", "baselines/weight-noise-0.02"]
KILLS = [(0, 8, 0.3), (1, 7, 0.5), (2, 17, 0.3), (3, 18, 0.9)]
"""(store, block, share): the block that is torn is counted from each start; a header and 12 problems fill a store."""


@pytest.fixture(scope="module")
def launch():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["eval_child"])
    patch = pytest.MonkeyPatch()
    # the fork server of Python 3.11 does not get our sys.path, and would silently preload nothing
    patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)

    def start(out, how=None, *arguments):
        process = context.Process(target=eval_child.run, args=(out, how, *arguments))
        process.start()
        process.join(timeout=120)
        assert process.exitcode is not None, "the child hangs"
        return process.exitcode

    yield start
    patch.undo()


def files(out):
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def undisturbed(launch, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    assert launch(out) == 0
    found = files(out)
    assert sorted(name for name in found if name.endswith("samples.jsonl")) == sorted(
        f"{s}/samples.jsonl" for s in STORES
    )
    assert "model/entropy.json" in found
    assert len({found[f"{name}/samples.jsonl"] for name in STORES}) == 4
    return found


def test_killed_inside_a_write_of_every_store(launch, undisturbed, tmp_path):
    out = tmp_path / "out"
    for store, block, share in KILLS:
        assert launch(out, "kill_inside_store", block, share) == -9
        torn = (out / STORES[store] / "samples.jsonl").read_bytes()
        whole = undisturbed[f"{STORES[store]}/samples.jsonl"]
        assert len(torn) < len(whole) and not torn.endswith(b"\n") and whole.startswith(torn)
        assert all(not (out / later / "samples.jsonl").exists() for later in STORES[store + 1 :])
    assert launch(out) == 0
    assert files(out) == undisturbed


def test_killed_inside_generation_entropy_and_anywhere(launch, undisturbed, tmp_path):
    out = tmp_path / "out"
    assert launch(out, "kill_inside_generation", 15) == -9
    assert launch(out, "kill_inside_entropy", 3) == -9
    assert json.loads((out / "model" / "entropy.partial.json").read_text())["own"]["done"] == 32
    assert launch(out, "kill_after", 0.2) == -9
    assert launch(out) == 0
    assert files(out) == undisturbed


def test_weight_noise_takes_each_response_from_another_member(undisturbed, tmp_path):
    """The same responses, drawn from each member alone."""
    from broadreach.engines.hf import HfEngine
    from broadreach.models.locate import locate
    from broadreach.models.weights import load_centre, load_tokenizer
    from broadreach.tasks.nano import NANO_TASKS
    from broadreach.tasks.render import render
    from broadreach.types import Member, Perturbation, Request, Sampling

    (tmp_path / "s.jsonl").write_bytes(undisturbed["baselines/weight-noise-0.02/samples.jsonl"])
    table = load(tmp_path / "s.jsonl")
    assert table.header.noise_sigma == 0.02 and table.header.samples == 4
    directory = locate("nano")
    task, tokenizer = NANO_TASKS["nano-choice"](), load_tokenizer(directory)
    engine = HfEngine(directory)
    engine.load(load_centre(directory))
    problems = task.problems("test")[:12]
    requests = [Request(problem.id, render(tokenizer, task, problem)) for problem in problems]
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()[1:]]
    for j in range(4):
        sampling = Sampling(0.6, 10, seed=1)
        answers = engine.generate(requests, [Member(j, j, 1)], Perturbation(1, 0, 0.02), sampling)[0]
        assert [answer.text for answer in answers] == [row["text"] for row in rows if row["sample"] == j]
