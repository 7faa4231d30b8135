"""What a scale would cost, before anything starts: responses, and hours on a named device, from stated assumptions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from broadreach.config import Config
from broadreach.experiments.paper.plan import PaperPlan
from broadreach.experiments.paper.scale import Study
from broadreach.experiments.paper.taus import published_run, threshold_task
from broadreach.experiments.paper.variants import plan_variants
from broadreach.tasks.suites import get_suite

PARAMETERS = {
    "nano": 0.9e6,
    "smollm2": 135e6,
    "Qwen/Qwen2.5-0.5B-Instruct": 0.49e9,
    "Qwen/Qwen2.5-1.5B-Instruct": 1.54e9,
    "Qwen/Qwen2.5-3B-Instruct": 3.09e9,
    "meta-llama/Llama-3.2-3B-Instruct": 3.21e9,
    "Qwen/Qwen2.5-7B-Instruct": 7.6e9,
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": 1.78e9,
}
DEFAULT_PARAMETERS = 1e9
TOKENS = {"nano": (40, 25), "svamp": (190, 25), "easy": (200, 300), "hard": (200, 5000)}
"""Mean tokens of a prompt and of a response."""
PROBLEMS = {"gsm8k": 1319, "commonsense_qa": 1221, "hotpotqa": 7405, "countdown": 1000, "gpqa": 198}
PROBLEMS |= {"svamp": 300, "mbpp-sanitized": 257, "aime24": 30, "aime25": 30, "amc23": 40, "math500": 500, "nano": 200}
TRAIN_ROWS = {"gsm8k": 7473, "deepscaler": 40315}
GPU_RATE = 1e14
"""Useful floating-point operations a second of one H100-class GPU: a tenth of its peak, as decoding gets."""
CPU_RATE = 5e10
"""The same of two CPU cores."""


@dataclass(frozen=True, slots=True)
class PartCost:
    """One part of a scale."""

    part: str
    runs: int
    responses: float
    operations: float

    def hours(self, rate: float) -> float:
        """Hours on one device of that rate."""
        return self.operations / rate / 3600


def costs(parts: Iterable[str], plan: PaperPlan) -> list[PartCost]:
    """One line a part; an order of magnitude, from the assumptions above and in `assumptions`."""
    return [_PARTS[part](plan, part) for part in dict.fromkeys(parts)]


def assumptions(plan: PaperPlan) -> str:
    """What the estimate rests on, in one sentence."""
    kinds = dict.fromkeys(_kind(study) for study in plan.scale.studies)
    lengths = ", ".join(f"{kind} {TOKENS[kind][0]} + {TOKENS[kind][1]}" for kind in kinds)
    return (
        f"2 x parameters operations a token forward, 6 x for GRPO's gradient; prompt + response tokens: {lengths}; "
        f"{GPU_RATE:.0e} operations a second on one H100-class GPU, {CPU_RATE:.0e} on two CPU cores; "
        "models far below 1 B do not fill a GPU and take longer"
    )


def _studies(plan: PaperPlan, part: str) -> PartCost:
    studies = plan.scale.of(part)
    runs, responses, operations = 0, 0.0, 0.0
    for study in studies:
        config = plan.config(study)
        each, seeds = _updates(config) * config.train.batch, len(study.seeds)
        es, grpo = each * config.es.evaluations, each * config.grpo.group_size
        token, size = sum(_tokens(study)), _parameters(config)
        training = 1.5 * (es * token * 2 + grpo * token * 10) * size  # the compositions reuse their first halves
        asked = (1 + 4 * seeds) * _evaluated(config, study)
        runs += 4 * seeds
        responses += seeds * 1.5 * (es + grpo) + asked
        operations += seeds * training + asked * token * 2 * size
    return PartCost(part, runs, responses, operations)


def _threshold(plan: PaperPlan, part: str) -> PartCost:
    studies = plan.scale.of(part.split()[0])
    models, responses, operations = 0, 0.0, 0.0
    for study in studies:
        config = plan.config(study)
        taus = len(published_run(study.setting).sparsity)
        count = (4 * taus + 2) + (len(study.seeds) - 1) * (2 * taus + 2)
        asked = (
            count * _problems(config, study.suite, [threshold_task(study) or config.task.name]) * config.eval.samples
        )
        models += count
        responses += asked
        operations += asked * sum(_tokens(study)) * 2 * _parameters(config)
    return PartCost(part, models, responses, operations)


def _populations(plan: PaperPlan, part: str) -> PartCost:
    runs, responses, operations = 0, 0.0, 0.0
    for population in plan.scale.populations:
        config = plan.config(population)
        trained = sum(population.sizes) * len(population.seeds) * _updates(config) * config.train.batch
        runs += len(population.sizes) * len(population.seeds)
        responses += trained
        operations += trained * sum(_tokens(plan.scale.easy[0])) * 2 * _parameters(config)
    return PartCost(part, runs, responses, operations)


def _settings(plan: PaperPlan, part: str) -> PartCost:
    study = plan.scale.easy[0]
    config = plan.config(study)
    runs = len(plan_variants(plan)) * len(plan.scale.settings_seeds)
    responses = runs * _updates(config) * config.train.batch * config.es.evaluations
    return PartCost(part, runs, responses, responses * sum(_tokens(study)) * 2 * _parameters(config))


def _continual(plan: PaperPlan, part: str) -> PartCost:
    study = plan.scale.easy[0]
    config = plan.config(study)
    each = _updates(config) * config.train.batch
    responses = each * (2 * config.es.evaluations + config.grpo.group_size)
    operations = each * sum(_tokens(study)) * 2 * _parameters(config)
    return PartCost(part, 3, responses, operations * (2 * config.es.evaluations + 5 * config.grpo.group_size))


def _paths(plan: PaperPlan, part: str) -> PartCost:
    study = plan.scale.easy[0]
    config = plan.config(study)
    models = 13 if part == "paths" else 2
    responses = models * _problems(config, study.suite, [config.task.name]) * config.eval.samples
    return PartCost(part, models, responses, responses * sum(_tokens(study)) * 2 * _parameters(config))


def _analysis(plan: PaperPlan, part: str) -> PartCost:
    """Estimators, diversity and probe: some tens of thousands of responses; weights are read, not run."""
    study = plan.scale.easy[0]
    config = plan.config(study)
    responses = 0.0 if part.endswith("weights") else 3e4
    return PartCost(part, 1, responses, responses * sum(_tokens(study)) * 2 * _parameters(config))


_PARTS = {
    "easy": _studies,
    "hard": _studies,
    "easy weights": _analysis,
    "hard weights": _analysis,
    "easy threshold": _threshold,
    "hard threshold": _threshold,
    "population": _populations,
    "settings": _settings,
    "continual": _continual,
    "paths": _paths,
    "precision": _paths,
    "estimator": _analysis,
    "theory": _analysis,
    "probe": _analysis,
}


def _parameters(config: Config) -> float:
    return PARAMETERS.get(config.model.path, DEFAULT_PARAMETERS)


def _tokens(study: Study) -> tuple[int, int]:
    return TOKENS[_kind(study)]


def _kind(study: Study) -> str:
    return study.suite if study.suite in TOKENS else study.setting


def _updates(config: Config) -> int:
    rows = TRAIN_ROWS.get(config.task.name, 0)
    return config.train.updates or config.train.epochs * -(-rows // config.train.batch)


def _evaluated(config: Config, study: Study) -> int:
    tasks = [one.task for one in get_suite(study.suite).tasks]
    return _problems(config, study.suite, tasks) * config.eval.samples


def _problems(config: Config, suite: str, tasks: list[str]) -> int:
    limit = config.eval.problems or 10**9
    return sum(min(limit, PROBLEMS["nano" if suite == "nano" else task]) for task in tasks)
