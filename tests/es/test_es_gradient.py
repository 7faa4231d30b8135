"""On a quadratic the estimators are what the theory says: unbiased, and right in their variance."""

import numpy as np
import pytest

from broadreach.config import EsSettings
from broadreach.es.loop import es_step
from broadreach.noise import direction
from broadreach.noise.update import apply_update

SIZE, SIGMA = 12, 0.05


def quadratic(theta):
    """F with a known gradient: curvature 1..SIZE, centre at ones."""
    return -0.5 * float(np.sum(np.arange(1, SIZE + 1) * (theta - 1) ** 2))


@pytest.mark.parametrize("estimator", ["one_point", "two_point"])
def test_the_mean_of_the_estimator_is_the_gradient_within_four_standard_errors(estimator):
    settings = EsSettings(population=64, sigma=SIGMA, alpha=1.0, estimator=estimator, shaping="none")
    theta = np.linspace(-0.3, 0.4, SIZE).astype(np.float32)
    gradient = -np.arange(1, SIZE + 1) * (theta.astype(np.float64) - 1)
    estimates = []
    for step in range(1, 201):
        centre = {"w": theta.copy()}

        def evaluate(members, perturbation):
            return [
                quadratic(theta + m.sign * SIGMA * direction(7, perturbation.step, m.direction, "w", (SIZE,)))
                for m in members
            ]

        es_step(settings, 7, step, 200, evaluate, lambda u, p: apply_update(centre, u, p.seed, p.step))
        estimates.append(centre["w"].astype(np.float64) - theta)
    mean, error = np.mean(estimates, axis=0), np.std(estimates, axis=0, ddof=1) / np.sqrt(len(estimates))
    assert np.all(np.abs(mean - gradient) < 4 * error + 1e-4)
    assert np.all(error < np.abs(gradient).max())  # the test has power: the error is smaller than what it looks for


def test_es_climbs_the_quadratic():
    settings = EsSettings(population=32, sigma=SIGMA, alpha=0.05)
    centre = {"w": np.zeros(SIZE, np.float32)}
    before = quadratic(centre["w"])
    for step in range(1, 61):
        theta = centre["w"].copy()

        def evaluate(members, perturbation):
            noise = (direction(3, perturbation.step, m.direction, "w", (SIZE,)) for m in members)
            return [quadratic(theta + SIGMA * eps) for eps in noise]

        es_step(settings, 3, step, 60, evaluate, lambda u, p: apply_update(centre, u, p.seed, p.step))
    assert quadratic(centre["w"]) > before / 10
