"""uv, which also fetches a Python where the machine has none of that version."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from torchbench_dbg.build.environment.protocol import python_of


class Uv:
    """`uv venv` and `uv pip`."""

    name = "uv"

    def problem(self, python_version: str | None) -> str | None:  # noqa: ARG002 - uv fetches what is not there
        return None if _program() else "uv is neither on PATH nor beside tdbg"

    def create(self, prefix: Path, python_version: str | None, channel: str) -> list[list[str]]:  # noqa: ARG002
        # With pip (--seed): a build without isolation calls it.
        return [[_program() or "uv", "venv", "--seed", "--python", python_version or sys.executable, str(prefix)]]

    def install(self, prefix: Path, requirements: Sequence[str]) -> list[list[str]]:
        return [[_program() or "uv", "pip", "install", "--python", str(python_of(prefix)), *requirements]]


def _program() -> str | None:
    """uv on PATH, or the one that pip installed beside tdbg."""
    beside = Path(sys.executable).with_name("uv")
    return shutil.which("uv") or (str(beside) if beside.exists() else None)
