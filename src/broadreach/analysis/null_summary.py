"""What a null predicts: drift, sparsity and maxima by kind and layer, their intervals, and observed minus null."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broadreach.analysis.drift_parts import TensorDrift
from broadreach.analysis.null import FIXED, NullTally
from broadreach.analysis.null_maxima import Maximum, maxima
from broadreach.analysis.null_sample import Floats
from broadreach.evaluation.statistics import Interval, bootstrap


@dataclass(frozen=True, slots=True)
class Prediction:
    """One statistic of one part of the model under the null."""

    value: float
    low: float
    high: float
    """Bootstrap over the groups of all seeds: sampling of coordinates and noise together."""
    between_seeds: float
    """Standard deviation of the statistic over seeds."""

    def excess(self, observed: float) -> Interval:
        """Observed minus null; only the null's error is in the interval."""
        return Interval(observed - self.value, observed - self.high, observed - self.low, 0.95, 0)


@dataclass(frozen=True, slots=True)
class NullPart:
    """A kind, a layer, or the model."""

    name: str
    size: int
    relative: Prediction
    sparsity: tuple[Prediction, ...]
    unmoved: Prediction
    """Share of coordinates that end where they began."""
    rms: Prediction
    maximum: Maximum | None = None
    """None for layers."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The random walk of exact arithmetic, without simulation (no anchor decay, no rounding)."""

    deviation: float
    relative: float
    sparsity: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class NullSummary:
    """Everything that one arithmetic predicts."""

    precision: str
    total: NullPart
    kinds: tuple[NullPart, ...]
    layers: tuple[NullPart, ...]
    closed: ClosedForm
    taus: tuple[float, ...]


def summarise(tally: NullTally, dtype: str, base_squares: Mapping[str, float] | None = None) -> NullSummary:
    """Predictions for the model, its kinds and layers.

    `base_squares` (part name -> ||base||^2, the model as "model") replaces the sampled norms where it is known exactly.
    """
    known = base_squares or {}
    largest = _maxima(tally, dtype)

    def part(name: str, chosen: Sequence[bool]) -> NullPart:
        return _part(tally, name, np.asarray(chosen), known.get(name), largest.get(name))

    total = part("model", [True] * len(tally.names))
    return NullSummary(
        precision=tally.precision,
        total=total,
        kinds=tuple(part(kind, [k == kind for k in tally.kinds]) for kind in sorted(set(tally.kinds))),
        layers=tuple(part(layer, [one == layer for one in tally.layers]) for layer in sorted(set(tally.layers))),
        closed=_closed(tally, known.get("model")),
        taus=tally.taus,
    )


def observed_squares(total: TensorDrift, parts: Sequence[TensorDrift]) -> dict[str, float]:
    """Exact ||base||^2 of the model and its parts, for `summarise`."""
    return {"model": total.squared_base, **{part.name: part.squared_base for part in parts}}


def _part(tally: NullTally, name: str, chosen: Floats, base: float | None, largest: Maximum | None) -> NullPart:
    sums = tally.sums[:, chosen].sum(axis=1)
    size = int(tally.sizes[chosen].sum())
    norm = sums[..., 1] if base is None else np.full(sums.shape[:2], base)
    whole = sums.mean(axis=1)
    norm_whole = norm.mean(axis=1)
    columns = range(FIXED, sums.shape[-1])
    return NullPart(
        name=name,
        size=size,
        relative=_predict(_root(sums[..., 0], norm), _root(whole[:, 0], norm_whole)),
        sparsity=tuple(_predict(_ratio(sums[..., i], sums[..., 2]), _ratio(whole[:, i], whole[:, 2])) for i in columns),
        unmoved=_predict(1 - sums[..., 2] / size, 1 - whole[:, 2] / size),
        rms=_predict(np.sqrt(sums[..., 0] / size), np.sqrt(whole[:, 0] / size)),
        maximum=largest,
    )


def _predict(groups: Floats, seeds: Floats) -> Prediction:
    """A statistic by seed and group [seeds, groups], and by seed [seeds]: the mean over seeds with its interval."""
    value, spread = float(np.mean(seeds)), float(np.std(seeds, ddof=1)) if len(seeds) > 1 else math.nan
    cells = groups.reshape(-1)
    if not (np.isfinite(cells).all() and math.isfinite(value)):
        return Prediction(value, math.nan, math.nan, spread)
    found = bootstrap(cells)
    return Prediction(value, value + found.low - found.value, value + found.high - found.value, spread)


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.full(a.shape, np.nan), where=b > 0)


def _root(a: Floats, b: Floats) -> Floats:
    return np.sqrt(_ratio(a, b))


def _closed(tally: NullTally, base: float | None) -> ClosedForm:
    norm = float(tally.sums[..., 1].sum(axis=1).mean()) if base is None else base
    deviation = tally.deviation
    relative = deviation * math.sqrt(tally.size / norm) if norm else math.nan
    shares = tuple(math.erf(tau / (deviation * math.sqrt(2))) if deviation else math.nan for tau in tally.taus)
    return ClosedForm(deviation, relative, shares)


def _maxima(tally: NullTally, dtype: str) -> dict[str, Maximum]:
    kinds = np.array(tally.kinds)
    sizes = {str(kind): tally.octave_sizes[kinds == kind].sum(axis=0) for kind in sorted(set(tally.kinds))}
    model = {"model": tally.octave_sizes.sum(axis=0)}
    deviation, precision = tally.octave_deviation, tally.precision
    return {**maxima(sizes, deviation, precision, dtype), **maxima(model, deviation, precision, dtype)}
