"""An evaluation that kills itself: imported by a fork server, so that a child starts in milliseconds."""

import sys
from pathlib import Path

import transformers.models.llama.modeling_llama
import transformers.models.llama.tokenization_llama  # noqa: F401  (children fork with the model's code loaded)

from broadreach.commands.evaluation import BaselineSettings, evaluate
from broadreach.evaluation import baselines, entropy_file, store  # noqa: F401
from broadreach.tasks.nano import NANO_TASKS

sys.path.insert(0, str(Path(__file__).parents[1]))
from kills import kill_after, kill_inside_generation, kill_self  # noqa: F401  (run by name)

NANO_TASKS["nano-choice"]().problems("test")  # drawn once, for all children

SETTINGS = [
    "eval.samples=4",
    "eval.problems=12",
    "eval.greedy=true",
    "eval.entropy=true",
    "sampling.max_new_tokens=10",
    "engine.rows=16",
    "engine.threads=1",
]


def kill_inside_store(count, share):
    """Die with `share` of the `count`-th block (a header or a problem) on the disk."""
    calls = iter(range(1, 10**6))
    original = store.SampleStore._write

    def write(self, block):
        if next(calls) == count:
            original(self, block[: int(share * len(block))])
            kill_self()
        original(self, block)

    store.SampleStore._write = write


def kill_inside_entropy(count):
    """Die before the `count`-th chunk is scored."""
    calls = iter(range(1, 10**6))
    original = entropy_file.add_scores

    def add_scores(*arguments):
        if next(calls) == count:
            kill_self()
        original(*arguments)

    entropy_file.add_scores = add_scores


def run(out, how=None, *arguments):
    """Evaluate the bundled model with greedy responses, entropy and baselines; die as `how` says."""
    entropy_file.CHUNK = 16
    if how is not None:
        globals()[how](*arguments)
    evaluate("nano", "nano-choice", out=out, overrides=SETTINGS, baselines=BaselineSettings((0.3,), 0.02))
