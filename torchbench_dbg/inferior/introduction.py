"""What the inferior tells of itself before it is followed: hello, then imported."""

from __future__ import annotations

import importlib
import os
import platform
import sys
import time
from collections.abc import Sequence
from typing import Any

from .guards import stage
from .libraries import torch_directory, torch_libraries


def hello_event() -> dict[str, Any]:
    """The interpreter, and where it would find torch."""
    directory = torch_directory()
    return {
        "event": "hello",
        "pid": os.getpid(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "torch_directory": directory,
        "torch_libraries": torch_libraries(directory),
    }


def import_torch() -> tuple[Any, dict[str, Any]]:
    """(torch, the 'imported' event). Raises StageFailure."""
    began = time.perf_counter()
    with stage("import"):
        torch: Any = importlib.import_module("torch")
        # The rest also proves that it is torch, and not some directory of that name.
        version = torch.version
        event = {
            "event": "imported",
            "torch_version": str(torch.__version__),
            "git_version": getattr(version, "git_version", None),
            "debug": getattr(version, "debug", None),
            "cuda": bool(getattr(version, "cuda", None) or getattr(version, "hip", None)),
            "seconds": time.perf_counter() - began,
        }
    return torch, event


def load_libraries(torch: Any, paths: Sequence[str]) -> None:
    """torch.ops.load_library of each. Raises StageFailure."""
    with stage("setup"):
        for path in paths:
            torch.ops.load_library(path)
