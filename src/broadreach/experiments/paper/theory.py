"""The theory's quantities, measured (method.md, section 6); the paper prints none of them."""

from __future__ import annotations

from broadreach.experiments.paper.files import csv_rows, ends, model_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.report.paper_item import Entry

NATS = ("js_", "entropy", "eps_succ")


def _unit(quantity: str) -> str:
    """Nats for divergences and entropies; probabilities, covariances and ratios are plain numbers."""
    return "nats" if any(part in quantity for part in NATS) and "over" not in quantity else "ratio"


def _build(plan: PaperPlan) -> Found:
    model = model_of(plan, plan.scale.easy[0])
    entries = tuple(
        Entry("ours", model, row["quantity"], f"update {row['step']}", *ends(row), unit=_unit(row["quantity"]))
        for row in csv_rows(plan.folder / "theory" / "diversity.csv")
    )
    return Found(entries, (), ("What each row is, its unit and how far to trust it: docs/diversity.md.",))


ITEM = Definition(
    "theory",
    "The theory's quantities",
    "Success and policy diversity (9), (10), coverage of population and policy (11), (25), weighted gain (26), oracle "
    "gate (31), Proposition 1 (12)-(14): stated in the paper, measured nowhere.",
    "table",
    ("easy", "theory"),
    _build,
)
