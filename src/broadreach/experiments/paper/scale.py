"""The sizes at which the paper can be run: a laptop, one small GPU, and the published settings themselves."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from broadreach.types import UserError


@dataclass(frozen=True, slots=True)
class Study:
    """One base model trained by ES, GRPO and both compositions (method.md, section 3)."""

    name: str
    """Its folder."""
    setting: str
    """easy or hard."""
    recipe: str
    suite: str
    seeds: tuple[int, ...]
    overrides: tuple[str, ...] = ()
    baselines: bool = False


@dataclass(frozen=True, slots=True)
class Population:
    """Training at several populations N (Table 6, Figure 5)."""

    name: str
    recipe: str
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    marks: tuple[int, ...]
    """The updates that the table shows."""
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """Everything whose size differs between a laptop and the published runs."""

    name: str
    words: str
    studies: tuple[Study, ...]
    populations: tuple[Population, ...]
    settings_seeds: tuple[int, ...]
    """Of the study of normalisations and estimators, which trains the first Easy recipe (claim 7)."""
    estimator_model: str
    estimator_task: str
    estimator_sigmas: str
    continual_tasks: tuple[str, str]
    """Trained on one after the other."""
    theory_steps: str
    theory_sizes: tuple[str, ...]
    """Options of `analyze diversity`."""
    gpu_memory: int
    """GiB of accelerator memory without which it is refused; 0: none is needed."""

    @property
    def easy(self) -> tuple[Study, ...]:
        """The studies of the Easy setting."""
        return self.of("easy")

    @property
    def hard(self) -> tuple[Study, ...]:
        """The studies of the Hard setting."""
        return self.of("hard")

    def of(self, setting: str) -> tuple[Study, ...]:
        """The studies of a setting."""
        return tuple(study for study in self.studies if study.setting == setting)


_CURVE = "eval.curve_every=10"
_PUBLISHED = ("es.precision=paper", "eval.curve_tasks=gsm8k,gpqa", "eval.curve_every=20")

_FAMILIES = "eval.curve_tasks=nano-chain,nano-countdown"
_WORDS = "eval.curve_tasks=svamp,gsm8k"
"""Figure 2 follows fixed prompts of the training task and of a held-out one (the paper: GPQA)."""

LAPTOP = Scale(
    name="laptop",
    words="the bundled model of 0.9 M parameters on its four families, two CPU cores",
    studies=(
        Study("easy", "easy", "demo", "nano", (0, 1, 2), (_CURVE, _FAMILIES), baselines=True),
        Study("hard", "hard", "demo", "nano", (0, 1), (_CURVE, "sampling.temperature=0.6")),
    ),
    populations=(Population("population", "demo", (8, 16, 32, 64), (0, 1, 2), (10, 20, 40)),),
    settings_seeds=(0, 1, 2),
    estimator_model="nano",
    estimator_task="nano-chain",
    estimator_sigmas="1e-3,5e-3,2e-2",
    continual_tasks=("nano-chain", "nano-countdown"),
    theory_steps="0,20,40",
    theory_sizes=("--members", "16", "--samples", "8", "--problems", "32"),
    gpu_memory=0,
)

WORKSTATION = Scale(
    name="workstation",
    words="SmolLM2-135M-Instruct on SVAMP and GSM8K with two worked examples, one small GPU or a patient CPU",
    studies=(
        Study("easy", "easy", "smollm2-svamp", "svamp", (0, 1), (_CURVE, _WORDS), baselines=True),
        Study("hard", "hard", "smollm2-gsm8k", "svamp", (0,), (_CURVE, "sampling.temperature=0.6")),
    ),
    populations=(Population("population", "smollm2-svamp", (8, 16, 32, 64), (0,), (20, 40)),),
    settings_seeds=(0,),
    estimator_model="smollm2",
    estimator_task="svamp",
    estimator_sigmas="1e-3,4e-3,8e-3",
    continual_tasks=("svamp", "gsm8k"),
    theory_steps="0,20,40",
    theory_sizes=("--members", "8", "--samples", "8", "--problems", "32"),
    gpu_memory=0,
)

PAPER = Scale(
    name="paper",
    words="the published models, data and settings (Tables 14 to 17)",
    studies=(
        Study("easy-qwen2.5-1.5b", "easy", "easy-qwen2.5-1.5b", "easy", (0, 1, 2), _PUBLISHED),
        Study("easy-llama-3.2-3b", "easy", "easy-llama-3.2-3b", "easy", (0, 1, 2), _PUBLISHED),
        Study("easy-qwen2.5-7b", "easy", "easy-qwen2.5-7b", "easy", (0, 1, 2), _PUBLISHED),
        Study(
            "hard",
            "hard",
            "hard",
            "hard",
            (0,),
            ("es.precision=paper", "eval.curve_every=50", "eval.curve_tasks=math500,gpqa"),
        ),
    ),
    populations=tuple(
        Population(f"population-{size}", recipe, (8, 16, 32, 64), (0,), (100, 200, 300), ("train.updates=300", *extra))
        for size, recipe, extra in (
            ("0.5b", "easy-qwen2.5-0.5b", ()),
            ("1.5b", "easy-qwen2.5-1.5b", ()),
            ("3b", "easy-qwen2.5-1.5b", ("model.path=Qwen/Qwen2.5-3B-Instruct",)),
        )
    ),
    settings_seeds=(0,),
    estimator_model="Qwen/Qwen2.5-1.5B-Instruct",
    estimator_task="gsm8k",
    estimator_sigmas="1e-4,3e-4,1e-3",
    continual_tasks=("gsm8k", "countdown"),
    theory_steps="0,117,234",
    theory_sizes=("--members", "32", "--samples", "8", "--problems", "64"),
    gpu_memory=80,
)

SCALES = {scale.name: scale for scale in (LAPTOP, WORKSTATION, PAPER)}


def get_scale(name: str) -> Scale:
    """The scale of that name; UserError with the nearest name."""
    if name in SCALES:
        return SCALES[name]
    near = difflib.get_close_matches(name, SCALES, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UserError(f"--scale {name}: {hint}scales are {', '.join(SCALES)}")
