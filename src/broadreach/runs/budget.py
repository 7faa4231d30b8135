"""One account for every run: what it has spent, and where several runs have spent alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from broadreach.types import UserError

Matching = Literal["updates", "responses", "tokens", "seconds"]
"""What two runs are made equal in when they are compared; the paper matches updates."""
MEANING = {
    "updates": "as in the paper, although an ES update scores N responses a prompt and a GRPO update G",
    "responses": "equal numbers of scored responses",
    "tokens": "equal numbers of generated tokens",
    "seconds": "equal wall time on the machines that the runs had",
}


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run has spent so far."""

    updates: int = 0
    responses: int = 0
    tokens: int = 0
    """Generated tokens."""
    prompt_tokens: int = 0
    forward_positions: int = 0
    """Token positions of forward passes: prompts and responses, padding left out, shared prefixes counted in full."""
    backward_positions: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Wall time by phase, their `total`, and apart from it `evaluation` during training."""
    peak_memory_mb: float = 0.0
    """Largest resident memory of the process, MiB."""

    def __add__(self, other: Budget) -> Budget:
        """Both together: sums, and the larger peak."""
        seconds = Counter(self.seconds)
        seconds.update(other.seconds)
        return Budget(
            updates=self.updates + other.updates,
            responses=self.responses + other.responses,
            tokens=self.tokens + other.tokens,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            forward_positions=self.forward_positions + other.forward_positions,
            backward_positions=self.backward_positions + other.backward_positions,
            seconds=dict(seconds),
            peak_memory_mb=max(self.peak_memory_mb, other.peak_memory_mb),
        )

    def spent(self, matching: Matching) -> float:
        """The amount in the unit of a matching."""
        return float(self.seconds.get("total", 0.0) if matching == "seconds" else getattr(self, matching))


def of_line(line: Mapping[str, Any]) -> Budget:
    """What one update spent; a method without backward passes computes each position once (ES)."""
    positions = int(line["tokens"]) + int(line["prompt_tokens"])
    return Budget(
        updates=1,
        responses=int(line["responses"]),
        tokens=int(line["tokens"]),
        prompt_tokens=int(line["prompt_tokens"]),
        forward_positions=int(line.get("forward_positions", positions)),
        backward_positions=int(line.get("backward_positions", 0)),
        seconds={phase: float(value) for phase, value in line["seconds"].items()},
        peak_memory_mb=float(line.get("peak_memory_mb") or 0.0),
    )


def total(lines: Iterable[Mapping[str, Any]]) -> Budget:
    """The sum over metrics lines."""
    return sum(map(of_line, lines), Budget())


@dataclass(frozen=True, slots=True)
class Match:
    """Where to compare several runs so that they have spent the same."""

    matching: Matching
    amount: float
    """What the run that spent least has spent."""
    updates: tuple[int, ...]
    """The last update of each run within that amount (0: its first update is already beyond)."""
    budgets: tuple[Budget, ...]
    """What each run had spent by then."""

    def sentence(self, names: Sequence[str]) -> str:
        """The choice in words, to print above every comparison."""
        at = ", ".join(
            f"{name} at update {update} ({budget.spent(self.matching):,.0f})"
            for name, update, budget in zip(names, self.updates, self.budgets, strict=True)
        )
        return f"matched by {self.matching} ({MEANING[self.matching]}), {self.amount:,.0f} each: {at}"


def match(runs: Sequence[Sequence[Mapping[str, Any]]], matching: str) -> Match:
    """Match runs, given as their metrics lines, by one unit; UserError for an unknown unit or an empty run."""
    if matching not in get_args(Matching):
        raise UserError(f"matching {matching!r}: choose one of {', '.join(get_args(Matching))}")
    chosen: Matching = matching  # type: ignore[assignment]
    if not runs or not all(runs):
        raise UserError("matching needs runs with at least one finished update each: train them first")
    amount = min(total(lines).spent(chosen) for lines in runs)
    points = [_within(lines, chosen, amount) for lines in runs]
    return Match(chosen, amount, tuple(budget.updates for budget in points), tuple(points))


def _within(lines: Sequence[Mapping[str, Any]], matching: Matching, amount: float) -> Budget:
    spent = Budget()
    for line in lines:
        further = spent + of_line(line)
        if further.spent(matching) > amount * (1 + 1e-9):
            break
        spent = further
    return spent
