"""Seeded sampling: exactly the arg max of logits plus Gumbel noise, softmax in law, and blind to the batch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from broadreach import noise
from broadreach.noise import philox
from broadreach.types import UserError


def rows_for(count: int, *, step: int = 2, common: bool = False, member: int = 3) -> noise.SampleRows:
    return noise.sample_rows(
        [f"p{i}" for i in range(count)], [0] * count, [member] * count, seed=1, step=step, common=common
    )


def brute_force(logits: np.ndarray, temperature: float, rows: noise.SampleRows, positions: list[int]) -> list[int]:
    vocab = logits.shape[1]
    tokens = []
    for row, position in enumerate(positions):
        counter = np.zeros(((vocab + 3) // 4, 4), np.uint32)
        text_hash = int(rows.hashes[row])
        counter[:, 0], counter[:, 1] = text_hash & 0xFFFFFFFF, text_hash >> 32
        counter[:, 2], counter[:, 3] = position, np.arange(len(counter))
        words = philox.philox_reference(counter, int(rows.keys[row])).reshape(-1)[:vocab]
        gumbel = -np.log(-np.log((words.astype(np.float64) + 0.5) / 2**32))
        tokens.append(int(np.argmax(logits[row].astype(np.float64) / temperature + gumbel)))
    return tokens


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    vocab=st.sampled_from([1, 3, 63, 64, 65, 511, 512, 513, 1000, 4099]),
    spread=st.sampled_from([0.0, 0.5, 3.0, 30.0, 1000.0]),
    temperature=st.sampled_from([0.01, 0.6, 1.0, 7.0]),
)
def test_sample_is_the_brute_force_arg_max(seed, vocab, spread, temperature):
    logits = (np.random.default_rng(seed).standard_normal((3, vocab)) * spread).astype(np.float32)
    rows, positions = rows_for(3), [0, 17, seed]
    tokens = noise.sample_tokens(torch.from_numpy(logits), temperature, rows, positions)
    assert tokens.tolist() == brute_force(logits, temperature, rows, positions)


def test_large_vocabulary_and_many_rows_are_the_brute_force_arg_max():
    logits = (np.random.default_rng(0).standard_normal((16, 49152)) * 2).astype(np.float32)
    rows, positions = rows_for(16), list(range(16))
    tokens = noise.sample_tokens(torch.from_numpy(logits), 0.6, rows, positions)
    assert tokens.tolist() == brute_force(logits, 0.6, rows, positions)


def test_masked_entries_are_never_drawn():
    logits = torch.full((200, 100), float("-inf"))
    logits[:, [7, 70]] = 0.0
    tokens = noise.sample_tokens(logits, 1.0, rows_for(200), [0] * 200)
    assert set(tokens.tolist()) == {7, 70}


def test_draws_follow_the_softmax():
    draws, vocab, temperature = 40_000, 12, 0.7
    logits = torch.linspace(-1.5, 1.5, vocab).repeat(draws, 1)
    rows = noise.sample_rows(["p"] * draws, list(range(draws)), [0] * draws, seed=5, step=0)
    counts = torch.bincount(noise.sample_tokens(logits, temperature, rows, [3] * draws), minlength=vocab).double()
    expected = torch.softmax(logits[0].double() / temperature, 0) * draws
    assert float(((counts - expected) ** 2 / expected).sum()) < 38  # 11 degrees of freedom: 1e-4


def test_positions_follow_the_softmax_too():
    draws = 20_000
    logits = torch.zeros(draws, 5)
    one = noise.sample_rows(["p"], [0], [0], seed=5, step=0).take([0] * draws)
    counts = torch.bincount(noise.sample_tokens(logits, 1.0, one, np.arange(draws)), minlength=5).double()
    assert float(((counts - draws / 5) ** 2 / (draws / 5)).sum()) < 24  # 4 degrees of freedom: 1e-4


def test_a_row_does_not_depend_on_its_batch():
    logits = torch.from_numpy(np.random.default_rng(0).standard_normal((40, 300)).astype(np.float32))
    rows, positions = rows_for(40), np.arange(40)
    together = noise.sample_tokens(logits, 1.0, rows, positions)
    order = np.random.default_rng(1).permutation(40)
    shuffled = noise.sample_tokens(logits[order], 1.0, rows.take(order), positions[order])
    assert torch.equal(together[order], shuffled)
    alone = [int(noise.sample_tokens(logits[i : i + 1], 1.0, rows.take([i]), positions[i : i + 1])) for i in range(40)]
    assert alone == together.tolist()


def test_members_have_their_own_noise_unless_common():
    logits = torch.zeros(60, 50)
    draws = {
        (member, common): noise.sample_tokens(logits, 1.0, rows_for(60, member=member, common=common), [0] * 60)
        for member in (0, 1)
        for common in (False, True)
    }
    assert torch.equal(draws[0, True], draws[1, True])
    assert not torch.equal(draws[0, False], draws[1, False])
    assert not torch.equal(draws[0, False], draws[0, True])


def test_step_sample_and_position_change_the_draw():
    logits = torch.zeros(60, 50)
    first = noise.sample_tokens(logits, 1.0, rows_for(60), [0] * 60)
    assert torch.equal(first, noise.sample_tokens(logits, 1.0, rows_for(60), [0] * 60))
    assert not torch.equal(first, noise.sample_tokens(logits, 1.0, rows_for(60, step=3), [0] * 60))
    assert not torch.equal(first, noise.sample_tokens(logits, 1.0, rows_for(60), [1] * 60))
    other = noise.sample_rows([f"p{i}" for i in range(60)], [1] * 60, [3] * 60, seed=1, step=2)
    assert not torch.equal(first, noise.sample_tokens(logits, 1.0, other, [0] * 60))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_greedy_takes_the_lowest_of_equal_logits(dtype):
    logits = torch.zeros(3, 5000, dtype=dtype)
    logits[0, [40, 4000]] = 1.0
    logits[1, [4999, 77]] = 1.0
    assert noise.sample_tokens(logits, 0.0, rows_for(3), [0] * 3).tolist() == [40, 77, 0]


@pytest.mark.parametrize("temperature", [0.0, 0.6])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_broken_logits_are_named(temperature, value):
    logits = torch.zeros(4, 300)
    logits[2, 123] = value
    with pytest.raises(UserError, match="row 2 are not finite"):
        noise.sample_tokens(logits, temperature, rows_for(4), [0] * 4)
    logits[2] = float("-inf")
    with pytest.raises(UserError, match="row 2 are not finite"):
        noise.sample_tokens(logits, temperature, rows_for(4), [0] * 4)


def test_wrong_inputs_are_user_errors():
    with pytest.raises(UserError, match="temperature is -1"):
        noise.sample_tokens(torch.zeros(1, 4), -1.0, rows_for(1), [0])
    with pytest.raises(UserError, match="1 rows of logits, 2 of noise"):
        noise.sample_tokens(torch.zeros(1, 4), 1.0, rows_for(2), [0])
    with pytest.raises(UserError, match="one of each per row"):
        noise.sample_rows(["a"], [0, 1], [0], seed=1, step=0)
    with pytest.raises(UserError, match="member indices"):
        noise.sample_rows(["a"], [0], [philox.COMMON_MEMBER], seed=1, step=0)
