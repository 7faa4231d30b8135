"""Two runs at matched Pass@1, chosen as a full search would."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from broadreach.evaluation.matched import choose, curve_tables, matched, matched_seeds
from broadreach.evaluation.metrics import pass_curve
from broadreach.evaluation.store import SampleStore, StoreHeader
from broadreach.types import Response, Score, UserError

BASE = [0, 1, 1, 2, 0, 1]


def write_run(root: Path, counts: dict[int, list[int]], temperature: float = 0.6) -> Path:
    """A run folder that holds nothing but evaluations during training: correct responses of 4, for each problem."""
    for step, of_step in counts.items():
        ids = [f"p{i}" for i in range(len(of_step))]
        header = StoreHeader("toy", "test", f"d{step}", "i", temperature, 16, 4, 1, len(ids), "problems")
        with SampleStore(root / f"eval/curve/toy/step-{step}/samples.jsonl", header, ids) as store:
            for name, count in zip(ids, of_step, strict=True):
                scores = [Score(float(j < count), j < count, True) for j in range(4)]
                store.append(name, [Response("x", (1,), "stop", 3)] * 4, scores)
    return root


def test_the_closest_pair_above_the_base_is_chosen(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {0: BASE, 2: [0, 1, 1, 1, 0, 1], 4: [1, 2, 1, 2, 1, 2], 6: [4, 4, 3, 3, 2, 2]})
    b = write_run(tmp_path / "b", {0: BASE, 1: [0, 1, 1, 1, 0, 1], 3: [4, 4, 0, 2, 0, 0], 5: [4, 4, 4, 4, 4, 4]})
    found = matched(a, b, "toy", draws=300)
    pair = found.pairs[0]
    assert (pair.update_a, pair.update_b, pair.above_base) == (4, 3, True)  # updates 2 and 1 are equal, but below
    expected = np.mean(pass_curve([[j < c for j in range(4)] for c in [1, 2, 1, 2, 1, 2]]), axis=0)
    expected -= np.mean(pass_curve([[j < c for j in range(4)] for c in [4, 4, 0, 2, 0, 0]]), axis=0)
    assert [i.value for i in found.differences.intervals] == pytest.approx(expected.tolist())
    assert found.differences.at(4).value == pytest.approx(0.5)
    assert found.against_base[0].at(1).value == pytest.approx(4 / 24) and "cover that choice" in found.note


def test_choice_is_a_full_search(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    for trial in range(8):
        runs = []
        for name in "ab":
            counts = {0: BASE, **{step: generator.integers(0, 4, 6).tolist() for step in (1, 2, 3, 4)}}
            runs.append(curve_tables(write_run(tmp_path / f"{name}{trial}", counts), "toy"))
        base = runs[0][0].correct.mean()
        pairs = list(itertools.product(range(1, 5), repeat=2))
        means = {(i, j): (runs[0][i].correct.mean(), runs[1][j].correct.mean()) for i, j in pairs}
        allowed = [pair for pair in pairs if min(means[pair]) > base] or pairs
        smallest = min(abs(means[pair][0] - means[pair][1]) for pair in allowed)
        found = choose(*runs)
        assert abs(found.pass_at_1_a - found.pass_at_1_b) == pytest.approx(smallest)
        assert (found.update_a, found.update_b) in allowed


def test_without_a_pair_above_the_base_it_says_so(tmp_path: Path) -> None:
    a, b = (write_run(tmp_path / name, {0: BASE, 1: [0, 0, 0, 1, 0, 0]}) for name in "ab")
    found = matched_seeds([(a, b), (a, b)], "toy", draws=50)
    assert not found.pairs[0].above_base and "2 of 2 pairs do not lie above the base" in found.note
    assert found.differences.seeds == 2 and found.differences.at(1).value == 0


def test_missing_or_unlike_evaluations_are_refused(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {0: BASE, 1: BASE})
    with pytest.raises(UserError, match=r"no evaluations during training on toy .*eval\.curve_every"):
        matched(a, tmp_path / "none", "toy")
    with pytest.raises(UserError, match="no evaluations"):
        matched(a, write_run(tmp_path / "b", {0: BASE}), "toy")
    with pytest.raises(UserError, match=r"temperature: 0\.6, 1\.0"):
        matched(a, write_run(tmp_path / "c", {0: BASE, 1: BASE}, temperature=1.0), "toy")
    with pytest.raises(UserError, match=r"K = 16"):
        matched(a, a, "toy", draws=10).differences.at(16)
    store = a / "eval/curve/toy/step-1/samples.jsonl"
    store.write_bytes(store.read_bytes()[:-20])  # unfinished: as if it were not there
    with pytest.raises(UserError, match="no evaluations"):
        matched(a, a, "toy")
