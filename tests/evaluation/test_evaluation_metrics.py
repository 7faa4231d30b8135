"""Pass@K against enumeration, Maj@K against its rules, and both against the handed vectors."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadreach.evaluation.metrics import (
    maj_at_k,
    maj_curve,
    pass_at_1,
    pass_at_k,
    pass_curve,
    plurality,
    suite_average,
    task_average,
)

KEYS = st.lists(st.tuples(st.sampled_from([None, "7", "8", "9"]), st.booleans()), min_size=1, max_size=12)


def test_pass_at_k_is_the_share_of_subsets_that_hold_a_correct_response() -> None:
    for n in range(1, 8):
        for c, k in product(range(n + 1), range(1, n + 1)):
            verdicts = [1] * c + [0] * (n - c)
            subsets = list(combinations(verdicts, k))
            assert pass_at_k(n, c, k) == sum(any(s) for s in subsets) / len(subsets)


def test_pass_at_k_stays_exact_where_floats_would_round() -> None:
    assert pass_at_k(32, 16, 16) == 601080389 / 601080390 < 1
    assert pass_at_k(32, 17, 16) == 1.0


@pytest.mark.parametrize("n, c, k", [(2, 0, 5), (0, 0, 1), (4, 5, 1), (4, -1, 1), (4, 1, 0), (4, 1, -1), (-1, 0, 1)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="pass_at_k"):
        pass_at_k(n, c, k)


def test_a_fraction_of_a_response_is_refused() -> None:
    with pytest.raises(ValueError, match="whole number"):
        pass_at_k(32, 1.5, 2)  # type: ignore[arg-type]


def test_curves_agree_with_the_single_values() -> None:
    verdicts = np.random.default_rng(0).random((20, 9)) < 0.3
    curve = pass_curve(verdicts)
    assert curve.shape == (20, 9)
    for row, expected in zip(curve, verdicts, strict=True):
        assert [pass_at_k(9, int(expected.sum()), k) for k in range(1, 10)] == list(row)
    assert np.array_equal(curve[:, 0], pass_at_1(verdicts))
    assert np.array_equal(curve[:, -1], verdicts.any(axis=1))


@given(KEYS)
def test_the_running_vote_equals_the_vote_at_every_k(cells: list[tuple[str | None, bool]]) -> None:
    keys, correct = [key for key, _ in cells], [right for _, right in cells]
    curve = maj_curve([keys], [correct])
    assert [maj_at_k(keys, correct, k) for k in range(1, len(keys) + 1)] == list(curve[0])


@given(KEYS)
def test_the_winner_has_most_votes_and_among_those_came_first(cells: list[tuple[str | None, bool]]) -> None:
    keys = [key for key, _ in cells]
    vote = plurality(keys, len(keys))
    voted = [key for key in keys if key is not None]
    if not voted:
        assert vote.winner is None and vote.votes == 0
        return
    most = max(voted.count(key) for key in voted)
    assert vote.winner == next(key for key in voted if voted.count(key) == most)
    assert vote.first_index == keys.index(vote.winner)


def test_all_abstaining_is_wrong_even_when_a_verdict_says_right() -> None:
    assert maj_at_k([None, None], [True, True], 2) == 0.0


@pytest.mark.parametrize("k", [0, -1, 4])
def test_more_votes_than_responses_are_refused(k: int) -> None:
    with pytest.raises(ValueError, match="maj_at_k"):
        maj_at_k(["7", "8", "9"], [True, False, False], k)


def test_rewards_are_not_verdicts() -> None:
    with pytest.raises(ValueError, match="0 and 1"):
        pass_curve([[0.1, 1.0]])


def test_problems_weigh_equally_and_so_do_tasks() -> None:
    assert task_average([0.0, 1.0, 1.0, 1.0]) == 0.75
    assert suite_average({"big": 0.75, "small": 0.25}) == 0.5
    with pytest.raises(ValueError, match="at least one"):
        task_average([])
    with pytest.raises(ValueError, match="at least one"):
        suite_average({})
