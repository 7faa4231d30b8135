"""The generator is the published one, the table is Gaussian, and both are addressed as the format says."""

import numpy as np
import pytest
import xxhash

from broadreach.noise import philox, table
from broadreach.types import UserError

# Random123, tests/kat_vectors: "philox4x32 10", counter, key, result.
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words_of(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_reference_gives_the_published_answers(counter, key, expected):
    low, high = words_of(key)
    result = philox.philox_reference(np.array(words_of(counter), np.uint32), high << 32 | low)
    assert result.tolist() == words_of(expected)


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_compiled_blocks_give_the_published_answers(counter, key, expected):
    c0, c1, c2, c3 = words_of(counter)
    k0, k1 = words_of(key)
    words = np.zeros(2 * philox.BLOCKS, np.uint64)
    text_hash, index = np.uint64(c1 << 32 | c0), np.uint64(c3 << 32 | c2)
    philox.fill_blocks(words, 1, np.uint64(k1 << 32 | k0), text_hash, index, np.uint64(1))
    e = words_of(expected)
    assert [int(words[0]), int(words[philox.BLOCKS])] == [e[1] << 32 | e[0], e[3] << 32 | e[2]]


def test_splitmix64_gives_the_published_sequence():
    # First outputs of splitmix64.c (Vigna) from state 1234567; each call here is one step from its own state.
    golden = 0x9E3779B97F4A7C15
    states = [(1234567 + i * golden) % 2**64 for i in range(3)]
    assert [philox.splitmix64(s) for s in states] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_keys_of_a_run_are_distinct_and_bounded():
    keys = {philox.noise_key(7, step, d) for step in (0, 1, 5, 2**32 - 1) for d in (0, 1, 2, 2**32 - 1)}
    assert len(keys) == 16
    for bad in ((-1, 0, 0), (2**64, 0, 0), (0, 2**32, 0), (0, 0, 2**32), (0, 0, -1)):
        with pytest.raises(UserError, match="must be at least 0 and below"):
            philox.noise_key(*bad)


def test_tensor_and_sample_hashes_never_meet():
    assert philox.weights_hash("a") == xxhash.xxh3_64_intdigest(b"weights/a")
    assert philox.sample_hash("p/1", 2) == xxhash.xxh3_64_intdigest(b"sample/2/p/1")
    assert philox.sample_hash("1", 11) != philox.sample_hash("11", 1)


def test_words_follow_the_documented_order():
    key, text_hash = philox.noise_key(1, 2, 3), philox.weights_hash("w")
    counter = np.array([text_hash & 0xFFFFFFFF, text_hash >> 32, 5, 0], np.uint32)
    block = philox.philox_reference(counter, key)
    expected = [int(w) >> shift & 0xFFFF for w in block for shift in (0, 16)]
    assert philox.words_reference(key, text_hash, 40, 8).tolist() == expected
    assert philox.words_reference(key, text_hash, 43, 3).tolist() == expected[3:6]


def test_table_is_symmetric_with_unit_variance():
    q = table.quantile_table().astype(np.int64)
    assert q.shape == (65536,)
    assert (q == -q[::-1]).all()
    assert q.sum() == 0
    assert (np.diff(q) >= 0).all()
    eps = q / 4096
    assert abs((eps**2).mean() - 1) < 1e-4
    assert 4.3 < eps.max() < 4.35
    assert abs((eps**4).mean() - 3) < 2e-3


def test_table_digest_is_the_stored_one():
    assert table.table_digest() == table.TABLE_DIGEST == "780e87ba6396361add6c519b9ff19d97"


def test_wrong_table_is_refused(monkeypatch):
    table.quantile_table.cache_clear()
    monkeypatch.setattr(table, "TABLE_DIGEST", "0" * 32)
    with pytest.raises(RuntimeError, match="would not replay elsewhere"):
        table.quantile_table()
    monkeypatch.undo()
    assert table.quantile_table().size == 65536


@pytest.mark.parametrize("sigma", [1e-30, 1e-4, 0.001, 0.005, 0.3, 17.0])
def test_sigma_table_is_one_rounding_however_it_is_computed(sigma):
    exact = np.float64(np.float32(sigma)) * table.quantile_table() / 4096
    product = table.check_scale(sigma, 1) * table.quantile_table().astype(np.float32)
    assert (table.sigma_table(sigma) == exact.astype(np.float32)).all()
    assert (table.sigma_table(sigma) == product).all()
    assert (table.sigma_table(sigma, -1) == -product).all()


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf"), 1e31])
def test_bad_sigma_is_a_user_error(sigma):
    with pytest.raises(UserError, match="sigma is"):
        table.sigma_table(sigma)
