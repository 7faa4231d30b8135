"""Table 13: does subtracting a partner evaluation lower the variance?"""

from __future__ import annotations

from broadreach.evaluation.published import published_rows
from broadreach.experiments.paper.files import csv_rows, ends
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.report.claims import UNDECIDED, Claim, falls, rises
from broadreach.report.paper_item import Entry

OBJECTIVES = {
    "regenerated_reward": "reward of new rollouts",
    "gsm8k_regenerated_rollout_reward": "reward of new rollouts",
    "supervised_cross_entropy": "supervised cross-entropy",
    "sst2_supervised_ce": "supervised cross-entropy",
    "mean_token_log_probability": "mean token log-probability",
    "policy_sequence_loss": "policy sequence loss",
    "grpo_surrogate": "GRPO surrogate",
}
COLUMNS = {
    "corr_plus_base": "corr(X+, X0)",
    "kappa_base": "kappa base",
    "corr_plus_minus": "corr(X+, X-)",
    "kappa_pair": "kappa pair",
    "within_kappa_base": "kappa base, per prompt",
    "within_kappa_pair": "kappa pair, per prompt",
}


def _build(plan: PaperPlan) -> Found:
    rows = csv_rows(plan.folder / "estimator" / "estimator.csv")
    entries = []
    for row in rows:
        panel = _panel(plan.scale.estimator_model, row)
        for name, column in COLUMNS.items():
            found = ends(row, name, f"{name}_low", f"{name}_high")
            entries.append(Entry("ours", panel, _row(row), column, *found, unit="ratio"))
    return Found(tuple(entries), tuple(_claims(rows)), ("A kappa below 1 means that subtraction lowers the variance.",))


def _panel(model: str, row: dict[str, str]) -> str:
    return f"{model.rsplit('/', 1)[-1]}, sigma {float(row['sigma']):g}"


def _row(row: dict[str, str]) -> str:
    words = {"common_seed": ", common seeds", "independent_seed": ", independent seeds"}
    return OBJECTIVES[row["objective"]] + words.get(row["coupling"], "")


def _claims(rows: list[dict[str, str]]) -> list[Claim]:
    """The paper: on regenerated rewards neither subtraction helps at sigma 1e-3; on fixed objectives both do."""
    largest = max(float(row["sigma"]) for row in rows)
    found = []
    for row in rows:
        if float(row["sigma"]) != largest:
            continue
        fixed = row["objective"] != "regenerated_reward"
        value, low, high = ends(row, "kappa_pair", "kappa_pair_low", "kappa_pair_high")
        statement = f"Subtracting the mirrored evaluation {'lowers' if fixed else 'raises'} the variance: {_row(row)}"
        if low is None or value is None or high is None:
            found.append(Claim("7d", statement, UNDECIDED, "kappa is undefined: X+ does not vary."))
            continue
        beyond = {"low": low - 1, "high": high - 1}
        evidence = f"kappa pair {value:.3g} [{low:.3g}, {high:.3g}] at sigma {largest:g}."
        found.append(Claim("7d", statement, (falls if fixed else rises)(beyond), evidence))
    return found


def _published() -> tuple[Entry, ...]:
    return tuple(
        Entry("published", _panel("published models", row), _row(row), COLUMNS[name], float(row[name]), unit="ratio")
        for row in published_rows("estimator.csv")
        for name in ("corr_plus_base", "kappa_base", "corr_plus_minus", "kappa_pair")
    )


ITEM = Definition(
    "table-13",
    "Estimator diagnostic",
    "Correlations of X+ with X0 and X-, and the variance ratios kappa (51), for three classes of objectives.",
    "table",
    ("estimator",),
    _build,
    _published,
)
