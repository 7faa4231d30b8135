"""The tables of a run's report: what was measured, what it cost, what the settings were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from broadreach.evaluation.summary import Json
from broadreach.report.files import csv_text
from broadreach.report.run_data import Pair, RunData
from broadreach.report.words import (
    Verdict,
    count,
    interval,
    number,
    percent,
    points,
    points_interval,
    seconds,
    verdict,
)

SETTINGS = (
    ("Model", "model", "path"),
    ("Served type", "model", "dtype"),
    ("Task", "task", "name"),
    ("Worked examples", "task", "shots"),
    ("Reward function", "task", "reward"),
    ("Seed", "", "seed"),
    ("Estimator", "es", "estimator"),
    ("Population N", "es", "population"),
    ("sigma", "es", "sigma"),
    ("alpha", "es", "alpha"),
    ("Reward shaping", "es", "shaping"),
    ("Anchor decay", "es", "anchor_decay"),
    ("Arithmetic", "es", "precision"),
    ("Problems an update", "train", "batch"),
    ("Training temperature", "sampling", "temperature"),
    ("New tokens, at most", "sampling", "max_new_tokens"),
    ("Code ran unsandboxed", "verify", "allow_unsandboxed"),
)
"""(label, section, key) of the settings that every reader needs; the page holds the whole file besides."""


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """One measure of base and trained model, with the paired difference."""

    name: str
    before: str
    before_interval: str
    after: str
    after_interval: str
    change: str
    change_interval: str
    verdict: Verdict | None


def measures(pair: Pair) -> list[MeasureRow]:
    """Pass@1, Pass@K, Maj@K, form and length, each with intervals and a paired verdict."""
    top = pair.samples
    ks = sorted({k for k in (1, top // 2, top) if k >= 1})
    rows = [_share(pair, f"Pass@{k}", "pass_at_k", k) for k in ks]
    if top > 1:
        rows.append(_share(pair, f"Maj@{top}", "maj_at_k", top))
    rows.append(_share(pair, "Required form", "format_rate"))
    rows.append(_share(pair, "Pass@1, lenient", "lenient_pass_at_1"))
    return [*rows, _tokens(pair)]


def _share(pair: Pair, name: str, key: str, k: int | None = None) -> MeasureRow:
    before, after, change = (
        source[key] if k is None else source[key][k - 1]
        for source in (pair.before_summary, pair.after_summary, pair.difference)
    )
    return MeasureRow(
        name=name,
        before=percent(before["value"]),
        before_interval=interval(before),
        after=percent(after["value"]),
        after_interval=interval(after),
        change=points(change["value"]),
        change_interval=points_interval(change),
        verdict=verdict(change),
    )


def _tokens(pair: Pair) -> MeasureRow:
    before, after, change = (s["mean_tokens"] for s in (pair.before_summary, pair.after_summary, pair.difference))
    signed = {key: f"{change[key]:+.1f}".replace("-", "−") for key in ("value", "low", "high")}
    return MeasureRow(
        name="Tokens a response",
        before=f"{before['value']:.1f}",
        before_interval=f"[{before['low']:.1f}, {before['high']:.1f}]",
        after=f"{after['value']:.1f}",
        after_interval=f"[{after['low']:.1f}, {after['high']:.1f}]",
        change=signed["value"],
        change_interval=f"[{signed['low']}, {signed['high']}]",
        verdict=None,
    )


def settings(run: RunData) -> list[tuple[str, str]]:
    """The settings that matter most, in words."""
    rows = []
    for label, section, key in SETTINGS:
        value = run.config.get(key) if not section else run.setting(section, key)
        if value not in (None, False, 0.0) or label in ("Seed", "Worked examples", "Training temperature"):
            rows.append((label, "greedy (0)" if label == "Training temperature" and not value else _plain(value)))
    if run.own is not None:
        header = run.own.before.header
        drawn = f"{header.samples} responses, temperature {number(header.temperature)}"
        rows.append(("Evaluation", f"{count(header.problems)} problems ({header.split}), {drawn}"))
    return rows


def budget(run: RunData) -> list[tuple[str, str]]:
    """What the run cost: updates, responses, tokens, seconds by phase, memory."""
    rows = run.metrics
    if not rows:
        return []
    total = _total(rows, "total")
    moved = sum(bool(row.get("updated")) for row in rows)
    tokens = sum(row.get("tokens", 0) for row in rows)
    generation = _total(rows, "generation")
    found = [
        ("Updates", f"{count(len(rows))} ({count(moved)} moved the weights)"),
        ("Responses", count(sum(row.get("responses", 0) for row in rows))),
        ("Generated tokens", count(tokens)),
        ("Prompt tokens", count(sum(row.get("prompt_tokens", 0) for row in rows))),
        ("Training time", seconds(total)),
    ]
    for phase in ("generation", "verification", "noise", "update", "other"):
        spent = _total(rows, phase)
        found.append((f"of it {phase}", f"{seconds(spent)} ({percent(spent / total if total else 0.0)})"))
    if generation:
        found.append(("Tokens a second of generation", count(tokens / generation)))
    found.append(("Peak memory", f"{count(max(row.get('peak_memory_mb') or 0 for row in rows))} MiB"))
    errors, timeouts = (sum(row.get(key, 0) for row in rows) for key in ("errors", "timeouts"))
    found.append(("Verifier errors and timeouts", f"{count(errors)} and {count(timeouts)}"))
    for pair in [run.own, *run.held_out]:
        if pair is not None:
            both = pair.before_summary["generated_tokens"] + pair.after_summary["generated_tokens"]
            found.append((f"Evaluation tokens, {pair.task}", count(both)))
    return found


def made_with(run: RunData) -> list[tuple[str, str]]:
    """Commit, base, hardware and versions, as environment.json has them."""
    facts, hardware = run.environment, run.environment.get("hardware") or {}
    versions = ", ".join(f"{name} {version}" for name, version in (facts.get("versions") or {}).items())
    rows = [
        ("Commit", facts.get("commit")),
        ("Started", facts.get("started")),
        ("Base model digest", facts.get("model_digest")),
        ("Processor", hardware.get("processor")),
        ("Cores, threads", f"{hardware.get('cores', '?')}, {hardware.get('threads', '?')}" if hardware else None),
        ("Accelerator", hardware.get("accelerator") or ("none" if hardware else None)),
        ("Platform", facts.get("platform")),
        ("Versions", versions),
    ]
    return [(label, str(value)) for label, value in rows if value]


def problem_csv(pair: Pair) -> str:
    """problem, base_correct, es_correct, samples: every problem as CSV text."""
    counts = zip(pair.before.problem_ids, pair.before.correct.sum(1), pair.after.correct.sum(1), strict=True)
    rows = [(name, int(before), int(after), pair.samples) for name, before, after in counts]
    return to_csv(("problem", "base_correct", "es_correct", "samples"), rows)


def measure_csv(pair: Pair) -> str:
    """metric, k, base, ES and difference, each with value, low and high, as CSV text."""
    names = [f"{who}_{part}" for who in ("base", "es", "difference") for part in ("value", "low", "high")]
    sources = (pair.before_summary, pair.after_summary, pair.difference)
    rows = [
        [metric, index + 1, *_parts([source[metric][index] for source in sources])]
        for metric in ("pass_at_k", "maj_at_k")
        for index in range(pair.samples)
    ]
    rates = ("format_rate", "lenient_pass_at_1", "mean_tokens")
    rows += [[metric, "", *_parts([source[metric] for source in sources])] for metric in rates]
    return to_csv(("metric", "k", *names), rows)


def to_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """CSV text with a header row."""
    return csv_text([header, *rows])


def _parts(entries: Sequence[Json]) -> list[float]:
    return [entry[part] for entry in entries for part in ("value", "low", "high")]


def _total(rows: Sequence[Json], phase: str) -> float:
    return float(sum((row.get("seconds") or {}).get(phase, 0.0) for row in rows))


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else str(value)
