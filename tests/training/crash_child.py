"""A training process that kills itself: imported by a fork server, so that a child starts in milliseconds."""

import os
import sys
from pathlib import Path

import transformers.models.llama.modeling_llama
import transformers.models.llama.tokenization_llama  # noqa: F401  (children fork with the model's code loaded)

from broadreach.config import load_config
from broadreach.runs import checkpoint, ledger
from broadreach.training.es import train
from broadreach.training.reporter import Silent

sys.path.insert(0, str(Path(__file__).parents[1]))
from kills import kill_after, kill_inside_generation, kill_self  # noqa: F401  (run by name)


def kill_inside_ledger_write(count, share):
    """Die with `share` of the `count`-th ledger line on the disk."""
    calls = iter(range(1, 10**6))
    original = ledger.Ledger._append

    def append(self, row):
        if next(calls) != count:
            return original(self, row)
        size = os.path.getsize(self.path)
        original(self, row)
        os.truncate(self.path, size + max(1, int(share * (os.path.getsize(self.path) - size))))
        kill_self()

    ledger.Ledger._append = append


def kill_inside_snapshot(count):
    """Die with half of the `count`-th snapshot written."""
    calls = iter(range(1, 10**6))
    original = checkpoint.write_centre

    def write(centre, path, metadata):
        if next(calls) != count:
            return original(centre, path, metadata)
        original(centre, path, metadata)
        os.truncate(path, os.path.getsize(path) // 2)
        kill_self()

    checkpoint.write_centre = write


def run(settings, how=None, *arguments):
    """Train; die as `how` says."""
    if how is not None:
        globals()[how](*arguments)
    config = load_config([], settings)
    from broadreach.commands.api import run_folder

    train(config, run_folder(config), Silent())
