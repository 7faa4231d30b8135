"""Evaluations from weights to metrics.json: render, sample, grade, summarise, measure the entropy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from broadreach.engines.base import Engine
from broadreach.engines.select import build_engine
from broadreach.evaluation.entropy_file import write_entropy
from broadreach.evaluation.plan import EvaluationPlan
from broadreach.evaluation.reuse import copy_store, find_equal, is_complete
from broadreach.evaluation.sample import ProblemDone, sample
from broadreach.evaluation.store import SampleStore, StoreHeader, problem_digest
from broadreach.evaluation.summary import Json, summarise, write_json
from broadreach.evaluation.table import load
from broadreach.models.weights import load_tokenizer, model_context_length
from broadreach.noise.update import digest
from broadreach.tasks.base import Task
from broadreach.tasks.grading import Grader
from broadreach.tasks.instructions import instruction_hash
from broadreach.tasks.registry import get_task
from broadreach.tasks.render import chat, render, rendered_text
from broadreach.types import Centre, Problem, UserError

NOISE_MEMBERS = 8
"""Members with weight noise that a chunk's rows are sized for."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one set of weights showed on one task."""

    metrics: Json
    greedy: Json | None
    """The metrics of the greedy responses."""
    entropy: Json | None
    """The content of entropy.json."""


class Evaluator:
    """One task under one plan, ready to be asked of any weights; use it in a `with` block.

    Engine and grader start when they are first needed: a finished store costs neither.
    """

    def __init__(
        self,
        plan: EvaluationPlan,
        model_dir: Path,
        task: Task,
        problems: list[Problem],
        prompts: dict[str, tuple[int, ...]],
        instruction: str,
    ) -> None:
        self.plan, self.model_dir, self.task, self.problems = plan, model_dir, task, problems
        self.prompts, self.instruction = prompts, instruction
        self._digest = ""
        self._centre: Centre | None = None
        self._engine: Engine | None = None
        self._grader: Grader | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._grader = None

    def put(self, centre: Centre, engine: Engine | None = None) -> None:
        """Ask these weights from now on: through `engine`, which serves them already, or through one of our own."""
        self._digest, self._centre = digest(centre), centre if engine is None else None
        self._engine = engine or self._engine

    def measure(
        self,
        out: Path,
        *,
        base: Path | None = None,
        siblings: Path | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        note: Callable[[str], None] | None = None,
    ) -> Measured:
        """Sample into `out`, and what else the plan asks for: out/greedy/, out/entropy.json.

        `base` is the store of the base's responses, on which the entropy is measured too; `siblings` is a folder of
        runs in which an equal store may be found already.
        """

        def part(name: str) -> ProblemDone | None:
            return None if progress is None else partial(progress, name)

        metrics = self.sample(out, siblings=siblings, progress=part(""), note=note)
        greedy = None
        if self.plan.greedy:
            folder, advance = out / "greedy", part("greedy")
            greedy = self.sample(folder, temperature=0.0, samples=1, siblings=siblings, progress=advance)
        return Measured(metrics, greedy, self.entropy(out, base) if self.plan.entropy else None)

    def sample(
        self,
        out: Path,
        *,
        temperature: float | None = None,
        samples: int | None = None,
        noise_sigma: float = 0.0,
        siblings: Path | None = None,
        progress: ProblemDone | None = None,
        note: Callable[[str], None] | None = None,
    ) -> Json:
        """Draw, grade and summarise into out/samples.jsonl and out/metrics.json; returns the metrics.

        Goes on where an earlier call stopped. UserError for settings that differ from the stored ones, or a full disk.
        """
        header = self.header(temperature, samples, noise_sigma)
        path = out / "samples.jsonl"
        if siblings is not None and not is_complete(path, header):
            source = find_equal(header, siblings, path)
            if source is not None:
                copy_store(source, path)
                if note is not None:
                    note(f"{path.parent}: the same responses were drawn in {source.parent}; they are copied")
        with SampleStore(path, header, [problem.id for problem in self.problems]) as store:
            if store.done < len(self.problems):
                grader, chunk = self._grading(), self._chunk(header)
                sample(self._serving(), grader, store, self.problems, self.prompts, chunk=chunk, problem_done=progress)
        summary = summarise(load(path))
        write_json(summary, out / "metrics.json")
        return summary

    def entropy(self, out: Path, base: Path | None = None) -> Json:
        """Measure the token entropy on the kept responses of out/samples.jsonl and of the store `base`."""
        return write_entropy(self._serving, self.prompts, self._digest, out, base)

    def header(
        self, temperature: float | None = None, samples: int | None = None, noise_sigma: float = 0.0
    ) -> StoreHeader:
        """The settings of the store that the present weights would fill."""
        plan = self.plan
        return StoreHeader(
            task=self.task.name,
            split=plan.split,
            model_digest=self._digest,
            instruction_hash=self.instruction,
            temperature=plan.temperature if temperature is None else temperature,
            max_new_tokens=plan.max_new_tokens,
            samples=plan.samples if samples is None else samples,
            seed=plan.seed,
            problems=len(self.problems),
            problem_digest=problem_digest(self.problems),
            dtype=plan.dtype,
            private=bool(getattr(self.task, "private", False)),
            noise_sigma=noise_sigma,
        )

    def _serving(self) -> Engine:
        if self._engine is None:
            self._engine = build_engine(self.plan.engine, self.model_dir, self.plan.dtype, "exact")
        if self._centre is not None:
            self._engine.load(self._centre)
            self._centre = None
        return self._engine

    def _grading(self) -> Grader:
        if self._grader is None:
            self._grader = self._stack.enter_context(Grader(self.task, self.plan.verify))
        return self._grader

    def _chunk(self, header: StoreHeader) -> int:
        """Problems between two writes; members with noise are made anew for every chunk, so it is larger there."""
        together = min(header.samples, NOISE_MEMBERS) if header.noise_sigma > 0 else header.samples
        return max(1, self.plan.engine.rows // together)


def prepare_evaluation(plan: EvaluationPlan, model_dir: Path) -> Evaluator:
    """Read the problems and render the prompts; UserError for missing data or prompts that do not fit the context."""
    task = get_task(plan.task)
    problems = task.problems(plan.split)[: plan.problems]
    tokenizer = load_tokenizer(model_dir)
    prompts = {problem.id: render(tokenizer, task, problem, plan.task.shots) for problem in problems}
    _check_lengths(prompts, plan.max_new_tokens, model_context_length(model_dir))
    instruction = instruction_hash(rendered_text(tokenizer, chat(task, problems[0], plan.task.shots)))
    return Evaluator(plan, model_dir, task, problems, prompts, instruction)


def _check_lengths(prompts: dict[str, tuple[int, ...]], new_tokens: int, context: int) -> None:
    for problem_id, prompt in prompts.items():
        if len(prompt) + new_tokens > context:
            raise UserError(
                f"problem {problem_id}: its prompt of {len(prompt)} tokens and {new_tokens} new ones do not fit the "
                f"model's context of {context}; lower --max-new-tokens to {context - len(prompt)} or less"
            )


def headline(summary: Json) -> str:
    """Pass@1, Pass@K and Maj@K at the largest K, with their intervals, in one line."""
    k = summary["samples"]
    parts = [_percent("Pass@1", summary["pass_at_1"])]
    if k > 1:
        parts.append(_percent(f"Pass@{k}", summary["pass_at_k"][k - 1]))
        parts.append(_percent(f"Maj@{k}", summary["maj_at_k"][k - 1]))
    parts.append(_percent("form", summary["format_rate"]))
    return "  ".join(parts)


def _percent(name: str, entry: dict[str, Any]) -> str:
    return f"{name} {entry['value']:.1%} [{entry['low']:.1%}, {entry['high']:.1%}]"
