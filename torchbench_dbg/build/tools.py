"""The programs that a build calls: which there are, and their versions."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torchbench_dbg import process
from torchbench_dbg.errors import TdbgError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program on PATH. `version`: the first number that `--version` prints."""

    name: str
    path: str
    version: tuple[int, ...]

    @property
    def text(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))}" if self.version else self.name


def find_tool(name: str, variables: Mapping[str, str]) -> Tool | None:
    """A program as the build would find it, by its PATH; None if there is none that starts."""
    path = shutil.which(name, path=variables.get("PATH"))
    if path is None:
        return None
    try:
        told = process.run([path, "--version"], timeout=30, env=variables)
    except TdbgError:
        return None
    found = re.search(r"(\d+(?:\.\d+)+)", told.stdout + told.stderr)
    return Tool(name=name, path=path, version=tuple(map(int, found[1].split("."))) if found else ())


def compilers(variables: Mapping[str, str]) -> tuple[Tool | None, Tool | None]:
    """The C and the C++ compiler that cmake will take: CC and CXX, else cc and c++."""
    return find_tool(variables.get("CC", "cc"), variables), find_tool(variables.get("CXX", "c++"), variables)


def fast_linker(wanted: str | None, variables: Mapping[str, str]) -> str | None:
    """`mold` or `lld`, whichever is there first; None for the compiler's own. A debug libtorch_cpu takes the usual
    linker minutes."""
    names = {"mold": "mold", "lld": "ld.lld", "gold": "ld.gold", "bfd": "ld.bfd"}
    if wanted:
        return wanted
    return next((name for name in ("mold", "lld") if shutil.which(names[name], path=variables.get("PATH"))), None)


def distcc_jobs(hosts: str) -> int:
    """How many compilers distcc's hosts take at a time, as distcc itself counts; 0 if there is no distcc."""
    try:
        told = process.run(["distcc", "-j"], timeout=30, env={**os.environ, "DISTCC_HOSTS": hosts})
    except TdbgError:
        return 0
    return int(told.stdout) if told.stdout.strip().isdigit() else 0


def is_inside(path: Path, directory: Path) -> bool:
    """Whether a path is in a directory, links followed."""
    return directory.resolve() in (path.resolve(), *path.resolve().parents)
