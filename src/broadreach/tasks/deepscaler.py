"""DeepScaleR-Preview (Luo et al. 2025): competition mathematics to train on.

Source: agentica-org/DeepScaleR-Preview-Dataset (train 40,315). Licence: MIT; AIME and AMC text is MAA's.
Local layout, option `variant`: preview = deepscaler/dsr_sub.parquet (a subset of 1,209 rows), math and aime = two
components of the mix before de-duplication (deepscaler/rllm_train_math.json 7,474, rllm_train_aime.json 975).
Family: boxed_math. Rows with an empty, null or cut-off gold are dropped and counted. There is no test split: it is
tested on MATH-500, AIME, AMC, Minerva and OlympiadBench, and problems shared with those are refused.
"""

from __future__ import annotations

from broadreach.tasks.dataset import DatasetTask, Split
from broadreach.tasks.instructions import MATH
from broadreach.tasks.sources import Row, Source, Where, text_of
from broadreach.types import Problem, UserError

_HUB = "agentica-org/DeepScaleR-Preview-Dataset"
_SUFFIX = r"Let's think step by step and output the final answer within \boxed{}."
_SOURCES = {
    "preview": Source(rows=40315, hub=_HUB, split="train", local="deepscaler/dsr_sub.parquet", local_rows=1209),
    "math": Source(rows=7474, local="deepscaler/rllm_train_math.json"),
    "aime": Source(rows=975, local="deepscaler/rllm_train_aime.json"),
}
TESTED_ON = ("math500", "aime24", "aime25", "amc23", "minerva", "olympiadbench")


def deepscaler(source: Where = "auto", variant: str = "preview") -> DatasetTask:
    """DeepScaleR-Preview, training split only; locally a subset of 1,209 rows."""
    if variant not in _SOURCES:
        raise UserError(f"task deepscaler: variant = {variant!r}; choose one of {', '.join(_SOURCES)}")
    return DatasetTask(
        name="deepscaler",
        family="boxed_math",
        splits={"train": Split(_SOURCES[variant], _convert)},
        instruction=MATH,
        licence="MIT (some text © MAA)",
        where=source,
        tested_on=TESTED_ON,
    )


def _convert(index: int, row: Row) -> Problem:
    if "reward_model" in row:
        question, gold = str(row["prompt"][0]["content"]), row["reward_model"].get("ground_truth")
    else:
        question, gold = text_of(row, "problem"), row.get("answer")
    question = question.removesuffix(_SUFFIX).strip()
    return Problem(f"train-{index}", question, "" if gold is None else str(gold).strip())
