"""Every claim of the paper that a comparison can speak to (method.md, section 8), in order."""

from __future__ import annotations

from broadreach.report.claims import UNMEASURED, Claim
from broadreach.report.claims_scores import entropy_claims, front_claims, held_out_claims, score_claims
from broadreach.report.claims_weights import drift_claims, largest_claims, sparsity_claim
from broadreach.report.comparison_data import Comparison
from broadreach.report.comparison_stats import Statistics

SETTINGS_CLAIM = Claim(
    "7",
    "z-scoring beats raw rewards; two-point gives no advantage; larger models need smaller N",
    UNMEASURED,
    "Needs runs with other estimators, populations and models: `broadreach sweep` trains them.",
)


def all_claims(data: Comparison, stats: Statistics) -> list[Claim]:
    """Every part of claims 1 to 7, in order; what the given runs cannot decide says why."""
    return [
        *score_claims(data, stats),
        *entropy_claims(data, stats),
        *front_claims(data, stats),
        *drift_claims(data),
        sparsity_claim(data, stats),
        *largest_claims(data),
        *held_out_claims(data, stats),
        SETTINGS_CLAIM,
    ]
