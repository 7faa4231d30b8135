"""An evaluation that kills itself: imported by a fork server, so that a child starts in milliseconds."""

import os
import signal
import threading

import transformers.models.llama.modeling_llama
import transformers.models.llama.tokenization_llama  # noqa: F401  (children fork with the model's code loaded)

from broadreach.commands.evaluation import BaselineSettings, evaluate
from broadreach.engines import decode
from broadreach.evaluation import baselines, entropy_file, store  # noqa: F401
from broadreach.tasks.nano import NANO_TASKS

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


def kill_self():
    """As abrupt as it gets: no handler, no flush, no finally."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_after(seconds):
    """At an instant that has nothing to do with what the process is doing."""
    threading.Timer(seconds, kill_self).start()


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


def kill_inside_generation(count):
    """Die in the middle of decoding."""
    calls = iter(range(1, 10**6))
    original = decode.sample_tokens

    def sample_tokens(*arguments):
        if next(calls) == count:
            kill_self()
        return original(*arguments)

    decode.sample_tokens = sample_tokens


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
