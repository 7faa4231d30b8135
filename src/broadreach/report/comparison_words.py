"""What the comparison says in sentences and small tables: title, introduction, runs, settings, how to repeat it."""

from __future__ import annotations

from typing import Any

from broadreach.report.comparison_data import Comparison
from broadreach.report.comparison_stats import Statistics
from broadreach.report.words import count, counted, number

SETTINGS = (
    ("Updates", "train", "updates", None),
    ("Problems an update", "train", "batch", None),
    ("Population N", "es", "population", "es"),
    ("sigma", "es", "sigma", "es"),
    ("alpha", "es", "alpha", "es"),
    ("Reward shaping", "es", "shaping", "es"),
    ("Training temperature, ES", "sampling", "temperature", "es"),
    ("Group size G", "grpo", "group_size", "grpo"),
    ("Objective", "grpo", "preset", "grpo"),
    ("Learning rate", "grpo", "learning_rate", "grpo"),
    ("KL coefficient", "grpo", "beta", "grpo"),
    ("Training temperature, GRPO", "grpo", "temperature", "grpo"),
    ("New tokens, at most", "sampling", "max_new_tokens", None),
    ("Served type", "model", "dtype", None),
    ("Worked examples", "task", "shots", None),
)
"""(label, section, key, the method it belongs to)."""


def title(data: Comparison) -> str:
    """What is compared, on what."""
    labels = [method.label for method in data.methods]
    said = " and ".join([", ".join(labels[:-1]), labels[-1]] if len(labels) > 1 else labels)
    return f"{said} on {' and '.join(task.name for task in data.targets[:2])}"


def introduction(data: Comparison, stats: Statistics) -> list[str]:
    """Models, seeds, problems, and what the intervals cover."""
    header = data.tasks[0].base.table.header
    seeds = ", ".join(
        f"{m.label} {counted(len(m.seeds), 'seed')} ({', '.join(map(str, m.seeds))})" for m in data.methods
    )
    sizes = ", ".join(f"{task.name} {count(task.problems)}" for task in data.tasks)
    first = stats.gain([data.tasks[0]], data.methods[0].key)
    first_text = (
        f"Base model {data.model}, trained by {seeds}. {counted(data.samples, 'response')} a problem at temperature "
        f"{number(header.temperature)}, at most {count(header.max_new_tokens)} new tokens. Problems: {sizes}."
    )
    covered = (
        "Brackets and bands are 95% percentile bootstrap intervals; differences are paired, problem by problem. "
        f"{data.methods[0].label} on {data.tasks[0].name}: {first.note}."
    )
    return [first_text, covered]


def run_rows(data: Comparison) -> list[list[str]]:
    """One row a run: label, seed, folder, updates, state, digest of the evaluated weights."""
    rows = []
    for method in data.methods:
        for run in method.runs:
            digest = run.after[data.tasks[0].name].table.header.model_digest
            state = "finished" if run.done else "unfinished"
            rows.append([method.label, str(run.seed), str(run.path), count(len(run.metrics)), state, digest[:16]])
    return rows


def setting_rows(data: Comparison) -> list[tuple[str, list[str]]]:
    """The settings that matter most, a column a method."""
    rows = []
    for label, section, key, owner in SETTINGS:
        cells = []
        for method in data.methods:
            mine = owner is None or owner in method.name.split("->")
            cells.append(_plain(method.runs[0].setting(section, key)) if mine else "–")
        if any(cell != "–" for cell in cells):
            rows.append((label, cells))
    return rows


def reproduce(data: Comparison) -> list[str]:
    """Commands that make the runs and this page again."""
    runs = [run for method in data.methods for run in method.runs]
    commit = runs[0].environment.get("commit")
    lines = [f"git checkout {str(commit).removesuffix('-dirty')}"] if commit else []
    for run in runs:
        lines += [f"broadreach train {run.path}/config.toml --run again/{run.path.name}"]
        suite = run.path / "eval" / "suite.json"
        lines += [f"broadreach eval again/{run.path.name}" + (" --suite NAME" if suite.exists() else "")]
    return [*lines, f"broadreach compare {' '.join(f'again/{run.path.name}' for run in runs)}"]


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    return number(value) if isinstance(value, float) else str(value)
