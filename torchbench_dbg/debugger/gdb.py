"""Which gdb is used: the one asked for, else the one of the gdb-for-pwndbg wheel, else the system's."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from torchbench_dbg import process
from torchbench_dbg.errors import DebuggerError, TdbgError
from torchbench_dbg.paths import cache_directory, write_atomically

OLDEST = (12, 0)
WHEEL = "gdb-for-pwndbg"
_PROBE = "python import sys, gdb; print('tdbg', gdb.VERSION, sys.version_info[:2])"
_INSTALL = (
    "install one: apt-get install gdb (Debian, Ubuntu), dnf install gdb (Fedora), conda install -c conda-forge gdb"
)
# They are meant for other Pythons than the one inside gdb, or make it load what is not its own.
_NOT_FOR_GDB = ("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT", "LD_PRELOAD", "DEBUGINFOD_URLS")
_MOST_REMEMBERED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Gdb:
    """A gdb that starts, is new enough and has Python. `origin`: --gdb, gdb-for-pwndbg or PATH."""

    path: Path
    version: tuple[int, int]
    origin: str


def find_gdb(explicit: str | None) -> Gdb:
    """The gdb to use: `explicit` (a path or a name on PATH), else the wheel's if it starts, else PATH's.

    DebuggerError says of each candidate why it can't be used. The wheel's is linked to the shared libpython of the
    interpreter it was installed for, so on a Python without one (Debian's, before libpython3.x is installed) it
    does not start.
    """
    if explicit:
        found = shutil.which(os.path.expanduser(explicit))
        if found is None:
            what = "can't be executed" if os.path.exists(os.path.expanduser(explicit)) else "does not exist"
            raise DebuggerError(f"there is no gdb {explicit}: it {what}.", hint="--gdb takes a path or a name on PATH")
        return _checked(Path(found), "--gdb")
    reasons = []
    for path, origin in _candidates():
        try:
            return _checked(path, origin)
        except DebuggerError as error:
            reasons.append(error.message)
    raise DebuggerError("no usable gdb: " + ("; ".join(reasons) or "none is installed") + ".", hint=_INSTALL)


def environment(gdb: Gdb | None = None) -> dict[str, str]:
    """The environment for a gdb: without what is meant for other Pythons, its messages in English."""
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_GDB}
    if (gdb is None or gdb.origin == WHEEL) and "PYTHONPATH" in os.environ:
        kept["PYTHONPATH"] = os.environ["PYTHONPATH"]  # its starter is a script of this Python, and cleans up itself
    return {**kept, "LC_ALL": "C.UTF-8", "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _candidates() -> Iterator[tuple[Path, str]]:
    script = _script_of_wheel()
    if script is not None:
        yield script, WHEEL
    if (found := shutil.which("gdb")) and (script is None or not os.path.samefile(found, script)):
        yield Path(found), "PATH"


def _script_of_wheel() -> Path | None:
    """The command `gdb` that the wheel installed. It starts the real program in a hundredth of a second."""
    try:
        files = metadata.distribution(WHEEL).files or ()
    except metadata.PackageNotFoundError:
        return None
    scripts = (Path(str(file.locate())) for file in files if file.name == "gdb" and "_vendor" not in file.parts)
    return next((script.resolve() for script in scripts if os.access(script, os.X_OK)), None)


def _checked(path: Path, origin: str) -> Gdb:
    key = _key(path)
    known = _remembered()
    version = known.get(key)
    if version is None:
        version = _ask(path, origin)
        _remember({**known, key: version})
    if version < OLDEST:
        raise DebuggerError(f"{path} is gdb {version[0]}.{version[1]}; {OLDEST[0]} or newer is needed", hint=_INSTALL)
    return Gdb(path=path, version=version, origin=origin)


def _key(path: Path) -> str:
    try:
        status = path.stat()
    except OSError as error:
        raise DebuggerError(f"{path}: {error.strerror}", hint=_INSTALL) from error
    return f"{path} {status.st_mtime_ns} {status.st_size} {sys.version_info[0]}.{sys.version_info[1]}"


def _ask(path: Path, origin: str) -> tuple[int, int]:
    """The version, from one batch call that needs the embedded Python as well."""
    asked = Gdb(path=path, version=(0, 0), origin=origin)
    try:
        answer = process.run([str(path), "-nx", "-nh", "-batch", "-ex", _PROBE], timeout=30, env=environment(asked))
    except TdbgError as error:
        raise DebuggerError(f"{path}: {error.message}", hint=_INSTALL) from error
    if found := re.search(r"^tdbg \D*?(\d+)\.(\d+)", answer.stdout, re.MULTILINE):
        return int(found[1]), int(found[2])
    told = (answer.stderr.strip() or answer.stdout.strip()).splitlines()
    if any("not supported in this copy" in line or "scripting is not supported" in line for line in told):
        raise DebuggerError(f"{path} has no Python in it, tdbg's scripts need one", hint=_INSTALL)
    if not told:
        told = ["it is no gdb" if answer.returncode == 0 else f"exit code {answer.returncode}"]
    raise DebuggerError(f"{path} does not answer: {told[-1]}", hint=_INSTALL)


def _memory() -> Path:
    return cache_directory() / "gdb.json"


def _remembered() -> dict[str, tuple[int, int]]:
    try:
        data = json.loads(_memory().read_text(encoding="utf-8"))
        return {str(key): (int(value[0]), int(value[1])) for key, value in data.items()}
    except (OSError, ValueError, TypeError, AttributeError, LookupError):
        return {}


def _remember(known: dict[str, tuple[int, int]]) -> None:
    try:
        write_atomically(_memory(), json.dumps(dict(list(known.items())[-_MOST_REMEMBERED:])))
    except OSError:
        return  # asked again next time
