"""The paper's runs as null models, and the statistics it published about their weights (Tables 4, 11 and 12)."""

from __future__ import annotations

from dataclasses import dataclass

from broadreach.evaluation.published import published_rows
from broadreach.types import UserError

MEMBERS, SIGMA, ALPHA = 32, 1.5e-3, 2.5e-4
_UPDATES = {
    "qwen2.5-1.5b": ("Qwen2.5-1.5B-Instruct", 234),
    "llama-3.2-3b": ("Llama-3.2-3B-Instruct", 234),
    "qwen2.5-7b": ("Qwen2.5-7B-Instruct", 234),
    "deepseek-r1-distill-qwen-1.5b": ("DeepSeek-R1-Distill-Qwen-1.5B", 630),
}
"""GSM8K: 2 epochs of 117 batches; DeepScaleR: 40,315 rows in batches of 64, one epoch."""


@dataclass(frozen=True, slots=True)
class PaperRun:
    """Settings of one published ES run and what its weights showed."""

    model: str
    updates: int
    relative: float
    """Published D_rel."""
    sparsity: dict[float, float]
    """tau -> published s_tau, as shares."""


def paper_run(preset: str) -> PaperRun:
    """The run called `preset`; UserError that lists the presets."""
    if preset not in _UPDATES:
        raise UserError(f"--paper {preset}: the published runs are {', '.join(_UPDATES)}")
    model, updates = _UPDATES[preset]
    row = next(row for row in published_rows("drift.csv") if row["model"] == model)
    taus = {
        float(row["tau"]): float(row["sparsity_percent"]) / 100
        for row in published_rows("threshold.csv")
        if row["model"] == model and row["tau"] not in ("0", "inf")
    }
    return PaperRun(model, updates, float(row["es_rel_l2_x100"]) / 100, taus)
