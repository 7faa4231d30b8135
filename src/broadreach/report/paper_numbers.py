"""The paper's numbers (arXiv 2608.27351), to stand beside ours where the recipe is the paper's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from broadreach.evaluation.published import published_rows
from broadreach.report.comparison_data import Comparison
from broadreach.report.comparison_runs import RunRecord

TRAINED_ON = {"gsm8k": "easy", "deepscaler": "hard"}
TASKS = {"commonsense_qa": "csqa", "mbpp-sanitized": "mbpp"}
"""Our task names where the tables have others."""
_KEYS = {
    "epochs": "train.epochs",
    "global_train_batch": "train.batch",
    "population_directions": "es.population",
    "sigma": "es.sigma",
    "alpha": "es.alpha",
    "rollout_group_responses": "grpo.group_size",
    "learning_rate": "grpo.learning_rate",
    "response_limit_tokens": "sampling.max_new_tokens",
}
_HEADER = {"samples_per_problem": "samples", "temperature": "temperature", "max_new_tokens": "max_new_tokens"}


@dataclass(frozen=True, slots=True)
class Paper:
    """The published numbers of one model."""

    setting: str
    """easy or hard."""
    model: str
    deviations: tuple[str, ...]
    """Where our settings are not the paper's: "es.sigma 0.001 (paper 0.0015)"."""

    def score(self, metric: str, method: str, task: str, k: int) -> float | None:
        """Percent of "pass" or "maj"; `task` may be average, average_math or average_held_out."""
        key = (self.setting, self.model, _method(method), TASKS.get(task, task), k)
        return _scores(f"{metric}k.csv").get(key)

    def held_out_change(self, method: str, metric: str, k: int) -> float | None:
        """Points of Table 10."""
        return _changes().get((self.model, _method(method), f"{metric}@{k}"))


def published(data: Comparison) -> Paper | None:
    """The paper's model and setting that these runs repeat; None when base model or training task is another."""
    run = data.methods[0].runs[0]
    setting = TRAINED_ON.get(str(run.setting("task", "name")))
    if setting is None or not any(key[:2] == (setting, data.model) for key in _scores("passk.csv")):
        return None
    said = [text for method in data.methods for text in _deviations(setting, method.runs[0])]
    header = data.tasks[0].base.table.header
    for name, value in _hyperparameters(setting, "evaluation").items():
        ours = getattr(header, _HEADER[name]) if name in _HEADER else None
        if ours is not None and float(ours) != float(value):
            said.append(f"evaluation {_HEADER[name]} {ours} (paper {value})")
    return Paper(setting, data.model, tuple(dict.fromkeys(said)))


def _deviations(setting: str, run: RunRecord) -> Iterator[str]:
    if run.method not in ("es", "grpo"):
        return
    wanted = {_KEYS.get(name, ""): value for name, value in _hyperparameters(setting, run.method).items()}
    wanted["sampling.temperature" if run.method == "es" else "grpo.temperature"] = _hyperparameters(
        setting, run.method
    )["train_sampling_temperature"]
    for key, value in wanted.items():
        ours = run.setting(*key.split(".")) if key else None
        if ours is not None and float(ours) != float(value):
            yield f"{key} {ours:g} (paper {value})"
    if run.setting("train", "updates") is not None:
        yield f"train.updates {run.setting('train', 'updates')} (paper: whole epochs)"


def _method(name: str) -> str:
    return name.replace("->", "_")


@lru_cache(maxsize=4)
def _scores(name: str) -> dict[tuple[str, str, str, str, int], float]:
    return {
        (row["setting"], row["model"], row["method"], row["task"], int(row["k"])): float(row["value"])
        for row in published_rows(name)
    }


@lru_cache(maxsize=1)
def _changes() -> dict[tuple[str, str, str], float]:
    return {
        (row["model"], row["method"], row["metric"]): float(row["value"])
        for row in published_rows("heldout_change.csv")
    }


def _hyperparameters(setting: str, method: str) -> dict[str, str]:
    rows = published_rows("hyperparameters.csv")
    return {row["parameter"]: row["value"] for row in rows if (row["setting"], row["method"]) == (setting, method)}
