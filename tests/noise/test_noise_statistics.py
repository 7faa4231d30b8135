"""The noise is standard normal up to the table's cut, and independent across tensors, steps, members and seeds."""

import itertools

import numpy as np
import pytest

from broadreach import noise

COUNT = 1_000_000


def test_moments_of_a_million_values():
    eps = noise.direction(11, 0, 0, "moments", (COUNT,)).astype(np.float64)
    root = np.sqrt(COUNT)
    assert abs(eps.mean()) < 4.5 / root
    assert abs((eps**2).mean() - 1) < 4.5 * np.sqrt(2) / root
    assert abs((eps**3).mean()) < 4.5 * np.sqrt(15) / root
    assert abs((eps**4).mean() - 3) < 4.5 * np.sqrt(96) / root
    assert np.abs(eps).max() <= 4.325


def test_every_lane_of_a_block_is_uniform_over_the_table():
    q = noise.direction_q(12, 0, 0, "lanes", (COUNT // 8, 8))
    edges = np.quantile(noise.direction_q(13, 0, 0, "edges", (COUNT,)), np.linspace(0, 1, 17)[1:-1])
    for lane in range(8):
        counts = np.bincount(np.searchsorted(edges, q[:, lane]), minlength=16)
        expected = np.bincount(np.searchsorted(edges, q.reshape(-1)), minlength=16) / 8
        assert ((counts - expected) ** 2 / expected).sum() < 50  # 15 degrees of freedom: 1e-5


def streams() -> dict[str, np.ndarray]:
    """Directions that differ from the first in one argument each."""
    n = (500, 400)
    return {
        "first": noise.direction(1, 2, 3, "layers.0.weight", n),
        "tensor": noise.direction(1, 2, 3, "layers.1.weight", n),
        "step": noise.direction(1, 3, 3, "layers.0.weight", n),
        "member": noise.direction(1, 2, 4, "layers.0.weight", n),
        "seed": noise.direction(2, 2, 3, "layers.0.weight", n),
        "step and member swapped": noise.direction(1, 3, 2, "layers.0.weight", n),
    }


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(range(6), 2)))
def test_directions_are_uncorrelated(one, other):
    values = [v.reshape(-1).astype(np.float64) for v in streams().values()]
    a, b = values[one], values[other]
    assert not np.array_equal(a, b)
    for lag in (0, 1, 4, 8):
        x, y = a[lag:], b[: b.size - lag]
        assert abs((x * y).mean()) < 4.5 / np.sqrt(x.size)
        assert abs(((x**2 - 1) * (y**2 - 1)).mean()) < 4.5 * 2 / np.sqrt(x.size)


def test_neighbours_within_a_direction_are_uncorrelated():
    eps = noise.direction(3, 0, 0, "w", (COUNT,)).astype(np.float64)
    for lag in (1, 2, 3, 4, 7, 8, 16, 1024, 2048):
        assert abs((eps[lag:] * eps[:-lag]).mean()) < 4.5 / np.sqrt(COUNT - lag)


def test_many_members_are_nearly_orthogonal():
    members = np.stack([noise.direction(4, 5, m, "w", (20_000,)) for m in range(64)]).astype(np.float64)
    gram = members @ members.T / 20_000
    off = gram[~np.eye(64, dtype=bool)]
    assert np.abs(off).max() < 5.5 / np.sqrt(20_000)
    assert abs(off.std() * np.sqrt(20_000) - 1) < 0.06
