"""`broadreach runs`: the run folders below a directory, with their state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from broadreach.runs.folder import RunFolder


def runs(root: Annotated[str, typer.Argument(help="Where to look.")] = "runs") -> None:
    """List runs: state, updates, reward first and last, task and model."""
    from pathlib import Path

    from broadreach.runs.folder import find_runs

    found = find_runs(Path(root))
    if not found:
        print(f"no runs below {root}; `broadreach train demo` starts one")
        return
    rows = [["run", "state", "updates", "reward", "task", "model"], *(_row(run) for run in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


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
