"""The claims about the weights (4 and 5 of method.md, section 8): drift, thresholded updates, the largest changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from broadreach.evaluation.seeds import SeedIntervals, seed_differences
from broadreach.evaluation.statistics import Floats
from broadreach.evaluation.student import student_interval
from broadreach.evaluation.summary import Json, refuse_unlike
from broadreach.report.claims import CONFIRMED, REFUTED, UNDECIDED, UNMEASURED, Claim, absent, rises, stays
from broadreach.report.comparison_analyses import Largest, Thresholded, last_drift, read_largest, read_threshold
from broadreach.report.comparison_data import Comparison, Method
from broadreach.report.comparison_stats import Statistics, entry, paired_seeds
from broadreach.report.words import counted, percent
from broadreach.types import UserError

DRIFT_RATIO = (40.7, 44.1)
"""The paper's range of ES drift over GRPO drift (Table 4)."""
SPARSITY = 0.78
NEAR = 0.05
"""A threshold counts as near the paper's update sparsity within so much of it."""
HALF_POINT = 0.005
RULE_OF_THREE = 3.0
"""Of n problems none differed: the share that differs lies below 3 / n with 95% confidence."""


def drift_claims(data: Comparison) -> list[Claim]:
    """4a and 4b: ES drifts farther than GRPO, and 40.7 to 44.1 times as far."""
    es, grpo = data.first("es"), data.first("grpo")
    low, high = DRIFT_RATIO
    farther, ratio = "ES drifts farther from the base than GRPO", f"ES drifts {low} to {high} times as far as GRPO"
    if not (es and grpo):
        return [absent("4a", farther), absent("4b", ratio)]
    pairs = zip(*paired_seeds(es, grpo), strict=True)
    drifts = [(last_drift(es.runs[i].metrics), last_drift(grpo.runs[j].metrics)) for i, j in pairs]
    logs = [math.log(far / near) for far, near in drifts if far and near]
    if not logs:
        reason = "ES or GRPO has not moved, or its metrics.jsonl records no drift."
        return [Claim("4a", farther, UNMEASURED, reason), Claim("4b", ratio, UNMEASURED, reason)]
    middle = math.exp(sum(logs) / len(logs))
    if len(logs) < 2:
        said = f"Ratio {middle:.2f} with one pair of seeds, so there is no interval to decide by."
        return [Claim("4a", farther, UNDECIDED, said), Claim("4b", ratio, UNDECIDED, said)]
    found = entry(student_interval(logs))
    ends = math.exp(found["low"]), math.exp(found["high"])
    said = (
        f"Ratio {middle:.2f} [{ends[0]:.2f}, {ends[1]:.2f}], geometric mean over {counted(len(logs), 'pair')} of "
        "seeds with Student's t interval."
    )
    inside, outside = low <= ends[0] and ends[1] <= high, ends[1] < low or ends[0] > high
    within = CONFIRMED if inside else REFUTED if outside else UNDECIDED
    return [Claim("4a", farther, rises(found), said), Claim("4b", ratio, within, said)]


def sparsity_claim(data: Comparison, stats: Statistics) -> Claim:
    """4c: with about 78% of the moved coordinates reset, ES keeps its Pass@1 within half a point."""
    number, es = "4c", data.first("es")
    statement = f"Near {SPARSITY:.0%} update sparsity the Pass@1 of ES is within half a point of the full update's"
    if es is None:
        return absent(number, statement)
    read = [read_threshold(run, SPARSITY, NEAR) for run in es.runs]
    found = [one for one in read if isinstance(one, Thresholded)]
    if not found:
        return Claim(number, statement, UNMEASURED, _sentence(str(read[0])))
    try:
        for one in found[1:]:
            refuse_unlike(found[0].full, one.full)
    except UserError as error:
        return Claim(number, statement, UNMEASURED, _sentence(f"between the seeds of ES, {error}"))
    full, reset, random = zip(*(one.passes() for one in found), strict=True)
    change = seed_differences(np.stack(reset), np.stack(full), draws=stats.draws)
    first, problems = entry(change.at(1)), change.problems
    verdict, width = stays(first, HALF_POINT), ""
    if first["low"] == first["high"] and problems * HALF_POINT < RULE_OF_THREE:
        verdict = UNDECIDED
        width = f" No problem's Pass@1 differs, and {problems} problems are too few to conclude that none would."
    shares = ", ".join(percent(share) for share in sorted({round(one.share, 3) for one in found}))
    said = (
        f"{shares} of the moved coordinates reset on {found[0].full.header.task}, reset − full: {_points(first)}."
        f"{width} {_random(random, full, stats)}{_others(len(found), es)} {_sentence(change.note)}"
    )
    return Claim(number, statement, verdict, said)


def largest_claims(data: Comparison) -> list[Claim]:
    """5a and 5b: the kinds that hold most of the 100 largest changes, of ES and of GRPO."""
    return [
        _largest(
            Claim("5a", "The largest ES updates sit in norm weights and attention", UNMEASURED, ""),
            data.first("es"),
            "norm and attention",
            lambda kind: kind == "norm" or kind.startswith("attention"),
        ),
        _largest(
            Claim("5b", "The largest GRPO updates sit in embeddings and head", UNMEASURED, ""),
            data.first("grpo"),
            "embedding and head",
            lambda kind: kind in ("embedding", "head"),
        ),
    ]


def _largest(claim: Claim, method: Method | None, name: str, chosen: Callable[[str], bool]) -> Claim:
    """Confirmed when the chosen kinds hold the majority in every seed, refuted when in none."""
    if method is None:
        return absent(claim.number, claim.statement)
    read = [(run.seed, read_largest(run)) for run in method.runs]
    found = [(seed, one) for seed, one in read if isinstance(one, Largest)]
    if not found:
        return Claim(claim.number, claim.statement, UNMEASURED, _sentence(str(read[0][1])))
    counts = [sum(n for kind, n in one.kinds.items() if chosen(kind)) for _, one in found]
    most = [2 * count > one.kinds.total() for count, (_, one) in zip(counts, found, strict=True)]
    verdict = CONFIRMED if all(most) else UNDECIDED if any(most) else REFUTED
    each = "; ".join(
        f"seed {seed}: {count} of {one.kinds.total()} ({_counts(one)})"
        for count, (seed, one) in zip(counts, found, strict=True)
    )
    said = (
        f"{name.capitalize()} among the largest changes: {each}. {_by_chance(found, name, chosen)}"
        f"{_others(len(found), method)} There is no interval over problems: {counted(len(found), 'seed')} alone decide"
        f"{'s' * (len(found) == 1)}."
    )
    return Claim(claim.number, claim.statement, verdict, said)


def _counts(one: Largest) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in one.kinds.most_common())


def _by_chance(found: Sequence[tuple[int, Largest]], name: str, chosen: Callable[[str], bool]) -> str:
    """What share of the largest changes these kinds would hold without learning."""
    sizes = found[0][1].parameters
    share = sum(size for kind, size in sizes.items() if chosen(kind)) / sum(sizes.values())
    nulls = [sum(part for kind, part in one.noise.items() if chosen(kind)) for _, one in found if one.noise]
    holds = f"{name.capitalize()} hold {percent(share)} of the weights"
    return f"{holds}; noise alone would put {percent(float(np.mean(nulls)))} there." if nulls else f"{holds}."


def _random(random: Sequence[Floats | None], full: Sequence[Floats], stats: Statistics) -> str:
    """The control of equal count, where every seed has it."""
    measured = [one for one in random if one is not None]
    if len(measured) < len(full):
        return "Random coordinates of equal count were not reset (--controls random-count)."
    change: SeedIntervals = seed_differences(np.stack(measured), np.stack(full), draws=stats.draws)
    return f"As many random coordinates reset instead: {_points(entry(change.at(1)))}."


def _others(used: int, method: Method) -> str:
    """Which seeds are left out, if any."""
    of = len(method.runs)
    return "" if used == of else f" Only {used} of {counted(of, 'seed')} are analysed."


def _sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}."


def _points(found: Json) -> str:
    """In hundredths of a point: the margin is half a point."""
    low, middle, high = (f"{100 * found[key]:+.2f}" for key in ("low", "value", "high"))
    said = f"{middle} points [{low}, {high}]"
    return said.replace("-", "−").replace("−0.00", "0.00").replace("+0.00", "0.00")
