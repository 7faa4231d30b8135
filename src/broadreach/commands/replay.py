"""`broadreach replay`: rebuild the weights of any step from the base model and the ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from broadreach.types import UserError


def replay(
    run: Annotated[str, typer.Argument(help="Run folder.")],
    step: Annotated[int, typer.Option("--step", help="Update whose weights to rebuild; 0 is the base.")],
    out: Annotated[str, typer.Option("--out", help="New Hugging Face directory to write.")],
    dtype: Annotated[str, typer.Option("--dtype", help="Type of the written weights; float32 is exact.")] = "float32",
) -> None:
    """Rebuild the weights of a step, checking every digest on the way, and write a plain Hugging Face directory."""
    from pathlib import Path

    from broadreach.models.locate import locate
    from broadreach.models.weights import export
    from broadreach.runs.folder import RunFolder
    from broadreach.training.rebuild import rebuild

    target = Path(out)
    if target.exists() and any(target.iterdir()):
        raise UserError(f"--out {out} is not empty: choose a new directory")
    folder = RunFolder(run)
    centre, checked = rebuild(folder, step)
    export(centre, locate(folder.config().model.path), target, dtype)
    print(f"{target}: weights after update {step}, {checked} digests checked")
