"""What every backend can do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Backend(Protocol):
    """Makes an environment at a prefix and installs Python packages there, by commands that the build runs and logs."""

    name: str

    def problem(self, python_version: str | None) -> str | None:
        """Why it can't make an environment with that Python on this machine; None if it can."""

    def create(self, prefix: Path, python_version: str | None, channel: str) -> list[list[str]]:
        """Commands that make the environment with a Python of that version (as "3.11"; None: any that fits).

        `channel`: where conda packages are from (a name or an address).
        """

    def install(self, prefix: Path, requirements: Sequence[str]) -> list[list[str]]:
        """Commands that install requirement specifiers, and `-r FILE` pairs, into it."""


def python_of(prefix: Path) -> Path:
    """The interpreter of an environment."""
    return prefix / "bin" / "python"
