"""Table 13 as published (arXiv 2608.27351), to stand beside ours where objective and sigma agree."""

from __future__ import annotations

from functools import lru_cache

from broadreach.evaluation.published import published_rows

NAMES = {
    "regenerated_reward": "gsm8k_regenerated_rollout_reward",
    "supervised_cross_entropy": "sst2_supervised_ce",
}
"""Our objectives where the table has other names; the data are then others too."""


def published(objective: str, coupling: str, sigma: float) -> dict[str, float] | None:
    """correlations and kappas of the paper, or None where it has no such row."""
    return _table().get((NAMES.get(objective, objective), coupling, sigma))


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str, float], dict[str, float]]:
    rows = published_rows("estimator.csv")
    columns = ("corr_plus_base", "kappa_base", "corr_plus_minus", "kappa_pair")
    return {
        (row["objective"], row["coupling"], float(row["sigma"])): {name: float(row[name]) for name in columns}
        for row in rows
    }
