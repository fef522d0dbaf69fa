"""A full C++ backtrace of a stopped process, by a gdb that attaches for a moment."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchbench_dbg import process
from torchbench_dbg.debugger.gdb import Gdb
from torchbench_dbg.errors import DebuggerError, PtraceForbidden, TdbgError
from torchbench_dbg.paths import gdbinit_directory

_BEFORE_ATTACHING = (
    "set auto-load off",
    "set auto-solib-add off",  # symbols are read for the libraries in the stack only
    "set confirm off",
    "set pagination off",
    "set width 0",
    "set print thread-events off",
    "set max-value-size 65536",
    "set backtrace past-main on",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """An argument or local, as text."""

    name: str
    type: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeFrame:
    """One frame, the innermost has level 0. `pc` is an address in the process; `file` and `line` need DWARF."""

    level: int
    pc: int
    function: str | None
    library: str | None
    file: str | None
    line: int | None
    inline: bool
    arguments: tuple[Variable, ...]
    locals: tuple[Variable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtrace:
    """The frames of one thread, innermost first."""

    thread: int
    frames: tuple[NativeFrame, ...]
    gdb_version: str


def capture(
    gdb: Gdb,
    pid: int,
    *,
    thread: int,
    tensor_layout: dict[str, int] | None = None,
    past_prologue: bool = False,
    source_paths: Sequence[tuple[str, str]] = (),
    limit: int = 200,
    timeout: float = 120.0,
) -> Backtrace:
    """The backtrace of a thread (its kernel id) of a process that is stopped and not traced.

    `tensor_layout`: byte offsets of the fields of TensorImpl (inferior/tensor_layout.py), to print tensors.
    `past_prologue`: run a function that was just entered to its first line, where its arguments can be read
    (only with DWARF). `timeout` in seconds. The process is left stopped. DebuggerError if gdb can't,
    PtraceForbidden if it may not.
    """
    answer = os.memfd_create("tdbg-backtrace", os.MFD_CLOEXEC)  # a pipe could fill up
    request = {
        "descriptor": answer,
        "thread": thread,
        "limit": limit,
        "variables": True,
        "past_prologue": past_prologue,
        "tensor_layout": tensor_layout,
    }
    environment = {**os.environ, "TDBG_BACKTRACE": json.dumps(request)}
    try:
        done = process.run(_command(gdb, pid, source_paths), timeout=timeout, env=environment, pass_fds=[answer])
    except TdbgError as error:
        raise DebuggerError(f"gdb failed: {error.message}") from error
    finally:
        text = os.pread(answer, os.fstat(answer).st_size, 0).decode(errors="replace")
        os.close(answer)
    if "ptrace: Operation not permitted" in done.stderr:
        raise PtraceForbidden("gdb may not attach to the traced process.", docs="docs/how-to/ptrace.md")
    if not text:
        told = done.stderr.strip().splitlines()
        raise DebuggerError(f"gdb gave no backtrace: {told[-1] if told else f'exit code {done.returncode}'}")
    return _backtrace(json.loads(text), thread)


def _command(gdb: Gdb, pid: int, source_paths: Sequence[tuple[str, str]]) -> list[str]:
    command = [str(gdb.path), "-nx", "-nh", "-q", "-batch"]
    settings = [*_BEFORE_ATTACHING, "set debuginfod enabled off"]
    settings += [f"set substitute-path {built} {here}" for built, here in source_paths]
    for setting in settings:
        command += ["-iex", setting]
    return [*command, "-p", str(pid), "-x", str(gdbinit_directory() / "tdbg_backtrace.py")]


def _backtrace(answer: dict[str, Any], thread: int) -> Backtrace:
    if answer["error"] and not answer["frames"]:
        raise DebuggerError(f"gdb gave no backtrace: {answer['error']}")
    return Backtrace(
        thread=thread, frames=tuple(_frame(frame) for frame in answer["frames"]), gdb_version=str(answer["gdb"])
    )


def _frame(frame: dict[str, Any]) -> NativeFrame:
    variables = {kind: tuple(Variable(**each) for each in frame[kind]) for kind in ("arguments", "locals")}
    return NativeFrame(**{**frame, **variables})
