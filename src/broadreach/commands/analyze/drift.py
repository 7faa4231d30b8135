"""`broadreach analyze drift`: how far two sets of weights lie apart, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from broadreach.analysis.drift import Drift
    from broadreach.analysis.drift_parts import TensorDrift


def drift(
    a: Annotated[str, typer.Argument(help="From: a Hugging Face directory, a model name, or a run folder.")],
    b: Annotated[
        str | None, typer.Argument(help="To: the same. Without it, A is a run and its own base is the start.")
    ] = None,
    step: Annotated[int | None, typer.Option("--step", help="Update of the run B (default: the last).")] = None,
    from_step: Annotated[
        int | None, typer.Option("--from-step", help="Update of the run A (default: the last).")
    ] = None,
    other: Annotated[
        str | None, typer.Option("--other", help="A third model C: the cosine of B - A and C - A.")
    ] = None,
    other_step: Annotated[int | None, typer.Option("--other-step", help="Update of the run C.")] = None,
    taus: Annotated[
        str, typer.Option("--taus", help="Thresholds of the update sparsity.")
    ] = "2.5e-4,5e-4,1e-3,1.5e-3,2e-3",
    out: Annotated[str | None, typer.Option("--out", help="Folder of the results (default: RUN/analysis).")] = None,
) -> None:
    """Relative L2 (15), update sparsity (16), histogram and largest changes, by tensor, kind and layer."""
    from broadreach.analysis.drift import drift as measure
    from broadreach.analysis.drift_check import check_taus
    from broadreach.commands.analyze.output import write_analysis
    from broadreach.commands.analyze.progress import watch
    from broadreach.commands.analyze.weights import base_model, default_out, open_model
    from broadreach.commands.lists import numbers
    from broadreach.types import UserError

    chosen = numbers(taus, "--taus")
    check_taus(chosen)
    if b is None:
        if from_step is not None:
            raise UserError("--from-step belongs to two models; one run alone is measured from its base")
        after = open_model(a, step)
        if after.run is None:
            raise UserError(f"{a} is not a run folder: give two models, or one run to measure from its base")
        before = base_model(after.run)
    else:
        before, after = open_model(a, from_step), open_model(b, step)
    third = open_model(other, other_step) if other is not None else None
    with watch("weights") as progress:
        found = measure(
            before.tensors, after.tensors, chosen, third.tensors if third is not None else None, progress=progress
        )
    run = after.run or before.run
    values: dict[str, Any] = {
        "settings": {
            "base": before.facts(),
            "model": after.facts(),
            "other": None if third is None else third.facts(),
            "taus": chosen,
        },
        **_values(found, third is not None),
    }
    paths = write_analysis(default_out(out, run, f"drift-{a}-{b}"), "drift", values, _rows(found, third is not None))
    _show(found, third is not None)
    print(f"{paths[0]}\n{paths[1]}")


def _values(found: Drift, cosine: bool) -> dict[str, Any]:
    from broadreach.analysis.drift import EDGES

    return {
        "model": _part(found.total, found, cosine),
        "kinds": {part.name: _part(part, found, cosine) for part in found.kinds},
        "layers": {part.name: _part(part, found, cosine) for part in found.layers},
        "histogram": {"edges": EDGES.tolist(), "counts": found.histogram.tolist()},
        "top": [
            {
                "tensor": place.tensor,
                "kind": place.kind,
                "index": place.index,
                "base": place.base,
                "value": place.value,
                "change": place.change,
            }
            for place in found.top
        ],
    }


def _part(part: TensorDrift, found: Drift, cosine: bool) -> dict[str, Any]:
    values = {
        "parameters": part.size,
        "relative_l2": part.relative,
        "rms_change": part.rms,
        "moved": part.moved,
        "max_change": part.maximum,
        "max_place": {"tensor": part.place[0], "flat_index": part.place[1]},
        "sparsity": dict(zip(map(str, found.taus), part.sparsity, strict=True)),
    }
    return {**values, "cosine": part.cosine} if cosine else values


def _rows(found: Drift, cosine: bool) -> list[dict[str, Any]]:
    levels = [("model", [found.total]), ("kind", found.kinds), ("layer", found.layers), ("tensor", found.tensors)]
    rows = []
    for level, parts in levels:
        for part in parts:
            row: dict[str, Any] = {
                "level": level,
                "name": part.name,
                "kind": part.kind,
                "layer": part.layer,
                "parameters": part.size,
                "relative_l2": part.relative,
                "rms_change": part.rms,
                "max_change": part.maximum,
                "moved": part.moved,
            }
            row |= {f"s_{tau:g}": share for tau, share in zip(found.taus, part.sparsity, strict=True)}
            rows.append({**row, "cosine": part.cosine} if cosine else row)
    return rows


def _show(found: Drift, cosine: bool) -> None:
    from collections import Counter

    from broadreach.commands.analyze.output import print_table

    columns = ["part", "weights", "rel. L2 %", "rms", "max", "moved %", *(f"s({tau:g}) %" for tau in found.taus)]
    columns += ["cosine"] if cosine else []
    rows = []
    for part in (found.total, *found.kinds):
        cells = [part.name, f"{part.size:,}", f"{100 * part.relative:.4f}", f"{part.rms:.2e}", f"{part.maximum:.3e}"]
        cells += [f"{100 * part.moved / max(part.size, 1):.2f}", *(f"{100 * share:.2f}" for share in part.sparsity)]
        rows.append([*cells, f"{part.cosine:+.4f}"] if cosine else cells)
    print_table("drift", columns, rows)
    kinds = Counter(place.kind for place in found.top)
    if kinds:
        print(f"the {len(found.top)} largest changes: " + ", ".join(f"{kind} {n}" for kind, n in kinds.most_common()))
