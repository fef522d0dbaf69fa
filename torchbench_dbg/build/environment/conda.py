"""The conda family: conda, mamba and micromamba take the same words."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from torchbench_dbg.build.environment.protocol import python_of

CONDA_FORGE = "conda-forge"
# Compilers and a debugger of the environment's own, so that nothing of the machine mixes in.
_FROM_CONDA_FORGE = ("pip", "cxx-compiler", "cmake", "ninja", "ccache", "gdb")


class CondaFamily:
    """One of the programs. `name` is the program's."""

    def __init__(self, name: str) -> None:
        self.name = name

    def problem(self, python_version: str | None) -> str | None:  # noqa: ARG002 - the channel has all versions
        if self._program():
            return None
        if self.name == "conda" and "CONDA_SHLVL" in os.environ:
            return "conda is a shell function here and its program is not on PATH (set CONDA_EXE to it)"
        return f"{self.name} is not on PATH"

    def create(self, prefix: Path, python_version: str | None, channel: str) -> list[list[str]]:
        program = self._program() or self.name
        channels = ["--override-channels", "--channel", channel]
        return [[program, "create", "--yes", "--prefix", str(prefix), *channels, *packages(python_version, channel)]]

    def install(self, prefix: Path, requirements: Sequence[str]) -> list[list[str]]:
        return pip_install(prefix, requirements)

    def _program(self) -> str | None:
        """Its path: conda's and mamba's shell functions leave it in a variable."""
        named = os.environ.get({"conda": "CONDA_EXE", "mamba": "MAMBA_EXE", "micromamba": "MAMBA_EXE"}[self.name], "")
        if named and os.access(named, os.X_OK) and Path(named).name == self.name:
            return named
        return shutil.which(self.name)


def packages(python_version: str | None, channel: str) -> list[str]:
    """What an environment is made of. A channel of one's own may have no more than a Python."""
    python = f"python={python_version}" if python_version else "python"
    return [python, *(_FROM_CONDA_FORGE if channel == CONDA_FORGE else ("pip",))]


def pip_install(prefix: Path, requirements: Sequence[str]) -> list[list[str]]:
    """What is on PyPI comes by pip, as the sources' own requirements name it."""
    return [[str(python_of(prefix)), "-m", "pip", "install", "--disable-pip-version-check", *requirements]]
