"""Every reasoning-gym generator as a task, `reasoning_gym:<name>` (Apache-2.0; stojnic et al. 2025, version 0.1.25).

Problems are generated here; answers are scored by the generator's own scorer, which only ever runs in a killable,
sandboxed child, because several scorers `eval` the answer (verifiers.md, rows 53-54). The scorers of `countdown` and
`puzzle24` accept what their own rules forbid (`7//2+1`, `5!+2`), so these two are graded by our family `countdown`.
The answer is read from `<answer>` tags; reward 1 for a score of 1, 0.1 for less, 0 for a format failure.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from broadreach.config import VerifySettings
from broadreach.tasks import golds
from broadreach.tasks.hygiene_keys import normalise
from broadreach.tasks.instructions import TAG, instruction_hash
from broadreach.tasks.rgym_sandbox import RawScore, Scorer
from broadreach.types import FinishReason, Message, Problem, Response, Score, UserError
from broadreach.verify.answer_tag import extract_answer_tag
from broadreach.verify.exact import exact_key

OURS = {"countdown": None, "puzzle24": 24}
"""Generators graded by our own family: fixed target, or None when each problem has its own."""
TEST_SEED = 1_000_003
"""Added to the seed for the test split."""


@dataclass(frozen=True)
class ReasoningGymTask:
    """One generator with its options (Task protocol); training problems that are in the test split too are left out."""

    generator: str
    options: Mapping[str, Any]
    train_size: int
    test_size: int
    seed: int
    _cache: dict[str, list[Problem]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return f"reasoning_gym:{self.generator}"

    @property
    def family(self) -> str:
        return "countdown" if self.generator in OURS else "custom"

    @property
    def instruction_hash(self) -> str:
        """Changes with the system message."""
        return instruction_hash(TAG)

    def problems(self, split: str) -> list[Problem]:
        """The generated problems of `split` (train, test), the same for the same seed and version."""
        if split not in ("train", "test"):
            raise UserError(f"task {self.name} has no split {split!r}; splits: train, test")
        if split not in self._cache:
            size, seed = (self.train_size, self.seed) if split == "train" else (self.test_size, self.seed + TEST_SEED)
            problems = self._generate(split, size, seed)
            if split == "train":
                held_out = {normalise(problem.question) for problem in self.problems("test")}
                problems = [problem for problem in problems if normalise(problem.question) not in held_out]
            self._cache[split] = problems
        return self._cache[split]

    def messages(self, problem: Problem) -> list[Message]:
        """The generator's question after our instruction."""
        return [{"role": "system", "content": TAG}, {"role": "user", "content": problem.question}]

    def worked_examples(self) -> Sequence[tuple[Problem, str]]:
        """None: generators bring no worked examples."""
        return ()

    def score(self, problem: Problem, text: str, finish_reason: FinishReason | None = None) -> Score:
        """The verdict on one response; starts a sandboxed process for it (a Grader keeps one)."""
        if self.family == "countdown":
            from broadreach.verify.grading import grade

            return grade(self.family, text, problem.gold, problem.data, finish_reason=finish_reason)
        with Scorer(VerifySettings()) as scorer:
            return _score(self, scorer, problem, text)

    def solution(self, problem: Problem) -> str | None:
        """The generator's own answer in tags; None for the generators that give none."""
        if self.family == "countdown":
            return golds.solution(self.family, problem)
        return f"<answer>{problem.gold}</answer>" if problem.gold else None

    def near_misses(self, problem: Problem) -> Sequence[str]:
        """The right answer in the wrong form (a scorer may give full marks to answers close to the gold)."""
        if self.family == "countdown":
            return golds.near_misses(self.family, problem)
        return [problem.gold, f"<answer>{problem.gold}", "<answer></answer>", ""]

    @contextmanager
    def session(self, settings: VerifySettings) -> Iterator[ReasoningGymSession]:
        """A scoring process for many responses."""
        with Scorer(settings) as scorer:
            yield ReasoningGymSession(self, scorer)

    def _generate(self, split: str, size: int, seed: int) -> list[Problem]:
        import reasoning_gym

        try:
            entries = list(reasoning_gym.create_dataset(self.generator, size=size, seed=seed, **self.options))
        except (AssertionError, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(
                f"task {self.name}: the generator refuses its options ({reason}); correct task.options"
            ) from None
        return [self._problem(f"{split}-{index}", entry) for index, entry in enumerate(entries)]

    def _problem(self, identity: str, entry: dict[str, Any]) -> Problem:
        gold = "" if entry["answer"] is None else str(entry["answer"])
        if self.generator not in OURS:
            return Problem(identity, entry["question"], gold, {"entry": entry})
        fixed = OURS[self.generator]
        target = entry["metadata"]["target"] if fixed is None else fixed
        data = {"numbers": list(entry["metadata"]["numbers"]), "target": target, "expression": gold}
        return Problem(identity, entry["question"], str(target), data)


@dataclass(frozen=True)
class ReasoningGymSession:
    """Scores many responses in one sandboxed process."""

    task: ReasoningGymTask
    scorer: Scorer

    def score_batch(self, problems: Sequence[Problem], responses: Sequence[Response]) -> list[Score]:
        """One verdict a response, in order."""
        return [
            _score(self.task, self.scorer, problem, response.text)
            for problem, response in zip(problems, responses, strict=True)
        ]


def reasoning_gym_task(name: str, options: Mapping[str, Any]) -> ReasoningGymTask:
    """The task of one generator; options: train_size, test_size, seed, and its own. UserError for others."""
    try:
        from reasoning_gym.factory import DATASETS
    except ImportError:
        raise UserError("reasoning-gym is not installed; pip install 'broadreach[reasoning-gym]'") from None
    if name not in DATASETS:
        near = difflib.get_close_matches(name, DATASETS, n=1, cutoff=0.6)
        hint = f"did you mean reasoning_gym:{near[0]}?" if near else _names_of(DATASETS)
        raise UserError(f"reasoning-gym has no generator {name!r}; {hint}")
    own = dict(options)
    sizes = {
        key: int(own.pop(key, default)) for key, default in (("train_size", 1000), ("test_size", 200), ("seed", 0))
    }
    known = [entry.name for entry in dataclasses.fields(DATASETS[name][1]) if entry.name not in ("seed", "size")]
    for key in own:
        if key not in known:
            near = difflib.get_close_matches(key, [*known, *sizes], n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"options: {', '.join([*sizes, *known])}"
            raise UserError(f"task reasoning_gym:{name} has no option {key!r} (task.options); {hint}")
    return ReasoningGymTask(name, own, sizes["train_size"], sizes["test_size"], sizes["seed"])


def _names_of(generators: Iterable[str]) -> str:
    names = sorted(generators)
    return f"its {len(names)} generators: {', '.join(names)}"


def _score(task: ReasoningGymTask, scorer: Scorer, problem: Problem, text: str) -> Score:
    payload = extract_answer_tag(text).payload
    if payload is None:
        return Score(reward=0.0, correct=False, format_ok=False)
    raw: RawScore = scorer.score(task.generator, task.options, problem.data["entry"], payload)
    correct = raw.value is not None and raw.value >= 1.0
    return Score(
        reward=1.0 if correct else 0.1,
        correct=correct,
        format_ok=True,
        answer_key=exact_key(payload),
        extracted=payload,
        error=raw.error,
        timed_out=raw.timed_out,
    )
