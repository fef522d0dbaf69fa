"""Which gdb is used: the one asked for, else the one of the gdb-for-pwndbg wheel, else the system's."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchbench_dbg import process
from torchbench_dbg.errors import DebuggerError, TdbgError
from torchbench_dbg.paths import cache_directory, write_atomically

OLDEST = (12, 0)
_PROBE = "python import sys, gdb; print('tdbg', gdb.VERSION, sys.version_info[:2])"
_INSTALL = (
    "install one: apt-get install gdb (Debian, Ubuntu), dnf install gdb (Fedora), conda install -c conda-forge gdb"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gdb:
    """A gdb that starts, is new enough and has Python."""

    path: Path
    version: tuple[int, int]
    origin: str


def find_gdb(explicit: str | None) -> Gdb:
    """The gdb to use. DebuggerError says of each candidate why it can't be used."""
    if explicit:
        found = shutil.which(os.path.expanduser(explicit))
        if found is None:
            raise DebuggerError(f"there is no gdb {explicit}.", hint="--gdb takes a path or a name on PATH")
        return _checked(Path(found), "--gdb")
    reasons = []
    for path, origin in _candidates():
        try:
            return _checked(path, origin)
        except DebuggerError as error:
            reasons.append(error.message)
    raise DebuggerError("no usable gdb: " + ("; ".join(reasons) or "none is installed") + ".", hint=_INSTALL)


def _candidates() -> Iterator[tuple[Path, str]]:
    if importlib.util.find_spec("gdb_for_pwndbg") is not None:
        script = Path(sys.executable).parent / "gdb"
        if script.exists():
            yield script, "gdb-for-pwndbg"
    if found := shutil.which("gdb"):
        yield Path(found), "system"


def _checked(path: Path, origin: str) -> Gdb:
    key = f"{path} {path.stat().st_mtime_ns} {sys.version_info[:2]}"
    known = _remembered()
    version = known.get(key)
    if version is None:
        version = _ask(path)
        _remember({**known, key: version})
    if tuple(version) < OLDEST:
        raise DebuggerError(f"{path} is gdb {version[0]}.{version[1]}; {OLDEST[0]} or newer is needed", hint=_INSTALL)
    return Gdb(path=path, version=(version[0], version[1]), origin=origin)


def _ask(path: Path) -> list[int]:
    try:
        answer = process.run([str(path), "-nx", "-nh", "-batch", "-ex", _PROBE], timeout=30)
    except TdbgError as error:
        raise DebuggerError(f"{path}: {error.message}", hint=_INSTALL) from error
    if found := re.search(r"^tdbg \D*?(\d+)\.(\d+)", answer.stdout, re.MULTILINE):
        return [int(found[1]), int(found[2])]
    told = (answer.stderr.strip() or answer.stdout.strip()).splitlines()
    if "Python scripting is not supported" in answer.stderr or "not supported in this copy" in answer.stderr:
        raise DebuggerError(f"{path} has no Python in it, tdbg's scripts need one", hint=_INSTALL)
    if not told:
        told = ["it is no gdb" if answer.returncode == 0 else f"exit code {answer.returncode}"]
    raise DebuggerError(f"{path} does not answer: {told[-1]}", hint=_INSTALL)


def _memory() -> Path:
    return cache_directory() / "gdb.json"


def _remembered() -> dict[str, list[int]]:
    try:
        data = json.loads(_memory().read_text(encoding="utf-8"))
        return {str(key): [int(part) for part in value] for key, value in data.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _remember(known: dict[str, list[int]]) -> None:
    try:
        write_atomically(_memory(), json.dumps(dict(list(known.items())[-16:])))
    except OSError:
        return  # asked again next time
