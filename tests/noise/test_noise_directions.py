"""A direction is a pure function of seed, step, member, name and element index, whatever the chunking."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from broadreach import noise
from broadreach.noise import perturb, philox, table

SHAPE = (96, 80)


@pytest.mark.parametrize(
    ("arguments", "digest"),
    [
        ((0, 0, 0, "model.embed_tokens.weight", (7, 9)), "32abdfb57f495058d8e8d82a2a931c1f"),
        ((20260101, 3, 17, "model.layers.0.self_attn.q_proj.weight", (64, 48)), "2e51cdf88bd1e4c68302c09ff49a7e0d"),
        ((2**64 - 1, 2**32 - 1, 2**32 - 1, "lm_head.weight", (4099,)), "b29b53fe7e8fc5a5802b6a9dd8879c67"),
    ],
)
def test_known_directions(arguments, digest):
    q = noise.direction_q(*arguments)
    assert xxhash.xxh3_128_hexdigest(q.tobytes()) == digest
    seed, step, member, name, shape = arguments
    words = philox.words_reference(philox.noise_key(seed, step, member), philox.weights_hash(name), 0, math.prod(shape))
    assert (q.reshape(-1) == table.quantile_table()[words]).all()


def test_stale_kernels_are_refused(monkeypatch):
    perturb.check_known_answers.cache_clear()
    broken = [(*known[:5], "0" * 32) for known in perturb.KNOWN_DIRECTIONS]
    monkeypatch.setattr(perturb, "KNOWN_DIRECTIONS", broken)
    with pytest.raises(RuntimeError, match="noise self-test failed"):
        noise.direction(0, 0, 0, "w", (3,))
    monkeypatch.undo()
    assert noise.direction(0, 0, 0, "w", (3,)).dtype == np.float32


def test_direction_is_the_table_over_4096():
    q = noise.direction_q(5, 6, 7, "w", SHAPE)
    eps = noise.direction(5, 6, 7, "w", SHAPE)
    assert eps.shape == SHAPE
    assert (eps.astype(np.float64) == q / 4096).all()


@settings(max_examples=60, deadline=None)
@given(start=st.integers(0, 9000), count=st.integers(0, 5000))
def test_any_chunk_of_a_direction_is_the_direction(start, count):
    whole = noise.direction_q(1, 2, 3, "w", (14000,))
    part = noise.direction_q(1, 2, 3, "w", (count,), offset=start)
    assert (part == whole[start : start + count]).all()


def test_elements_beyond_32_bits_have_their_own_noise():
    near = noise.direction_q(1, 2, 3, "w", (64,))
    far = noise.direction_q(1, 2, 3, "w", (64,), offset=2**35)
    expected = philox.words_reference(philox.noise_key(1, 2, 3), philox.weights_hash("w"), 2**35, 64)
    assert (far == table.quantile_table()[expected]).all()
    assert (far != near).any()


def perturbed(theta: np.ndarray, dtype: torch.dtype, **shard: int | None) -> torch.Tensor:
    out = torch.empty(theta.shape, dtype=dtype)
    noise.perturb_into(theta, out, seed=9, step=8, direction=7, sign=1, sigma=0.01, name="w", **shard)
    return out


def centre() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)


@settings(max_examples=40, deadline=None)
@given(first=st.integers(0, 95), rows=st.integers(1, 96), dtype=st.sampled_from([torch.float32, torch.bfloat16]))
def test_row_shard_is_the_rows_of_the_whole(first, rows, dtype):
    theta = centre()
    whole = perturbed(theta, dtype)
    shard = np.ascontiguousarray(theta[first : first + rows])
    assert torch.equal(perturbed(shard, dtype, offset=first * SHAPE[1]), whole[first : first + rows])


@settings(max_examples=40, deadline=None)
@given(first=st.integers(0, 79), columns=st.integers(1, 80), dtype=st.sampled_from([torch.float32, torch.bfloat16]))
def test_column_shard_is_the_columns_of_the_whole(first, columns, dtype):
    theta = centre()
    whole = perturbed(theta, dtype)
    shard = np.ascontiguousarray(theta[:, first : first + columns])
    assert torch.equal(perturbed(shard, dtype, offset=first, row_length=SHAPE[1]), whole[:, first : first + columns])


def test_block_shard_and_strided_output_match_the_whole():
    theta = centre()
    whole = perturbed(theta, torch.bfloat16)
    fused = torch.zeros(SHAPE[0], 200, dtype=torch.bfloat16)
    target = fused[16:48, 100:140]
    shard = np.ascontiguousarray(theta[16:48, 24:64])
    noise.perturb_into(
        shard, target, seed=9, step=8, direction=7, sign=1, sigma=0.01, name="w", offset=16 * 80 + 24, row_length=80
    )
    assert torch.equal(fused[16:48, 100:140], whole[16:48, 24:64])
    assert fused.count_nonzero() == target.count_nonzero()


THREADS = """
import numba, numpy as np, torch
from broadreach import noise
from broadreach.types import Update

theta = np.random.default_rng(1).standard_normal((2, 100_003)).astype(np.float32)
served = {}
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    served[str(dtype)] = torch.empty(theta.shape, dtype=dtype)
    noise.perturb_into(theta, served[str(dtype)], seed=9, step=8, direction=7, sign=1, sigma=0.01, name="w")
    served[str(dtype)] = served[str(dtype)].float().numpy()
served["updated"] = theta
noise.apply_update(served, Update((0, 1, 2), (2**29, -(2**28), 3), 45), seed=1, step=1)
logits = torch.from_numpy(np.random.default_rng(2).standard_normal((8, 20_000)).astype(np.float32))
rows = noise.sample_rows([str(i) for i in range(8)], [0] * 8, [0] * 8, seed=1, step=0)
print(numba.get_num_threads(), noise.digest(served), noise.sample_tokens(logits, 0.7, rows, range(8)).tolist())
"""


def test_threads_do_not_change_the_bits():
    """In processes of their own, because Numba's number of threads is fixed when it starts."""
    results = []
    for threads in ("1", "2"):
        environment = {**os.environ, "NUMBA_NUM_THREADS": threads}
        done = subprocess.run([sys.executable, "-c", THREADS], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        results.append(done.stdout.split(maxsplit=1))
    assert [result[0] for result in results] == ["1", "2"]
    assert results[0][1] == results[1][1]
