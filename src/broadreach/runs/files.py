"""Writing files so that a kill or a full disk never leaves half of one in place."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from broadreach.types import UserError


def file_name(text: str) -> str:
    """A task's or model's name as the name of a folder."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-")


@contextmanager
def explained_disk_errors(path: Path) -> Iterator[None]:
    """Turn a full or read-only disk, or a file where a folder should be, into one clear UserError; what was written
    before stays valid.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(f"no space left while writing {path}: free some disk, then resume the run") from None
        if error.errno in (errno.EACCES, errno.EROFS):
            raise UserError(
                f"cannot write {path}: {error.strerror}; choose another folder with --set run.dir=..."
            ) from None
        if error.errno in (errno.EEXIST, errno.ENOTDIR):
            raise UserError(f"{path} cannot be a folder: a file stands in its way; choose another place") from None
        raise


def write_atomically(path: Path, text: str) -> None:
    """Write aside, sync, rename: readers see the old file or the new one, never a part.

    What a killed process left aside is removed.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with explained_disk_errors(path):
        for left in path.parent.iterdir():
            name, _, writer = left.name.removesuffix(".tmp").rpartition(".")
            if name == f".{path.name}" and left.suffix == ".tmp" and not Path(f"/proc/{writer}").exists():
                left.unlink(missing_ok=True)
        with open(aside, "w", encoding="utf-8") as file:
            file.write(text)
            sync(file)
        os.replace(aside, path)
        sync_folder(path.parent)


def lock_or_refuse(file: IO[Any], path: Path) -> None:
    """Hold an open file until it is closed; UserError when another process writes it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UserError(f"{path} is being written by another process; wait for it, or stop it") from None


def sync(file: IO[Any]) -> None:
    """Flush a file down to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
