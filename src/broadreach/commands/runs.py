"""`broadreach runs`: the run folders below a directory, with their state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from broadreach.runs.folder import RunFolder


def runs(root: Annotated[str, typer.Argument(help="Where to look.")] = "runs") -> None:
    """List runs: state, updates, reward first and last, task and model."""
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from broadreach.runs.folder import find_runs

    found = find_runs(Path(root))
    if not found:
        print(f"no runs below {root}; `broadreach train demo` starts one")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("run", "state", "updates", "reward", "task", "model"):
        table.add_column(column)
    for run in found:
        table.add_row(*_row(run))
    Console(highlight=False, soft_wrap=True).print(table)


def _row(run: RunFolder) -> list[str]:
    from broadreach.runs.ledger import read_ledger
    from broadreach.training.budget import read_lines
    from broadreach.types import UserError

    try:
        config = run.config()
        read_ledger(run.ledger_file)
    except UserError as error:
        return [str(run.path), "unreadable", "", "", str(error)[:60], ""]
    rewards = [line["reward_mean"] for line in read_lines(run)]
    moved = f"{rewards[0]:.3f} -> {rewards[-1]:.3f}" if rewards else ""
    state = "done" if run.is_done() else ("running" if _held(run) else "stopped")
    return [str(run.path), state, str(len(rewards)), moved, config.task.name, config.model.path]


def _held(run: RunFolder) -> bool:
    import fcntl

    try:
        with open(run.path / "lock", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
