"""Philox 4x32-10 and the addressing of all noise: which key and which counter make which number.

The format, version `NOISE_FORMAT = 1`. A change of anything below is a new version, and old ledgers stop replaying.

- Generator: Philox 4x32-10 with the constants of Random123 (Salmon et al., SC 2011); four 32-bit counter words
  and two 32-bit key words give four 32-bit output words, a *block*.
- Key, 64 bits, low word first: `splitmix64(run_seed) XOR (step << 32 | direction)`. `step` and `direction` are
  below 2**32, so within a run no two (step, direction) share a key.
- Counter, low word first: `(hash_lo, hash_hi, index_lo, index_hi)`, where `hash` is the 64-bit XXH3 of a UTF-8 text.
- Weights: the text is `"weights/" + name`, with the tensor's name in the Hugging Face checkpoint. Element `e` of the
  row-major flattened tensor is made by block `index = e // 8`: the four output words hold eight 16-bit words, the
  low half of a word first, and element `e` takes number `e % 8`. The 16-bit word indexes the table of `table.py`.
- Sampling: the text is `"sample/" + sample + "/" + problem_id`, the direction is the member's index, or
  `COMMON_MEMBER` when all members share the noise. Vocabulary entry `v` at position `t` takes 32-bit output word
  `v % 4` of the block `index = (v // 4) << 32 | t`; a word `w` is the uniform number `(w + 0.5) / 2**32`.

Numba does not see that compiled kernels in other files depend on `fill_blocks` below: after a change here remove
`__pycache__` (the known answers in `perturb.py` refuse kernels that are out of date).
"""

from __future__ import annotations

import functools

import numpy as np
import xxhash
from numba import njit
from numpy.typing import NDArray

from broadreach.types import UserError

NOISE_FORMAT = 1
COMMON_MEMBER = 2**32 - 1

BLOCKS = 128
"""Blocks made at once by the compiled kernels: their words stay in the first-level cache."""
PAIR = BLOCKS // 2

UInt64Array = NDArray[np.uint64]

_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)
_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def splitmix64(value: int) -> int:
    """The SplitMix64 output function (Steele, Lea and Flood, OOPSLA 2014): a bijection of 64-bit integers."""
    mask = 2**64 - 1
    z = (value + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def noise_key(seed: int, step: int, direction: int) -> int:
    """The 64-bit Philox key of one direction of one step of one run; UserError if an argument is out of range."""
    for label, value, bound in (("seed", seed, 64), ("step", step, 32), ("direction", direction, 32)):
        if not 0 <= value < 2**bound:
            raise UserError(f"noise: {label} is {value}; it must be at least 0 and below 2**{bound}")
    return splitmix64(int(seed)) ^ (int(step) << 32 | int(direction))


@functools.lru_cache(maxsize=65536)
def weights_hash(name: str) -> int:
    """The two low counter words of a tensor, from its canonical (checkpoint) name."""
    return xxhash.xxh3_64_intdigest(f"weights/{name}".encode())


@functools.lru_cache(maxsize=65536)
def sample_hash(problem_id: str, sample: int) -> int:
    """The two low counter words of one response: a problem and which of its samples."""
    return xxhash.xxh3_64_intdigest(f"sample/{sample}/{problem_id}".encode())


def philox_reference(counter: NDArray[np.uint32], key: int) -> NDArray[np.uint32]:
    """Philox 4x32-10 in plain NumPy: counters [..., 4] and a 64-bit key to output words [..., 4]."""
    c0, c1, c2, c3 = (counter[..., i].astype(np.uint64) for i in range(4))
    k0, k1 = np.uint64(key & 0xFFFFFFFF), np.uint64(key >> 32)
    for round_ in range(10):
        r0 = (k0 + np.uint64(round_) * _WEYL_0) & _MASK
        r1 = (k1 + np.uint64(round_) * _WEYL_1) & _MASK
        p0, p1 = c0 * _MULTIPLIER_0, c2 * _MULTIPLIER_1
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ r0, p1 & _MASK, (p0 >> _HALF) ^ c3 ^ r1, p0 & _MASK
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def words_reference(key: int, name_hash: int, first: int, count: int) -> NDArray[np.uint16]:
    """The 16-bit words of elements `first` to `first + count - 1` in plain NumPy: what every kernel must make."""
    blocks = np.arange(first // 8, (first + count + 7) // 8, dtype=np.uint64)
    counter = np.empty((blocks.size, 4), np.uint32)
    counter[:, 0], counter[:, 1] = name_hash & 0xFFFFFFFF, name_hash >> 32
    counter[:, 2], counter[:, 3] = blocks & _MASK, blocks >> _HALF
    words = philox_reference(counter, key)
    halves = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], axis=-1).astype(np.uint16)
    return halves.reshape(-1)[first % 8 : first % 8 + count]


@njit(inline="always")
def philox_pair(
    c0: np.uint64, c1: np.uint64, i0: np.uint64, i1: np.uint64, k0: np.uint64, k1: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Blocks `i0` and `i1` of one stream, each as two 64-bit words (low output word low).

    32-bit words live in 64-bit registers, which LLVM vectorises over counters; two chains hide latency.
    """
    a0, a1, a2, a3 = c0, c1, i0 & _MASK, i0 >> _HALF
    b0, b1, b2, b3 = c0, c1, i1 & _MASK, i1 >> _HALF
    for _ in range(10):
        pa, qa = _MULTIPLIER_0 * a0, _MULTIPLIER_1 * a2
        pb, qb = _MULTIPLIER_0 * b0, _MULTIPLIER_1 * b2
        a0 = (qa >> _HALF) ^ a1 ^ k0
        b0 = (qb >> _HALF) ^ b1 ^ k0
        a2 = (pa >> _HALF) ^ a3 ^ k1
        b2 = (pb >> _HALF) ^ b3 ^ k1
        a1, b1, a3, b3 = qa & _MASK, qb & _MASK, pa & _MASK, pb & _MASK
        k0 = (k0 + _WEYL_0) & _MASK
        k1 = (k1 + _WEYL_1) & _MASK
    return a0 | (a1 << _HALF), a2 | (a3 << _HALF), b0 | (b1 << _HALF), b2 | (b3 << _HALF)


@njit(cache=True, nogil=True)
def fill_blocks(
    words: UInt64Array, blocks: int, key: np.uint64, text_hash: np.uint64, first: np.uint64, stride: np.uint64
) -> None:
    """Make the blocks of index `first`, `first + stride`, ...: at least `blocks` of them, at most BLOCKS.

    `words` has 2 * BLOCKS entries: block b's output words 0 and 1 are entry b (low, high), 2 and 3 entry BLOCKS + b.
    """
    k0, k1 = key & _MASK, key >> _HALF
    h0, h1 = text_hash & _MASK, text_hash >> _HALF
    middle = first + np.uint64(PAIR) * stride
    for i in range(min(blocks, PAIR)):
        step = np.uint64(i) * stride
        a, b, c, d = philox_pair(h0, h1, first + step, middle + step, k0, k1)
        words[i] = a
        words[BLOCKS + i] = b
        words[PAIR + i] = c
        words[BLOCKS + PAIR + i] = d
