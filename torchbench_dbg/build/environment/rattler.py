"""py-rattler: a library that solves and installs conda packages, with no conda on the machine and no root."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from torchbench_dbg.build.environment.conda import packages, pip_install


class Rattler:
    """Runs `python -m torchbench_dbg.build.environment.rattler_install`: a process of its own, as all commands."""

    name = "rattler"

    def problem(self, python_version: str | None) -> str | None:  # noqa: ARG002 - the channel has all versions
        if importlib.util.find_spec("rattler") is None:
            return "py-rattler is not installed (pip install 'torchbench-dbg[conda]')"
        return None

    def create(self, prefix: Path, python_version: str | None, channel: str) -> list[list[str]]:
        module = "torchbench_dbg.build.environment.rattler_install"
        return [[sys.executable, "-m", module, "--channel", channel, str(prefix), *packages(python_version, channel)]]

    def install(self, prefix: Path, requirements: Sequence[str]) -> list[list[str]]:
        return pip_install(prefix, requirements)
