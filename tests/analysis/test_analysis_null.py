"""Null models against closed forms, and against walking every coordinate of a whole model."""

import math

import numpy as np
import pytest
from analysis_models import bfloat16, weights

from broadreach.analysis.drift import drift
from broadreach.analysis.null import simulate
from broadreach.analysis.null_maxima import octave
from broadreach.analysis.null_paper import paper_run
from broadreach.analysis.null_sample import draw_sample
from broadreach.analysis.null_summary import summarise
from broadreach.analysis.null_walk import NAME, plain_run, round_to, run_of_ledger, walk
from broadreach.es.coefficients import make_update
from broadreach.es.shaping import z_score
from broadreach.noise.advance import advance
from broadreach.runs.ledger import LedgerContents, LedgerEntry, LedgerHeader
from broadreach.types import Perturbation, StepRecord, UserError

STEPS, MEMBERS, SIGMA, ALPHA = 40, 8, 1.5e-3, 2.5e-4
TAUS = (1e-4, 5e-4, 1e-3)
BIG = {
    "model.embed_tokens.weight": (300, 64),
    "model.layers.0.mlp.up_proj.weight": (256, 64),
    "model.layers.1.mlp.up_proj.weight": (256, 64),
    "model.layers.0.input_layernorm.weight": (64,),
}


def whole(base, run, precision, seed):
    """The same null over every coordinate."""
    sizes = [array.size for array in base.values()]
    joined = np.concatenate([array.ravel() for array in base.values()])
    moved = walk(joined, run, precision, "bfloat16", seed)
    moved = round_to(moved, "bfloat16") if precision == "saved" else moved
    parts = np.split(moved, np.cumsum(sizes)[:-1])
    return {name: part.reshape(base[name].shape) for name, part in zip(base, parts, strict=True)}


def test_standard_deviation_is_alpha_root_t_over_n_within_two_percent():
    run = plain_run(STEPS, MEMBERS, MEMBERS, SIGMA, ALPHA, 0)
    assert run.deviation == pytest.approx(ALPHA * math.sqrt(STEPS / MEMBERS), rel=1e-6)
    values = np.zeros(40_000, np.float32)
    assert walk(values, run, "exact", "bfloat16", 1).std() == pytest.approx(run.deviation, rel=0.02)


def test_exact_and_paper_walks_are_the_run_s_own_arithmetic():
    run = plain_run(5, 4, 4, SIGMA, ALPHA, 3)
    values = bfloat16(weights()["model.embed_tokens.weight"]).ravel()
    for precision in ("exact", "paper"):
        centre = {NAME: values.copy()}
        for number, step in enumerate(run.steps, start=1):
            place = Perturbation(9, number, SIGMA)
            advance(centre, step.update, place, precision=precision, model_dtype="bfloat16", population=4)
        np.testing.assert_array_equal(walk(values, run, precision, "bfloat16", 9), centre[NAME])
        assert (centre[NAME] != values).any()


def test_restores_alone_move_weights_in_the_published_arithmetic_only():
    values = bfloat16(weights(seed=5)["model.embed_tokens.weight"]).ravel()
    with_cycles = walk(values, plain_run(3, 8, 8, SIGMA, 1e-30, 0), "paper", "bfloat16", 0)
    without = walk(values, plain_run(3, 8, 0, SIGMA, 1e-30, 0), "paper", "bfloat16", 0)
    assert (with_cycles != values).mean() > 0.3 and (without == values).all()


def test_a_sample_stands_for_the_whole_model():
    base = weights(shapes=BIG)
    sample = draw_sample(base, 4096, seed=1)
    sizes = np.bincount(sample.tensor, sample.weight)
    np.testing.assert_allclose(sizes, [base[name].size for name in sample.names])
    assert sample.values.size < 0.2 * sum(sizes)
    squares = sample.per_cell(np.square(sample.values.astype(np.float64))).mean(axis=1)
    expected = [np.square(base[name].astype(np.float64)).sum() for name in sample.names]
    np.testing.assert_allclose(squares, expected, rtol=0.12)
    norm = sample.names.index("model.layers.0.input_layernorm.weight")
    taken = sample.values[sample.tensor == norm]
    np.testing.assert_array_equal(taken, base["model.layers.0.input_layernorm.weight"])
    again = draw_sample(base, 4096, seed=1)
    np.testing.assert_array_equal(sample.values, again.values)
    assert not np.array_equal(sample.values, draw_sample(base, 4096, seed=2).values)


@pytest.mark.parametrize("precision", ["exact", "saved", "paper"])
def test_prediction_from_a_sample_meets_the_null_of_every_coordinate(precision):
    base = {name: bfloat16(array) for name, array in weights(shapes=BIG).items()}
    runs = [plain_run(STEPS, MEMBERS, MEMBERS, SIGMA, ALPHA, seed) for seed in range(3)]
    found = summarise(simulate(base, runs, [precision], "bfloat16", TAUS, size=6000)[precision], "bfloat16")
    truth = [drift(base, whole(base, runs[0], precision, seed), TAUS) for seed in (50, 51, 52, 53)]
    total = found.total
    assert total.relative.value == pytest.approx(np.mean([one.total.relative for one in truth]), rel=0.03)
    for share, *real in zip(total.sparsity, *(one.total.sparsity for one in truth), strict=True):
        assert share.value == pytest.approx(np.mean(real), abs=0.02)
        assert share.low < share.value < share.high < share.low + 0.06
    moved = np.mean([one.total.moved / one.total.size for one in truth])
    assert 1 - total.unmoved.value == pytest.approx(moved, abs=0.02)
    largest = next(part for part in found.kinds if part.name == "mlp").maximum
    real = [next(kind.maximum for kind in one.kinds if kind.name == "mlp") for one in truth]
    assert largest is not None and 0.7 * largest.low < np.median(real) < 1.3 * largest.high
    assert sum(part.maximum.top_share for part in found.kinds if part.maximum) == pytest.approx(1)


def test_exact_null_is_its_closed_form_and_the_published_arithmetic_is_not():
    base = {name: bfloat16(array) for name, array in weights(shapes=BIG).items()}
    runs = [plain_run(STEPS, 16, 16, SIGMA, ALPHA, seed) for seed in range(2)]
    both = simulate(base, runs, ["exact", "paper"], "bfloat16", TAUS, size=8000)
    exact, paper = (summarise(both[name], "bfloat16") for name in ("exact", "paper"))
    assert exact.total.rms.value == pytest.approx(exact.closed.deviation, rel=0.02)
    for share, closed in zip(exact.total.sparsity, exact.closed.sparsity, strict=True):
        assert share.value == pytest.approx(closed, abs=0.02)
    assert exact.total.unmoved.value < 0.001
    assert paper.total.relative.value > 1.1 * exact.total.relative.value


def test_known_norms_replace_the_sampled_ones_and_observed_minus_null_has_an_interval():
    base = weights(shapes=BIG)
    run = plain_run(STEPS, MEMBERS, MEMBERS, SIGMA, ALPHA, 0)
    tally = simulate(base, [run] * 2, ["exact"], "float32", TAUS, size=5000)["exact"]
    square = sum(float(np.square(array.astype(np.float64)).sum()) for array in base.values())
    found = summarise(tally, "float32", {"model": square}).total.relative
    size = sum(array.size for array in base.values())
    assert found.value == pytest.approx(run.deviation * math.sqrt(size / square), rel=0.02)
    excess = found.excess(found.value + 0.5)
    assert excess.low < excess.value == pytest.approx(0.5) and excess.value < excess.high
    assert excess.high - excess.low == pytest.approx(found.high - found.low)


def ledger(steps: int, decay: float = 0.0) -> LedgerContents:
    generator = np.random.default_rng(0)
    header = LedgerHeader(1, "", 1, "", "exact", "float32", "one_point")
    entries = []
    for step in range(1, steps + 1):
        rewards = tuple(generator.random(4)) if step != 2 else (0.5,) * 4
        update = make_update(z_score(rewards), ALPHA, decay) if step != 2 else None
        entries.append(LedgerEntry(StepRecord(step, SIGMA, ALPHA, rewards, update), None))
    return LedgerContents(header, tuple(entries), False, 0, "")


def test_a_ledger_s_coefficients_are_shuffled_and_idle_steps_stay_idle():
    contents = ledger(5)
    run = run_of_ledger(contents, "shuffled", seed=3)
    assert run.restores == 4 and [step.update is None for step in run.steps] == [False, True, False, False, False]
    moved = 0
    for step, entry in zip(run.steps, contents.entries, strict=True):
        if step.update is not None:
            assert sorted(step.update.coefficients) == sorted(entry.record.update.coefficients)
            moved += step.update.coefficients != entry.record.update.coefficients
    assert moved >= 3
    normal = run_of_ledger(contents, "normal", seed=3, steps=4)
    assert len(normal.steps) == 4 and all(step.update is not None for step in normal.steps)
    assert normal.deviation == pytest.approx(ALPHA * math.sqrt(4 / 4), rel=1e-6)
    with pytest.raises(UserError, match="updates 1 to 5"):
        run_of_ledger(contents, "shuffled", 0, 6)


def test_anchor_decay_pulls_the_null_towards_the_base():
    values = np.zeros(20_000, np.float32)
    free = walk(values, run_of_ledger(ledger(30), "shuffled", 0), "exact", "float32", 0).std()
    held = walk(values, run_of_ledger(ledger(30, 0.2), "shuffled", 0), "exact", "float32", 0).std()
    assert held < 0.6 * free
    with pytest.raises(UserError, match="anchor decay"):
        walk(values, run_of_ledger(ledger(3, 0.2), "shuffled", 0), "paper", "float32", 0)


def test_octaves_and_bad_settings():
    assert (octave(np.array([1.0, 1.99, 2.0, -0.5])) - octave(1.0)).tolist() == [0, 0, 1, -1]
    for bad in ((0, 8, 8, SIGMA, ALPHA), (4, 1, 1, SIGMA, ALPHA), (4, 8, 9, SIGMA, ALPHA), (4, 8, 8, 0.0, ALPHA)):
        with pytest.raises(UserError):
            plain_run(*bad, seed=0)
    with pytest.raises(UserError, match="precision"):
        walk(np.zeros(4, np.float32), plain_run(1, 2, 2, SIGMA, ALPHA, 0), "double", "float32", 0)


def test_published_settings_and_numbers():
    run = paper_run("qwen2.5-1.5b")
    assert run.updates == 234 and run.sparsity[1e-3] == pytest.approx(0.7911) and run.relative == 0.01933
    assert paper_run("deepseek-r1-distill-qwen-1.5b").sparsity[3e-3] == pytest.approx(0.9664)
    with pytest.raises(UserError, match=r"llama-3\.2-3b"):
        paper_run("gpt")
