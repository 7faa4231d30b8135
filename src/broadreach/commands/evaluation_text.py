"""The words in which evaluations are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from broadreach.report.words import verdict

if TYPE_CHECKING:
    from broadreach.commands.evaluation import EvaluationResult, SuiteResult


def result_lines(result: EvaluationResult) -> Iterator[str]:
    """Everything that one task showed, a line a fact; warnings begin with "! "."""
    from broadreach.evaluation.evaluate import headline

    yield from result.notes
    for name, folder, summary in result.stores:
        yield f"{name:8} {headline(summary)}   {folder}"
        found = result.measured.get(name)
        if found is not None and found.greedy is not None:
            yield f"{'':8} greedy {_share(found.greedy['pass_at_1'])}"
        if found is not None and found.entropy is not None:
            yield f"{'':8} {_entropy(found.entropy)}"
        yield from (f"! {name}: {warning}" for warning in summary["warnings"])
    if result.comparison is not None:
        yield from paired_lines(result.comparison)
        yield from _entropy_change(result)
    for one in result.baselines:
        k = one.metrics["samples"]
        yield f"baseline {one.name}: {headline(one.metrics)}   {one.folder}"
        yield f"{'':8} against the base: {_change(f'Pass@{k}', one.comparison['pass_at_k'][k - 1])}"


def suite_lines(suite: SuiteResult) -> Iterator[str]:
    """The tasks one after the other, what was left out, and the average change on the held-out tasks."""
    for result in suite.results:
        yield f"{result.task}:"
        yield from result_lines(result)
    for task, reason in suite.left_out:
        yield f"! {task} is left out: {reason}"
    if suite.held_out is not None:
        last = len(suite.held_out.intervals)
        for k in sorted({1, last}):
            found = suite.held_out.at(k)
            entry = {"value": found.value, "low": found.low, "high": found.high}
            yield f"held out, average over tasks: {_change(f'Pass@{k}', entry)}"
        yield suite.held_out.note


def paired_lines(comparison: dict[str, Any]) -> list[str]:
    """Gain in Pass@1 and in coverage, each with its interval and what the interval says."""
    largest = comparison["samples"]
    chosen = sorted({1, largest})
    lines = [f"change   {_change(f'Pass@{k}', comparison['pass_at_k'][k - 1])}" for k in chosen]
    solved = comparison["solved"]
    return [
        *lines,
        f"problems solved at least once: both {solved['both']}, only before {solved['only_a']}, "
        f"only after {solved['only_b']}, neither {solved['neither']}",
    ]


def _change(name: str, entry: dict[str, float]) -> str:
    word = verdict(entry).word
    return f"{name} {entry['value']:+.1%} [{entry['low']:+.1%}, {entry['high']:+.1%}] paired: {word}"


def _share(entry: dict[str, float]) -> str:
    return f"{entry['value']:.1%} [{entry['low']:.1%}, {entry['high']:.1%}]"


def _entropy(found: dict[str, Any]) -> str:
    own, text = found["own"], f"on the first {found['per_problem']} responses of each problem"
    line = f"token entropy {own['value']:.3f} [{own['low']:.3f}, {own['high']:.3f}] nats {text}"
    base = found["base"]
    if base is not None and base != own:
        line += f"; on the base's responses {base['value']:.3f} [{base['low']:.3f}, {base['high']:.3f}]"
    return line


def _entropy_change(result: EvaluationResult) -> Iterator[str]:
    from broadreach.evaluation.entropy_file import entropy_difference

    before, after = (result.measured[name].entropy for name, _, _ in result.stores)
    if before is not None and after is not None and after["base"] is not None:
        found = entropy_difference(after, before)
        yield (
            f"change   entropy on the base's responses {found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}] "
            f"nats paired"
        )
