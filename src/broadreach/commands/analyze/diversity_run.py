"""What `analyze diversity` takes from a run: centres, members, rewards, and the batch that a step would see next."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from broadreach.analysis.diversity_estimate import check_samples
from broadreach.analysis.diversity_measure import StepMeasures, measure_success
from broadreach.analysis.diversity_policy import PolicySettings, measure_policies
from broadreach.analysis.diversity_rollout import Asked
from broadreach.analysis.diversity_step import StepPlan, StepRollouts, batch_weights, ledger_weights, roll_step
from broadreach.analysis.diversity_store import UnitStore
from broadreach.analysis.diversity_values import Value
from broadreach.analysis.policy_divergence_model import MemberModel
from broadreach.commands.analyze.progress import counting
from broadreach.config import Config
from broadreach.engines.base import Engine
from broadreach.engines.select import build_engine
from broadreach.es.schedules import sigma_at
from broadreach.evaluation.evaluate import Evaluator, prepare_evaluation
from broadreach.evaluation.plan import evaluation_plan
from broadreach.evaluation.statistics import Interval
from broadreach.models.locate import locate
from broadreach.noise.members import population_members
from broadreach.noise.update import digest
from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import LedgerEntry, read_ledger
from broadreach.tasks.grading import Grader
from broadreach.training.es import training_sampling
from broadreach.training.rebuild import rebuild
from broadreach.training.setup import prepare
from broadreach.types import Centre, Member, Perturbation, Sampling, UserError

FACTS = ("members", "samples", "problems", "split", "sigma", "temperature", "centre_samples", "seed")


@dataclass(frozen=True, slots=True)
class DiversityOptions:
    """What the user asked for."""

    members: int | None
    samples: int
    problems: int
    split: str
    sigma: float | None
    temperature: float
    centre_samples: int
    ks: tuple[int, ...]
    gate: float
    policy_responses: int
    gradients: int
    seed: int

    def facts(self) -> dict[str, Any]:
        """The options as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run that can be analysed, and what it is asked."""

    folder: RunFolder
    config: Config
    options: DiversityOptions
    members: tuple[Member, ...]
    entries: tuple[LedgerEntry, ...]
    last: int
    """The run's last update."""
    evaluator: Evaluator


def open_run(path: str, options: DiversityOptions) -> OpenedRun:
    """Check run and options; every mistake is a UserError before anything is drawn."""
    check_samples(options.samples)
    if options.temperature <= 0:
        raise UserError("--temperature 0: greedy responses are all the same, so they have no success probability")
    folder = RunFolder(path)
    config = folder.config()
    if config.train.stages:
        raise UserError(f"{path} is a run of several stages: analyse one of the run folders inside it")
    entries = read_ledger(folder.ledger_file).entries
    if config.train.method != "es" and options.sigma is None:
        raise UserError(f"{path} was trained with {config.train.method}, which perturbs nothing: give --sigma")
    everyone = population_members(config.es.population, config.es.estimator)
    count = len(everyone) if options.members is None else options.members
    if not 2 <= count <= len(everyone):
        raise UserError(f"--members {count}: the run evaluates {len(everyone)} members an update; give 2 to that many")
    last = len(entries) if config.train.method == "es" else rebuild_last(folder)
    settings = {"split": options.split, "problems": options.problems, "temperature": options.temperature}
    asked = config.model_copy(update={"eval": config.eval.model_copy(update=settings)})
    evaluator = prepare_evaluation(evaluation_plan(asked), locate(config.model.path))
    if len(evaluator.problems) < options.problems:
        raise UserError(f"--problems {options.problems}: split {options.split} has {len(evaluator.problems)}")
    return OpenedRun(folder, config, options, tuple(everyone[:count]), entries, last, evaluator)


def rebuild_last(folder: RunFolder) -> int:
    """Updates of a finished run without a ledger (GRPO)."""
    if not folder.is_done():
        raise UserError(f"{folder.path} has not finished: train it to its end, or analyse an ES run")
    return folder.finished_updates()


def measure_step(opened: OpenedRun, step: int, place: Path) -> tuple[dict[str, Any], StepMeasures]:
    """Draw, weigh and measure one step; what is drawn lies in PLACE/step-N/responses.jsonl."""
    options, config = opened.options, opened.config
    centre, _ = rebuild(opened.folder, step)
    sigma = _sigma(opened, step)
    perturbation = Perturbation(config.seed, step + 1, sigma)
    evaluator = opened.evaluator
    limit = evaluator.plan.max_new_tokens
    sampling = Sampling(options.temperature, limit, seed=options.seed, step=step)
    plan = StepPlan(opened.members, perturbation, options.samples, options.centre_samples, sampling)
    facts = {
        **{name: value for name, value in options.facts().items() if name in FACTS},
        "step": step,
        "sigma": sigma,
        "members": len(opened.members),
        "task": evaluator.task.name,
        "centre_digest": digest(centre),
        "instruction": evaluator.instruction,
    }
    follows = step < opened.last and config.train.method == "es"
    with ExitStack() as stack:
        store = stack.enter_context(UnitStore(place / f"step-{step}" / "responses.jsonl", facts))
        grader = stack.enter_context(Grader(evaluator.task, config.verify))
        engine = build_engine(config.engine, evaluator.model_dir, config.model.dtype, "exact")
        asked = Asked(engine, grader, evaluator.problems, evaluator.prompts)
        next_centre: Callable[[], Centre] | None = (lambda: rebuild(opened.folder, step + 1)[0]) if follows else None
        total = plan.responses(len(evaluator.problems), follows)
        with counting(f"step {step}: responses", total) as advance:
            drawn = roll_step(asked, store, plan, centre, next_centre, advance)
        weights, words = _weights(opened, engine, grader, store, centre, plan, step)
        measured = measure_success(drawn.verdicts(weights, words), options.ks, options.gate)
        if options.policy_responses:
            name = f"policies/{options.policy_responses}/{options.gradients}"
            if name not in store:
                store.add(name, [asdict(value) for value in _policies(opened, centre, plan, drawn, step)])
            policies = [Value(**{**row, "interval": Interval(**row["interval"])}) for row in store.get(name)]
            measured = replace(measured, values=(*measured.values, *policies))
    return {**facts, "weights": words}, measured


def _sigma(opened: OpenedRun, step: int) -> float:
    """The option, that of the update that follows in the ledger, or what the schedule has for one more update."""
    if opened.options.sigma is not None:
        return opened.options.sigma
    if step < len(opened.entries):
        return opened.entries[step].record.sigma
    return sigma_at(opened.config.es, step + 1, max(opened.last, step + 1))


def _weights(
    opened: OpenedRun, engine: Engine, grader: Grader, store: UnitStore, centre: Centre, plan: StepPlan, step: int
) -> tuple[Any, str]:
    """The run's own weights from its ledger, or from the batch it would see next."""
    how = "z-scored, lifted by the lowest, divided by their sum (non-negative, sum 1)"
    if opened.config.train.method == "es" and step < opened.last:
        record = opened.entries[step].record
        if record.sigma == plan.perturbation.sigma:
            return ledger_weights(plan.members, record.rewards), f"rewards of update {step + 1} in the ledger, {how}"
    prepared = prepare(opened.config)
    chosen = prepared.batches.at(step + 1)
    prompts = {prepared.problems[i].id: prepared.requests[i].prompt for i in chosen}
    asked = Asked(engine, grader, [prepared.problems[i] for i in chosen], prompts)
    engine.load(centre)
    sampling = training_sampling(opened.config, step + 1)
    with counting(f"step {step}: rewards of the next batch", len(chosen) * len(plan.members)) as advance:
        weights = batch_weights(asked, store, plan.members, plan.perturbation, sampling, advance)
    return weights, f"rewards on the {len(chosen)} problems that update {step + 1} would see, {how}"


def _policies(opened: OpenedRun, centre: Centre, plan: StepPlan, drawn: StepRollouts, step: int) -> list[Value]:
    """JS_pol, entropies and Lemma 1 of the step."""
    options, evaluator = opened.options, opened.evaluator
    prompts = [evaluator.prompts[problem.id] for problem in evaluator.problems]
    gradients = min(options.gradients, options.centre_samples)
    model = MemberModel(evaluator.model_dir, centre, opened.config.model.dtype)
    names = [f"member-{member.index}" for member in plan.members]
    rollouts = dict(zip(names, drawn.members, strict=True))
    settings = PolicySettings(options.policy_responses, gradients, options.temperature)
    scored = 2 * len(plan.members) * len(prompts) * options.policy_responses + gradients * len(prompts)
    with counting(f"step {step}: scoring", scored) as advance:
        return measure_policies(
            model,
            plan.members,
            plan.perturbation,
            rollouts,
            names,
            drawn.centre,
            prompts,
            settings,
            advance,
        )
