"""Does subtracting a partner evaluation lower the variance of an ES estimate? (method.md section 7, Appendix E)"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class Coupling:
    """How an evaluation and its partner vary together; population variances (ddof 0)."""

    var_difference: float
    var_plus: float
    var_other: float
    covariance: float

    @property
    def kappa(self) -> float:
        """Var(x_plus - x_other) / Var(x_plus) (equation 51)."""
        return self.var_difference / self.var_plus

    @property
    def subtraction_helps(self) -> bool:
        """Whether the covariance is above half the partner's variance, that is kappa below 1 (equation 50)."""
        return self.covariance > self.var_other / 2


def coupling(x_plus: ArrayLike, x_other: ArrayLike) -> Coupling:
    """Variances and covariance of paired evaluations [observations] each.

    ValueError when the lengths differ, there are none, one is not finite, or x_plus does not vary.
    """
    plus, other = np.asarray(x_plus, dtype=np.float64), np.asarray(x_other, dtype=np.float64)
    if plus.ndim != 1 or plus.shape != other.shape:
        raise ValueError(f"kappa: shapes {plus.shape} and {other.shape}; give two lists of one length")
    if plus.size == 0 or not (np.isfinite(plus).all() and np.isfinite(other).all()):
        raise ValueError("kappa: no observations, or one that is not a finite number")
    if (plus == plus[0]).all():
        raise ValueError("kappa is undefined: x_plus does not vary; observe more directions or a larger sigma")
    difference = plus - other
    return Coupling(
        var_difference=float(difference.var()),
        var_plus=float(plus.var()),
        var_other=float(other.var()),
        covariance=float(((plus - plus.mean()) * (other - other.mean())).mean()),
    )


def kappa(x_plus: ArrayLike, x_other: ArrayLike) -> float:
    """Var(x_plus - x_other) / Var(x_plus): below 1, subtracting the partner helps (equation 51).

    `x_other` is the evaluation at the base (kappa_base) or at the mirrored member (kappa_pair). Errors: `coupling`.
    """
    return coupling(x_plus, x_other).kappa
