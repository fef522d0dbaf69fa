"""The standard library's venv."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from torchbench_dbg.build.environment.conda import pip_install


class Venv:
    """`python -m venv`, with pip."""

    name = "venv"

    def problem(self, python_version: str | None) -> str | None:
        return None if _interpreter(python_version) else f"there is no python{python_version} on PATH"

    def create(self, prefix: Path, python_version: str | None, channel: str) -> list[list[str]]:  # noqa: ARG002
        return [[_interpreter(python_version) or f"python{python_version}", "-m", "venv", str(prefix)]]

    def install(self, prefix: Path, requirements: Sequence[str]) -> list[list[str]]:
        return pip_install(prefix, requirements)


def _interpreter(version: str | None) -> str | None:
    """A Python of the version on PATH; the one that runs tdbg where any will do."""
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if version is None or version == here:
        return sys.executable
    return shutil.which(f"python{version}")
