"""The claims about scores, entropy and the front (1, 2, 3 and 6 of method.md, section 8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from broadreach.evaluation.statistics import LEVEL
from broadreach.evaluation.summary import Json
from broadreach.report.claims import CONFIRMED, REFUTED, UNDECIDED, UNMEASURED, Claim, absent, falls, rises, stays
from broadreach.report.comparison_data import Comparison, Method, TaskData
from broadreach.report.comparison_stats import BASE, Statistics
from broadreach.report.words import counted, percent, points, points_interval

ENTROPY_MARGIN = 0.1
"""Entropy "stays" when its change lies within this share of the base's entropy."""
SURE = 0.95
"""A point adds to the front when it is non-dominated in at least this share of the draws."""


def score_claims(data: Comparison, stats: Statistics) -> list[Claim]:
    """1: ES raises Pass@1 and Pass@K; GRPO raises Pass@1 more and falls below the base at large K more often."""
    es, grpo, top, tasks = data.first("es"), data.first("grpo"), data.samples, data.targets
    where = _where(tasks)
    found = [
        _gain("1a", f"ES raises Pass@1 over the base on {where}", rises, es, "ES", stats, tasks, 1),
        _gain("1b", f"ES raises Pass@{top} over the base on {where}", rises, es, "ES", stats, tasks, top),
        _gain("1c", f"GRPO raises Pass@1 over the base on {where}", rises, grpo, "GRPO", stats, tasks, 1),
    ]
    statement = f"GRPO raises Pass@1 more than ES on {where}"
    if es and grpo:
        change = stats.versus(tasks, grpo, es).at("pass", 1)
        found.append(Claim("1d", statement, rises(change), f"GRPO − ES, Pass@1: {_points(change)}."))
    else:
        found.append(absent("1d", statement))
    found.append(
        _gain("1e", f"GRPO falls below the base at Pass@{top} on {where}", falls, grpo, "GRPO", stats, tasks, top)
    )
    return [*found, _below(data, stats)]


def _below(data: Comparison, stats: Statistics) -> Claim:
    """Cells (task, K) where a method lies below the base, and the interval of how many more they are for GRPO."""
    es, grpo = data.first("es"), data.first("grpo")
    ks = [k for k in data.ks if k > 1]
    statement = f"GRPO falls below the base at large K (K = {_listed(ks)}) more often than ES, over all tasks"
    if not (es and grpo) or not ks:
        return absent("1f", statement)
    counts, drawn = zip(*(stats.cells_below(data.tasks, method, ks) for method in (grpo, es)), strict=True)
    low, high = np.quantile(drawn[0] - drawn[1], [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    said = (
        f"GRPO below in {counts[0]} and ES in {counts[1]} of {len(ks) * len(data.tasks)} cells (task, K); "
        f"difference over the bootstrap draws [{low:+.0f}, {high:+.0f}]."
    )
    return Claim("1f", statement, rises({"low": low, "high": high}), said.replace("-", "−"))


def entropy_claims(data: Comparison, stats: Statistics) -> list[Claim]:
    """2: token entropy falls under GRPO and stays under ES."""
    tasks = data.held_out or data.tasks
    tasks = tuple(task for task in tasks if task.base.entropy) or data.tasks
    base = stats.base_entropy(tasks)
    es, grpo = data.first("es"), data.first("grpo")
    on = f"over {_where(tasks)}, each model on its own responses"
    rows: list[Claim] = []
    for number, statement, method in (
        ("2a", f"Token entropy falls under GRPO, {on}", grpo),
        ("2b", f"Token entropy stays under ES (within {ENTROPY_MARGIN:.0%} of the base's), {on}", es),
    ):
        change = stats.entropy_gain(tasks, method) if method and base else None
        if method is None:
            rows.append(absent(number, statement))
        elif change is None or base is None:
            rows.append(Claim(number, statement, UNMEASURED, "No entropy.json: run `broadreach eval RUN --entropy`."))
        else:
            verdict = falls(change) if number == "2a" else stays(change, ENTROPY_MARGIN * base)
            same = stats.entropy_gain(tasks, method, kind="base") if method else None
            beside = f" On the base's own responses, the same texts for all: {_nats(same)}." if same else ""
            rows.append(Claim(number, statement, verdict, f"Base {base:.3f} nats; change {_nats(change)}.{beside}"))
    both = stats.entropy_gain(tasks, grpo, es) if es and grpo and base else None
    if both is not None:
        rows.append(Claim("2c", "Entropy is lower after GRPO than after ES", falls(both), f"GRPO − ES: {_nats(both)}."))
    return rows


def front_claims(data: Comparison, stats: Statistics) -> list[Claim]:
    """3: the compositions add non-dominated points."""
    top, places = data.samples, [(data.targets, _where(data.targets))]
    if data.held_out:
        places.append((data.tasks, "the average over all tasks"))
    rows = []
    for number, name in (("3a", "es->grpo"), ("3b", "grpo->es")):
        method, label = data.first(name), {"es->grpo": "ES→GRPO", "grpo->es": "GRPO→ES"}[name]
        statement = f"{label} adds a non-dominated point (Pass@1, Pass@{top})"
        if method is None or top == 1:
            rows.append(absent(number, statement))
            continue
        chances = [(stats.front(tasks, top)[method.key].probability, where) for tasks, where in places]
        first = chances[0][0]
        verdict = CONFIRMED if first >= SURE else REFUTED if first <= 1 - SURE else UNDECIDED
        said = ", ".join(f"{percent(chance, 0)} of the bootstrap draws on {where}" for chance, where in chances)
        rows.append(Claim(number, statement, verdict, f"Non-dominated in {said}; {SURE:.0%} on the first decides."))
    return rows


def held_out_claims(data: Comparison, stats: Statistics) -> list[Claim]:
    """6: held-out Pass@32 rises under ES and falls under GRPO, on average."""
    top = data.samples
    where = f"averaged over {counted(len(data.held_out), 'held-out task')}"
    texts = (
        ("6a", f"Held-out Pass@{top} rises under ES, {where}", rises, "es", "ES"),
        ("6b", f"Held-out Pass@{top} falls under GRPO, {where}", falls, "grpo", "GRPO"),
    )
    return [
        _gain(number, text, rule, data.first(name), label, stats, data.held_out, top)
        if data.held_out
        else Claim(number, text, UNMEASURED, "No held-out task was evaluated: `broadreach eval RUN --suite NAME`.")
        for number, text, rule, name, label in texts
    ]


def _gain(
    number: str,
    statement: str,
    rule: Callable[[Json], str],
    method: Method | None,
    label: str,
    stats: Statistics,
    tasks: Sequence[TaskData],
    k: int,
) -> Claim:
    """A claim about one method against the base at one K."""
    if method is None:
        return absent(number, statement)
    change = stats.gain(tasks, method.key).at("pass", k)
    levels = [stats.level(tasks, key).at("pass", k) for key in (BASE, method.key)]
    moved = f"{percent(levels[0]['value'])} → {percent(levels[1]['value'])}"
    return Claim(number, statement, rule(change), f"{label} − base, Pass@{k}: {_points(change)} ({moved}).")


def _where(tasks: Sequence[TaskData]) -> str:
    if len(tasks) == 1:
        return tasks[0].name
    return _listed([task.name for task in tasks]) if len(tasks) <= 3 else f"the average of {len(tasks)} tasks"


def _points(found: Json) -> str:
    return f"{points(found['value'])} points {points_interval(found)}"


def _nats(found: Json) -> str:
    low, middle, high = (f"{found[key]:+.3f}".replace("-", "−") for key in ("low", "value", "high"))
    return f"{middle} nats a token [{low}, {high}]"


def _listed(items: Sequence[object]) -> str:
    words = [str(item) for item in items]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
