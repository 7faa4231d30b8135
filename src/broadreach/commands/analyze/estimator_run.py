"""What `analyze estimator` prepares and runs: prompts, targets, rollouts, and the store they are kept in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from broadreach.analysis.diversity_rollout import Asked
from broadreach.analysis.diversity_store import UnitStore
from broadreach.analysis.estimator_measure import (
    FixedSequences,
    Protocol,
    fixed_rollouts,
    reward_couplings,
    rollout_couplings,
    score_members,
    supervised_couplings,
)
from broadreach.analysis.estimator_moments import Couplings
from broadreach.analysis.estimator_objectives import group_advantages
from broadreach.commands.analyze.progress import counting
from broadreach.config import Config, load_config
from broadreach.engines.select import build_engine
from broadreach.evaluation.evaluate import Evaluator, prepare_evaluation
from broadreach.evaluation.plan import evaluation_plan
from broadreach.models.locate import locate
from broadreach.models.weights import load_centre, load_tokenizer
from broadreach.noise.update import digest
from broadreach.runs.files import file_name
from broadreach.tasks.check import solution
from broadreach.tasks.grading import Grader
from broadreach.types import Perturbation, Sampling, UserError

Found = list[tuple[str, str, float, Couplings]]
"""(objective, coupling, sigma, couplings)."""


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model and the problems it is asked."""

    config: Config
    evaluator: Evaluator

    def place(self, out: str | None) -> Path:
        """Where the analysis leaves its files."""
        name = f"{file_name(self.config.model.path)}-{file_name(self.config.task.name)}"
        return Path(out) if out else Path("runs/analysis") / name


def open_model(model: str, task: str, settings: Sequence[str], protocol: Protocol) -> OpenedModel:
    """Read model files, problems and prompts; every mistake is a UserError before anything is drawn."""
    needed = max(protocol.prompts, protocol.targets)
    config = load_config([], [f"model.path={model}", f"task.name={task}", *settings, f"eval.problems={needed}"])
    evaluator = prepare_evaluation(evaluation_plan(config), locate(model))
    if len(evaluator.problems) < needed:
        raise UserError(
            f"split {config.eval.split} of {task} has {len(evaluator.problems)} problems: {needed} are needed"
        )
    return OpenedModel(config, evaluator)


def measure(opened: OpenedModel, protocol: Protocol, sigmas: Sequence[float], place: Path) -> tuple[Found, list[str]]:
    """Every objective at every sigma; what is drawn or scored lies in PLACE/estimator-units.jsonl."""
    config, evaluator = opened.config, opened.evaluator
    centre = load_centre(evaluator.model_dir)
    header = {
        **asdict(protocol),
        "task": evaluator.task.name,
        "split": config.eval.split,
        "instruction": evaluator.instruction,
        "temperature": config.sampling.temperature,
        "max_new_tokens": config.sampling.max_new_tokens,
        "seed": config.seed,
        "centre_digest": digest(centre),
        "dtype": config.model.dtype,
    }
    targets, notes = _targets(opened, protocol)
    with ExitStack() as stack:
        store = stack.enter_context(UnitStore(place / "estimator-units.jsonl", header))
        grader = stack.enter_context(Grader(evaluator.task, config.verify))
        engine = build_engine(config.engine, evaluator.model_dir, config.model.dtype, "exact")
        engine.load(centre)
        asked = Asked(engine, grader, evaluator.problems[: protocol.prompts], evaluator.prompts)
        advance = stack.enter_context(counting("sequences", _work(protocol, len(sigmas), targets)))
        sampling = {common: _sampling(config, common) for common in (True, False)}
        rollout = fixed_rollouts(asked, store, protocol, sampling[False], advance)
        kept = FixedSequences([evaluator.prompts[problem.id] for problem in asked.problems], rollout.tokens)
        flat = int((group_advantages(rollout.rewards) == 0).all(axis=1).sum())
        notes.append(f"{flat} of {protocol.prompts} prompts have rollouts of equal reward: zero advantage")
        found: Found = []
        for sigma in sigmas:
            perturbation = Perturbation(config.seed, 0, sigma)
            for common, kind in ((True, "common_seed"), (False, "independent_seed")):
                result = reward_couplings(asked, store, protocol, perturbation, sampling[common], advance)
                found.append(("regenerated_reward", kind, sigma, result))
            if targets is not None:
                logs = score_members(engine, store, "targets", targets, protocol, perturbation, advance)
                result = supervised_couplings(logs, protocol.directions)
                found.append(("supervised_cross_entropy", "fixed_batch", sigma, result))
            logs = score_members(engine, store, "scores", kept, protocol, perturbation, advance)
            for name, result in rollout_couplings(logs, rollout.rewards, protocol.directions).items():
                found.append((name, "fixed_rollout", sigma, result))
    return found, notes


def _sampling(config: Config, common: bool) -> Sampling:
    chosen = config.sampling
    return Sampling(chosen.temperature, chosen.max_new_tokens, seed=config.seed, step=0, common=common)


def _targets(opened: OpenedModel, protocol: Protocol) -> tuple[FixedSequences | None, list[str]]:
    """Answers that the verifier accepts, closed by the end token; None when the task cannot make one."""
    evaluator = opened.evaluator
    tokenizer = load_tokenizer(evaluator.model_dir)
    texts = [solution(evaluator.task, problem) for problem in evaluator.problems[: protocol.targets]]
    if any(text is None for text in texts):
        return None, [f"task {evaluator.task.name} makes no gold response: no supervised cross-entropy"]
    end = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
    prompts = [evaluator.prompts[problem.id] for problem in evaluator.problems[: protocol.targets]]
    return FixedSequences(prompts, [[[*tokenizer.encode(text, add_special_tokens=False), *end]] for text in texts]), []


def _work(protocol: Protocol, sigmas: int, targets: FixedSequences | None) -> int:
    """Sequences generated or scored in all."""
    generated = protocol.prompts * protocol.seeds * (5 * protocol.directions + 1)
    scored = protocol.prompts * protocol.rollouts + (protocol.targets if targets is not None else 0)
    return protocol.prompts * protocol.rollouts + sigmas * (generated + scored * (1 + 2 * protocol.directions))
