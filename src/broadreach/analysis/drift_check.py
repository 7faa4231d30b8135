"""Models that can be compared, and thresholds that make sense."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from broadreach.models.kinds import tensor_kind
from broadreach.types import UserError


def check_taus(taus: Sequence[float]) -> None:
    """UserError unless every tau is a positive number and they increase."""
    if not taus or any(not 0 < tau < math.inf for tau in taus) or any(a >= b for a, b in pairwise(taus)):
        raise UserError(f"taus {list(taus)} must be positive and increasing")


def check_models(base: Mapping[str, Any], other: Mapping[str, Any], third: Mapping[str, Any] | None = None) -> None:
    """UserError that names the first tensor that one model lacks or has in another shape."""
    if not base:
        raise UserError("the models have no tensors: nothing to compare")
    for label, model in (("second", other), ("third", third)):
        if model is not None:
            _check_pair(base, model, label)


def _check_pair(base: Mapping[str, Any], other: Mapping[str, Any], label: str) -> None:
    for name in sorted(set(base) & set(other)):
        first, second = tuple(base[name].shape), tuple(other[name].shape)
        if first != second:
            vocabulary = tensor_kind(name) in ("embedding", "head") and first[1:] == second[1:]
            hint = f": vocabularies of {first[0]} and {second[0]} tokens" if vocabulary else ""
            raise UserError(f"tensor {name} has shape {first} in the first model and {second} in the {label}{hint}")
    differing = sorted(set(base) ^ set(other))
    if differing:
        where = "first" if differing[0] in base else label
        raise UserError(
            f"only the {where} model has {differing[0]} ({len(differing)} such tensors); compare like with like"
        )
