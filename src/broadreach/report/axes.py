"""Axes that several figures share: K, shares, updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broadreach.report.words import number


def log_k(axes: Any, ks: Sequence[int]) -> None:
    """K on a logarithmic axis, powers of two marked."""
    ticks = [k for k in ks if k & (k - 1) == 0]
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(k) for k in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(1, ks[-1])
    axes.set_xlabel("K (responses a problem)")


def percent_axis(axes: Any, which: str = "y") -> None:
    """Shares as percentages."""
    from matplotlib.ticker import FuncFormatter

    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{number(100 * value)}%"))


def update_axis(axes: Any) -> None:
    """Updates from left to right, marked at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7, steps=[1, 2, 5, 10]))
    axes.set_xlabel("update")
