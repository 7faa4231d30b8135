"""The functions behind `broadreach.train` and `broadreach.evaluate`, shared by scripts and commands."""

from __future__ import annotations

from broadreach.commands.evaluation import EvaluationResult, SuiteResult, evaluate, evaluate_suite
from broadreach.config import Config
from broadreach.runs.files import file_name
from broadreach.runs.folder import RunFolder
from broadreach.training.reporter import Reporter, Silent

__all__ = ["EvaluationResult", "SuiteResult", "evaluate", "evaluate_suite", "run_folder", "start", "train"]


def run_folder(config: Config) -> RunFolder:
    """The folder of this run: `run.dir`, or runs/<task>-seed<seed>."""
    return RunFolder(config.run.dir or f"runs/{file_name(config.task.name)}-seed{config.seed}")


def train(config: Config, reporter: Reporter | None = None) -> RunFolder:
    """Train as the configuration says and return the run folder; a run that was interrupted goes on.

    UserError for anything the user can mend.
    """
    run = run_folder(config)
    start(config, run, reporter or Silent())
    return run


def start(config: Config, run: RunFolder, reporter: Reporter) -> None:
    """Train in `run`, or go on with it, by the method or the stages of the settings."""
    from broadreach.training.budget import write_budget

    try:
        if config.train.stages:
            from broadreach.training import sequence

            sequence.train(config, run, reporter)
        else:
            from broadreach.training.methods import training_method

            training_method(config.train.method)(config, run, reporter)
    finally:
        write_budget(run)
