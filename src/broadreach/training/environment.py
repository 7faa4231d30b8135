"""What a run ran on: versions, hardware, commit, command."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PACKAGES = ("broadreach", "torch", "transformers", "numba", "numpy", "math-verify")


def environment(model_digest: str, parameters: int = 0, base_norm: float = 0.0) -> dict[str, Any]:
    """Facts for environment.json."""
    import torch

    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["broadreach", *sys.argv[1:]]) if sys.argv else "",
        "commit": _commit(),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "hardware": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        },
        "platform": platform.platform(),
        "model_digest": model_digest,
        "parameters": parameters,
        "base_norm": base_norm,
    }


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _commit() -> str | None:
    folder = Path(__file__).parent
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
