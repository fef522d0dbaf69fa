"""`tdbg gdb` becomes a gdb that has tdbg's commands; `tdbg gdbinit` tells any other gdb where they are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from torchbench_dbg import console, process, settings
from torchbench_dbg.debugger.gdb import WHEEL, find_gdb
from torchbench_dbg.errors import InternalError
from torchbench_dbg.paths import gdbinit_directory

# What must not reach the Python inside gdb, and what the gdb of the wheel sets for it: the program that is debugged
# gets them as they were given to tdbg.
_OF_THE_PROGRAM = ("LD_PRELOAD", "PYTHONHOME", "PYTHONINSPECT", "PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONSTARTUP")


def run(arguments: Sequence[str], *, explicit: str | None) -> NoReturn:
    """Replace this process by gdb, on the user's terminal: Ctrl-C, job control and the exit code are gdb's own."""
    gdb = find_gdb(explicit or settings.load(warn=console.warn)["gdb"])
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_PROGRAM}
    if gdb.origin == WHEEL and "PYTHONPATH" in os.environ:
        kept["PYTHONPATH"] = os.environ["PYTHONPATH"]  # its starter is a script of this Python
    process.replace([str(gdb.path), *before_all(os.environ), *arguments], env=kept)


def before_all(given: Mapping[str, str]) -> list[str]:
    """What gdb executes first: the environment of the program that it will debug, and tdbg.py."""
    commands = []
    for name in _OF_THE_PROGRAM:
        commands.append(f"set environment {name} = {given[name]}" if name in given else f"unset environment {name}")
    return [word for command in [*commands, f"source {script()}"] for word in ("-iex", command)]


def print_path() -> int:
    """The path on stdout, what to do with it on stderr."""
    console.print_text(str(script()))
    console.message('load it in gdb with "source PATH", always with that line in ~/.gdbinit; then: help tdbg')
    return 0


def script() -> Path:
    """The file to source. InternalError if this installation lacks it."""
    path = (gdbinit_directory() / "tdbg.py").resolve()
    if not path.is_file():
        raise InternalError(f"{path} is missing: this installation of tdbg is incomplete.", hint="install tdbg again")
    return path
