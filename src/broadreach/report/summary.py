"""The report in words: what was trained, what changed, and what the intervals allow to say."""

from __future__ import annotations

from dataclasses import dataclass

from broadreach.evaluation.summary import Json
from broadreach.report.run_data import Pair, RunData
from broadreach.report.words import (
    UNDECIDED,
    Verdict,
    claim,
    count,
    counted,
    interval,
    number,
    percent,
    points,
    points_interval,
    verdict,
)


@dataclass(frozen=True, slots=True)
class Tile:
    """One headline number."""

    name: str
    value: str
    detail: str
    verdict: Verdict | None = None


def title(run: RunData) -> str:
    """What was trained on what."""
    model = str(run.setting("model", "path", "a model"))
    return f"{run.setting('task', 'name', 'a task')}: {method(run)} on {model.rstrip('/').rsplit('/', 1)[-1]}"


def method(run: RunData) -> str:
    """The training method, by its usual name."""
    return str(run.setting("train", "method", "es")).upper()


def tiles(run: RunData) -> list[Tile]:
    """Pass@1, coverage, form and drift; what was not measured is left out."""
    found: list[Tile] = []
    if run.own is not None:
        pair, top = run.own, run.own.samples
        found.append(_pair_tile("Pass@1", pair, "pass_at_k", 1))
        if top > 1:
            found.append(_pair_tile(f"Pass@{top}, coverage", pair, "pass_at_k", top))
            found.append(_pair_tile(f"Maj@{top}", pair, "maj_at_k", top))
    elif run.metrics:
        first, last = run.metrics[0], run.metrics[-1]
        value = f"{first['reward_mean']:.3f} → {last['reward_mean']:.3f}"
        found.append(Tile("Training reward", value, f"first update to update {last['step']}"))
    drift = [row["drift"] for row in run.metrics if row.get("drift") is not None]
    if drift:
        walk = run.random_walk[len(run.metrics) - 1] if _covers(run) and run.random_walk else None
        detail = f"random walk: {percent(walk, 2)}" if walk is not None else "relative L2 distance from the base"
        found.append(Tile("Weights moved by", percent(drift[-1], 2), detail))
    return found


def _pair_tile(name: str, pair: Pair, key: str, k: int) -> Tile:
    before, after, change = (s[key][k - 1] for s in (pair.before_summary, pair.after_summary, pair.difference))
    value = f"{percent(before['value'])} → {percent(after['value'])}"
    return Tile(name, value, f"{points(change['value'])} points {points_interval(change)}", verdict(change))


def paragraphs(run: RunData) -> list[str]:
    """The summary, one paragraph a subject."""
    found = [_training(run)]
    if run.own is None:
        found.append(
            "This run has not been evaluated, so nothing is said about Pass@K: "
            f"run `broadreach eval {run.path}`, then make the report again."
        )
    else:
        found += [_accuracy(run.own), _coverage(run.own)]
    if _covers(run) and run.random_walk:
        found.append(_walk(run))
    return [text for text in found if text]


def _training(run: RunData) -> str:
    es, task = run.config.get("es", {}), run.setting("task", "name")
    updates = len(run.metrics)
    if not updates:
        return "No update has been made yet."
    responses = sum(row.get("responses", 0) for row in run.metrics)
    idle = sum(not row.get("updated", True) for row in run.metrics)
    text = (
        f"{method(run)} made {counted(updates, 'update')} of the model {run.setting('model', 'path')} "
        f"on the task {task}, with N = {es.get('population')} directions, sigma {number(es.get('sigma', 0))}, "
        f"alpha {number(es.get('alpha', 0))} and {run.setting('train', 'batch')} problems each: "
        f"{count(responses)} responses in all."
    )
    if idle:
        text += f" In {count(idle)} of them all members scored alike, so nothing moved."
    return text


def _accuracy(pair: Pair) -> str:
    return f"{_sentence('Pass@1', pair, 1)} {_claimed('a rise in Pass@1 over the base', pair, 1)}"


def _coverage(pair: Pair) -> str:
    top = pair.samples
    if top == 1:
        return ""
    solved = pair.difference["solved"]
    return (
        f"{_sentence(f'Coverage, Pass@{top},', pair, top)} "
        f"{_claimed(f'a rise in Pass@{top} over the base', pair, top)} "
        f"At least one of {top} responses was right on {solved['both']} problems before and after, "
        f"on {solved['only_b']} only after, on {solved['only_a']} only before, on {solved['neither']} never."
    )


def _sentence(name: str, pair: Pair, k: int) -> str:
    before, after, change = (s["pass_at_k"][k - 1] for s in (pair.before_summary, pair.after_summary, pair.difference))
    said = verdict(change)
    ending = "the interval holds zero" if said is UNDECIDED else f"{said.word} than the base"
    return (
        f"{name} went from {percent(before['value'])} {interval(before)} "
        f"to {percent(after['value'])} {interval(after)}: "
        f"{points(change['value'])} points {points_interval(change)}, paired over {count(pair.difference['problems'])} "
        f"problems; {ending}."
    )


def _claimed(what: str, pair: Pair, k: int) -> str:
    return f"The claim of {what} is {claim(pair.difference['pass_at_k'][k - 1])} here, for this task and this one seed."


def _walk(run: RunData) -> str:
    drift = next(row["drift"] for row in reversed(run.metrics) if row.get("drift") is not None)
    assert run.random_walk is not None
    walk = run.random_walk[len(run.metrics) - 1]
    return (
        f"The weights lie {percent(drift, 2)} from the base (relative L2). Had the same coefficients met directions "
        f"that know nothing of the reward, a random walk, they would lie {percent(walk, 2)} away. The ratio is "
        f"{drift / walk:.2f}; near 1, distance alone shows no learning, and only the evaluation can."
    )


def _covers(run: RunData) -> bool:
    """Whether the random walk reaches the last update shown, and the distance there is known."""
    return bool(
        run.metrics
        and run.random_walk
        and len(run.random_walk) >= len(run.metrics)
        and run.random_walk[len(run.metrics) - 1] > 0
        and run.metrics[-1].get("drift") is not None
    )


def notes(run: RunData) -> list[str]:
    """What a careful reader must know: small sets, errors, broken files, multiplicity."""
    found = list(run.warnings)
    for pair in [run.own, *run.held_out]:
        if pair is not None:
            texts: list[Json] = [pair.before_summary, pair.after_summary]
            said = [text for summary in texts for text in summary["warnings"]]
            found += [f"{pair.task}: {text}" for text in dict.fromkeys(said)]
            found += pair.difference["notes"]
    if run.setting("verify", "allow_unsandboxed"):
        found.append("model-written code ran without a sandbox (verify.allow_unsandboxed)")
    return list(dict.fromkeys(found))
