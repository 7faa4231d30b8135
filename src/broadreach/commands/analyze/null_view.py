"""How `analyze null` tells and stores what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broadreach.analysis.drift import Drift
    from broadreach.analysis.drift_parts import TensorDrift
    from broadreach.analysis.null_paper import PaperRun
    from broadreach.analysis.null_summary import NullPart, NullSummary, Prediction


def null_rows(found: Mapping[str, NullSummary], observed: Drift | None, paper: PaperRun | None) -> list[dict[str, Any]]:
    """Tidy rows: one statistic of one part under one arithmetic."""
    rows: list[dict[str, Any]] = []
    for label, summary in found.items():
        parts = [("model", summary.total), *(("kind", part) for part in summary.kinds)]
        parts += [("layer", part) for part in summary.layers]
        for level, part in parts:
            seen = _observed(observed, level, part.name)
            for name, prediction in _statistics(part, summary.taus):
                row: dict[str, Any] = {"null": label, "precision": summary.precision, "level": level}
                row |= {"part": part.name, "parameters": part.size, "statistic": name, "value": prediction.value}
                row |= {"low": prediction.low, "high": prediction.high, "between_seeds": prediction.between_seeds}
                row |= {"closed_form": _closed(summary, name) if level == "model" else None}
                row |= _against(prediction, None if seen is None else _seen_value(seen, name, summary.taus))
                row["published"] = _published(paper, name) if level == "model" else None
                rows.append(row)
            if part.maximum is not None:
                largest = part.maximum
                base = {"null": label, "precision": summary.precision, "level": level, "part": part.name}
                ends = {"value": largest.median, "low": largest.low, "high": largest.high}
                top = {"observed": None if seen is None else seen.maximum}
                rows.append({**base, "parameters": part.size, "statistic": "max_change", **ends, **top})
                share = {"statistic": "share_of_top_100", "value": largest.top_share}
                rows.append(
                    {**base, "parameters": part.size, **share, "observed": _top_share(observed, level, part.name)}
                )
    return rows


def show_null(found: Mapping[str, NullSummary], observed: Drift | None, paper: PaperRun | None) -> None:
    """The table of the whole model, with published and observed numbers beside, and the kinds."""
    from broadreach.commands.analyze.output import print_table

    taus = next(iter(found.values())).taus
    columns = ["", "rel. L2 %", "rms", *(f"s({tau:g}) %" for tau in taus), "unmoved %"]
    rows: list[list[str]] = []
    if paper is not None:
        shares = [_text(paper.sparsity.get(tau)) for tau in taus]
        rows.append([f"published, {paper.model}", f"{100 * paper.relative:.3f}", "", *shares, ""])
    if observed is not None:
        total = observed.total
        shares = [_text(share) for share in total.sparsity]
        still = f"{100 * (1 - total.moved / total.size):.2f}"
        rows.append(["observed", f"{100 * total.relative:.4f}", f"{total.rms:.3e}", *shares, still])
    closed = next(iter(found.values())).closed
    shares = [_text(share) for share in closed.sparsity]
    rows.append(["closed form", f"{100 * closed.relative:.4f}", f"{closed.deviation:.3e}", *shares, ""])
    for label, summary in found.items():
        part = summary.total
        shares = [_pair(share) for share in part.sparsity]
        first = [f"null, {label}", _pair(part.relative, 4), f"{part.rms.value:.3e}"]
        rows.append([*first, *shares, _pair(part.unmoved)])
    print_table("null model (value ± half of the 95 % interval)", columns, rows)
    for label, summary in found.items():
        print_table(f"largest |change| under the null, {label}", *_maxima(summary, observed))


def verdicts(found: Mapping[str, NullSummary], paper: PaperRun, points: float, base: str) -> list[str]:
    """In words: which published statistics each null comes within `points` percentage points of."""
    lines = [
        f"base weights: {base}; the published numbers are of {paper.model}, and hold against a null from its weights"
    ]
    for label, summary in found.items():
        gaps = {
            tau: 100 * (paper.sparsity[tau] - prediction.value)
            for tau, prediction in zip(summary.taus, summary.total.sparsity, strict=True)
            if tau in paper.sparsity
        }
        near = [f"s({tau:g})" for tau, gap in gaps.items() if abs(gap) <= points]
        far = [f"s({tau:g}) by {gap:+.1f}" for tau, gap in gaps.items() if abs(gap) > points]
        text = f"null, {label}: reproduces {', '.join(near) or 'no published sparsity'} within {points:g} points"
        lines.append(text + (f"; published minus null is off for {', '.join(far)}" if far else ""))
    return lines


def _statistics(part: NullPart, taus: Sequence[float]) -> list[tuple[str, Prediction]]:
    found = [("relative_l2", part.relative), ("rms_change", part.rms), ("unmoved", part.unmoved)]
    return found + [(f"s_{tau:g}", share) for tau, share in zip(taus, part.sparsity, strict=True)]


def _against(prediction: Prediction, observed: float | None) -> dict[str, Any]:
    if observed is None:
        return {"observed": None, "excess": None, "excess_low": None, "excess_high": None}
    excess = prediction.excess(observed)
    return {"observed": observed, "excess": excess.value, "excess_low": excess.low, "excess_high": excess.high}


def _closed(summary: NullSummary, name: str) -> float | None:
    shares = {f"s_{tau:g}": share for tau, share in zip(summary.taus, summary.closed.sparsity, strict=True)}
    return {"relative_l2": summary.closed.relative, "rms_change": summary.closed.deviation, **shares}.get(name)


def _published(paper: PaperRun | None, name: str) -> float | None:
    if paper is None:
        return None
    return {"relative_l2": paper.relative, **{f"s_{tau:g}": share for tau, share in paper.sparsity.items()}}.get(name)


def _observed(observed: Drift | None, level: str, name: str) -> TensorDrift | None:
    if observed is None:
        return None
    parts = {"model": (observed.total,), "kind": observed.kinds, "layer": observed.layers}[level]
    return next((part for part in parts if part.name == name), None)


def _seen_value(part: TensorDrift, name: str, taus: Sequence[float]) -> float:
    values = {"relative_l2": part.relative, "rms_change": part.rms, "unmoved": 1 - part.moved / part.size}
    values |= {f"s_{tau:g}": share for tau, share in zip(taus, part.sparsity, strict=True)}
    return values[name]


def _top_share(observed: Drift | None, level: str, name: str) -> float | None:
    if observed is None or not observed.top:
        return None
    return 1.0 if level == "model" else sum(place.kind == name for place in observed.top) / len(observed.top)


def _maxima(summary: NullSummary, observed: Drift | None) -> tuple[list[str], list[list[str]]]:
    columns = ["kind", "weights", "rms", "median", "95 % range", "of the top 100 %"]
    columns += ["observed max", "observed top 100 %"] if observed is not None else []
    rows = []
    for part in summary.kinds:
        if part.maximum is None:
            continue
        largest = part.maximum
        row = [part.name, f"{part.size:,}", f"{part.rms.value:.2e}", f"{largest.median:.3e}"]
        row += [f"{largest.low:.2e} to {largest.high:.2e}", f"{100 * largest.top_share:.1f}"]
        seen = _observed(observed, "kind", part.name)
        if seen is not None:
            row += [f"{seen.maximum:.3e}", f"{100 * (_top_share(observed, 'kind', part.name) or 0):.0f}"]
        rows.append(row)
    return columns, rows


def _pair(prediction: Prediction, digits: int = 2) -> str:
    half = (prediction.high - prediction.low) / 2
    return f"{100 * prediction.value:.{digits}f} ± {100 * half:.{digits}f}"


def _text(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}"
