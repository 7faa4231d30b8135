"""Evaluation during training: chosen updates, fixed problems, and not one bit of the training changed by it."""

import json
import random
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from broadreach.config import load_config
from broadreach.evaluation.matched import curve_folder, curve_tables, matched
from broadreach.evaluation.table import load
from broadreach.runs.budget import total
from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import read_ledger
from broadreach.training import es, grpo, sequence
from broadreach.training.curve import read_curve, untouched_random_state
from broadreach.types import UserError

sys.path.insert(0, str(Path(__file__).parent))
from grpo_tiny import configure, save_tiny_model
from listeners import Notes, StopAfter

FAST = ["model.path=nano", "task.name=nano-chain", "task.max_train=64", "es.population=4", "train.batch=4"]
FAST += ["train.updates=5", "train.stop_when_idle=0", "run.snapshot_every=2", "engine.threads=1", "es.sigma=0.02"]
FAST += ["es.alpha=0.02", "sampling.max_new_tokens=16", "sampling.temperature=0.7"]
CURVE = ["eval.curve_every=2", "eval.curve_problems=3", "eval.curve_samples=4"]
FAKE = "engine.kind=fake"
TIMES = ("seconds", "peak_memory_mb")


def train_es(folder, *extra, reporter=None):
    said = reporter or Notes()
    config = load_config([], [*FAST, f"run.dir={folder}", *extra])
    es.train(config, RunFolder(folder), said)
    return RunFolder(folder), said


def train_grpo(model, folder, *extra, reporter=None):
    said = reporter or Notes()
    grpo.train(configure(model, folder, "run.snapshot_every=2", *extra), RunFolder(folder), said)
    return RunFolder(folder), said


def metrics(run):
    """metrics.jsonl without what the clock and the machine say."""
    rows = [json.loads(line) for line in run.metrics_file.read_text().splitlines()]
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def seconds(run):
    return [json.loads(line)["seconds"] for line in run.metrics_file.read_text().splitlines()]


def steps(run):
    return [(line["step"], line["task"]) for line in read_curve(run)]


def without_seconds(run):
    return [{key: value for key, value in line.items() if key != "seconds"} for line in read_curve(run)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return train_es(tmp_path_factory.mktemp("es") / "plain")[0]


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    tasks = "eval.curve_tasks=nano-chain,nano-choice"
    return train_es(tmp_path_factory.mktemp("es") / "watched", *CURVE, tasks)[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="module")
def watched_grpo(model, tmp_path_factory):
    return train_grpo(model, tmp_path_factory.mktemp("grpo") / "watched", *CURVE, "eval.curve_at=1")[0]


def test_es_is_the_same_bit_for_bit_with_and_without_it(plain, watched):
    assert plain.ledger_file.read_bytes() == watched.ledger_file.read_bytes()
    assert any(entry.record.update is not None for entry in read_ledger(plain.ledger_file).entries)
    assert metrics(plain) == metrics(watched) and not read_curve(plain)


@pytest.mark.parametrize("generation", ["engine", "trl"])
def test_grpo_is_the_same_bit_for_bit_with_and_without_it(model, tmp_path, generation):
    how = [f"grpo.generation={generation}", "train.updates=3"]
    torch.manual_seed(1)
    alone, _ = train_grpo(model, tmp_path / "alone", *how)
    watched, _ = train_grpo(model, tmp_path / "watched", *how, *CURVE)
    assert steps(watched) == [(step, "nano-chain") for step in (0, 2, 3)]
    weights = [(run.export / "model.safetensors").read_bytes() for run in (alone, watched)]
    assert weights[0] == weights[1] != (model / "model.safetensors").read_bytes()
    assert metrics(alone) == metrics(watched)


def test_the_chosen_updates_of_every_task_are_evaluated(watched, watched_grpo):
    assert steps(watched) == [(step, f"nano-{name}") for step in (0, 2, 4, 5) for name in ("chain", "choice")]
    assert steps(watched_grpo) == [(step, "nano-chain") for step in (0, 1, 2, 4)]


def test_a_line_says_what_its_store_says(watched):
    for line in read_curve(watched):
        table = load(curve_folder(watched.path, line["task"]) / f"step-{line['step']}" / "samples.jsonl")
        assert table.correct.shape == (line["problems"], line["samples"]) == (3, 4)
        assert line["pass_at_1"]["value"] == pytest.approx(table.correct.mean())
        assert line["pass_at_k"]["4"]["value"] == pytest.approx(table.correct.any(axis=1).mean())
        assert table.header.model_digest == line["model_digest"] and line["entropy"]["value"] > 0
    entries = read_ledger(watched.ledger_file).entries
    by_step = {line["step"]: line["model_digest"] for line in read_curve(watched)}
    assert by_step[4] == entries[3].digest and by_step[0] == read_ledger(watched.ledger_file).header.base_digest


def test_its_time_is_listed_apart_from_the_time_of_training(watched, plain):
    spent = seconds(watched)
    assert ["evaluation" in line for line in spent] == [True, True, False, True, True]
    assert not any("evaluation" in line for line in seconds(plain))
    for line in spent:
        phases = sum(value for phase, value in line.items() if phase not in ("evaluation", "total"))
        assert phases == pytest.approx(line["total"], abs=0.01)
    rows = [json.loads(text) for text in watched.metrics_file.read_text().splitlines()]
    account = total(rows).seconds
    assert account["total"] == pytest.approx(sum(line["total"] for line in spent)) and account["evaluation"] > 0


@pytest.mark.parametrize("method", ["es", "grpo"])
def test_a_stopped_run_evaluates_nothing_twice(method, watched_grpo, model, tmp_path, monkeypatch):
    def start(reporter):
        if method == "es":
            return train_es(tmp_path / "run", *CURVE, FAKE, reporter=reporter)[0]
        return train_grpo(model, tmp_path / "run", *CURVE, "eval.curve_at=1", reporter=reporter)[0]

    with pytest.raises(KeyboardInterrupt):
        start(StopAfter(3))
    before = steps(RunFolder(tmp_path / "run"))
    stores = {path: path.stat().st_mtime_ns for path in (tmp_path / "run/eval/curve").rglob("samples.jsonl")}
    run = start(Notes())
    assert (
        before == steps(run)[: len(before)]
        and len(steps(run)) > len(before)
        and len(set(steps(run))) == len(steps(run))
    )
    assert {path: path.stat().st_mtime_ns for path in stores} == stores  # nothing is drawn anew
    if method == "grpo":
        assert without_seconds(run) == without_seconds(watched_grpo)


def test_a_store_of_other_weights_at_the_same_update_is_replaced(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train_es(tmp_path / "run", *CURVE, FAKE, reporter=StopAfter(1))
    stale = curve_folder(tmp_path / "run", "nano-chain") / "step-2"
    shutil.copytree(stale.with_name("step-0"), stale)
    run, _ = train_es(tmp_path / "run", *CURVE, FAKE)
    assert load(stale / "samples.jsonl").header.model_digest == read_ledger(run.ledger_file).entries[1].digest


def test_settings_may_change_on_a_resume_and_mistakes_are_found_before_training(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train_es(tmp_path / "run", FAKE, reporter=StopAfter(2))
    run, _ = train_es(tmp_path / "run", *CURVE, FAKE, "eval.curve_at=3")
    assert [step for step, _ in steps(run)] == [2, 3, 4, 5]  # update 2 has just ended, its weights are at hand
    with pytest.raises(UserError, match="unknown task 'nano-chian'; did you mean nano-chain"):
        train_es(tmp_path / "other", *CURVE, FAKE, "eval.curve_tasks=nano-chian")
    with pytest.raises(UserError, match="temperature 0"):
        train_es(tmp_path / "third", *CURVE, FAKE, "eval.temperature=0")
    assert not RunFolder(tmp_path / "other").metrics_file.exists()


def test_stages_count_over_the_whole_run_and_reuse_brings_the_evaluations_along(tmp_path):
    first = [FAKE, "train.updates=2", "eval.curve_every=1", "eval.curve_problems=2", "eval.curve_samples=2"]
    single, _ = train_es(tmp_path / "single", *first)
    both = [*FAST, *first, "train.updates=4", "train.stages=es->es", "eval.curve_at=3", f"run.dir={tmp_path / 'both'}"]
    said = Notes()
    sequence.train(load_config([], both), RunFolder(tmp_path / "both"), said)
    assert any("they are reused" in note for note in said.notes)
    run = RunFolder(tmp_path / "both")
    assert [(line["step"], line["stage"]) for line in read_curve(run)] == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)]
    assert without_seconds(run)[2]["model_digest"] == read_curve(single)[2]["model_digest"]
    tables = curve_tables(run.path, "nano-chain")
    assert list(tables) == [0, 1, 2, 3, 4]
    assert [table.header.model_digest for table in tables.values()] == [
        line["model_digest"] for line in read_curve(run)
    ]
    found = matched(run.path, single.path, "nano-chain", draws=200)
    assert found.pairs[0].update_a in (1, 2, 3, 4) and len(found.differences.intervals) == 2


def test_global_random_states_are_put_back():
    def draws():
        return torch.rand(3).tolist(), np.random.random(3).tolist(), [random.random() for _ in range(3)]

    torch.manual_seed(3), np.random.seed(3), random.seed(3)
    wanted = draws()
    torch.manual_seed(3), np.random.seed(3), random.seed(3)
    with untouched_random_state():
        assert draws() == wanted
        torch.manual_seed(9)
    assert draws() == wanted
