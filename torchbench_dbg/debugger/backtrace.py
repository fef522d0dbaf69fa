"""Full C++ backtraces of a stopped process, by a gdb that attaches for a moment."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torchbench_dbg import process
from torchbench_dbg.debugger import leftovers
from torchbench_dbg.debugger.gdb import Gdb, environment
from torchbench_dbg.errors import DebuggerError, PtraceForbidden, TdbgError
from torchbench_dbg.paths import cache_directory, gdbinit_directory
from torchbench_dbg.trace import procfs, ptrace
from torchbench_dbg.trace.record import Variable

_BEFORE_ATTACHING = (
    "set auto-load off",
    "set auto-solib-add off",  # symbols are read for the libraries in the stack only
    "set debuginfod enabled off",
    "set confirm off",
    "set pagination off",
    "set width 0",
    "set print thread-events off",
    "set max-value-size 65536",
    "set backtrace past-main on",
)
_SHARE_OF_SCRIPT = 0.7  # of the time limit; then gdb's script stops by itself and tells what it has


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeFrame:
    """One frame, the innermost has level 0.

    `pc` is an address in the process, `offset_in_library` the same as the library's own symbol table counts.
    `function` is demangled. `file` and `line` need DWARF, as do arguments and locals.
    """

    level: int
    pc: int
    function: str | None
    library: str | None
    offset_in_library: int | None
    file: str | None
    line: int | None
    inline: bool
    arguments: tuple[Variable, ...]
    locals: tuple[Variable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadBacktrace:
    """The frames of one thread, innermost first; `native_id` is the kernel's number of it."""

    native_id: int
    name: str | None
    frames: tuple[NativeFrame, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtrace:
    """The stacks of a process, the thread that was asked for first. `warnings` say what is missing."""

    threads: tuple[ThreadBacktrace, ...]
    gdb_version: str
    warnings: tuple[str, ...]

    @property
    def thread(self) -> int:
        """The kernel's number of the thread that was asked for."""
        return self.threads[0].native_id

    @property
    def frames(self) -> tuple[NativeFrame, ...]:
        """The frames of the thread that was asked for."""
        return self.threads[0].frames


def capture(
    gdb: Gdb,
    pid: int,
    *,
    thread: int | None = None,
    all_threads: bool = False,
    libraries: Sequence[Path] | None = None,
    want_locals: bool = True,
    tensor_layout: Mapping[str, int] | None = None,
    past_prologue: bool = False,
    source_paths: Sequence[tuple[str, str]] = (),
    limit: int = 200,
    timeout: float = 120.0,
) -> Backtrace:
    """The stacks of a process that is stopped (SIGSTOP) and not traced. It is left so, with no byte changed.

    `thread`: the kernel's number of the thread of interest, the main thread if None. The others come after it, without
    variables, if `all_threads`. `libraries`: the large ones whose names and debug information are wanted, all in the
    stack if None. `want_locals`: arguments and locals, where there is DWARF. `tensor_layout`: byte offsets of the
    fields of TensorImpl (inferior/tensor_layout.py), to print tensors. `past_prologue`: run a function that was just
    entered to its first line, where its arguments can be read. `source_paths`: (directory at build time, here).
    `limit`: frames of a thread. `timeout` in seconds.

    DebuggerError if gdb can't do it in time, PtraceForbidden if it may not.
    """
    request = {
        "thread": pid if thread is None else thread,
        "all_threads": all_threads,
        "limit": limit,
        "seconds": timeout * _SHARE_OF_SCRIPT,
        "variables": want_locals,
        "libraries": None if libraries is None else [os.path.realpath(path) for path in libraries],
        "past_prologue": past_prologue,
        "tensor_layout": dict(tensor_layout) if tensor_layout else None,
        "index_cache": str(cache_directory() / "gdb-index"),
    }
    answer = os.memfd_create("tdbg-backtrace", os.MFD_CLOEXEC)  # a pipe could fill up
    try:
        told = _ask(gdb, pid, {**request, "descriptor": answer}, source_paths, timeout)
        text = os.pread(answer, os.fstat(answer).st_size, 0)
    finally:
        os.close(answer)
    if not text:
        raise _failure(pid, told)
    return _backtrace(json.loads(text))


def _ask(
    gdb: Gdb, pid: int, request: dict[str, Any], source_paths: Sequence[tuple[str, str]], timeout: float
) -> process.Completed:
    variables = {**environment(gdb), "TDBG_BACKTRACE": json.dumps(request)}
    command = _command(gdb, pid, source_paths)
    try:
        return process.run(command, timeout=timeout, env=variables, pass_fds=[request["descriptor"]])
    except BaseException as error:
        _after_kill(pid)
        if isinstance(error, TdbgError):
            raise DebuggerError(f"gdb failed: {error.message}", hint=error.hint) from error
        raise


def _after_kill(pid: int) -> None:
    """gdb lets the process go for a moment when it attaches. Killed then, it leaves it running, or changed."""
    if procfs.status(pid).get("State", "X")[0] not in "TXZ":
        os.kill(pid, signal.SIGSTOP)
    leftovers.remove_breakpoints(pid)


def _command(gdb: Gdb, pid: int, source_paths: Sequence[tuple[str, str]]) -> list[str]:
    command = [str(gdb.path), "-nx", "-nh", "-q", "-batch"]
    substitutes = [f"set substitute-path {_quoted(built)} {_quoted(here)}" for built, here in source_paths]
    for setting in (*_BEFORE_ATTACHING, *substitutes):
        command += ["-iex", setting]
    return [*command, "-p", str(pid), "-x", str(gdbinit_directory() / "tdbg_backtrace.py")]


def _quoted(path: str) -> str:
    """A word for gdb's command line, which knows quotes and backslashes as a shell does."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _failure(pid: int, told: process.Completed) -> TdbgError:
    """Why gdb gave no answer."""
    status = procfs.status(pid)
    if status.get("State", "X")[0] in "XZ":
        return DebuggerError(f"gdb gave no backtrace: process {pid} has ended.")
    tracer = status.get("TracerPid", "0")
    if tracer != "0":
        return PtraceForbidden(f"process {pid} is traced by process {tracer} already.")
    if "Operation not permitted" in told.stderr:
        return ptrace.forbidden()
    lines = told.stderr.strip().splitlines()
    return DebuggerError(f"gdb gave no backtrace: {lines[-1] if lines else f'exit code {told.returncode}'}")


def _backtrace(answer: dict[str, Any]) -> Backtrace:
    """What the script in gdb answered. A later failure does not take away the frames that it had."""
    if answer["error"] and not answer["threads"]:
        raise DebuggerError(f"gdb gave no backtrace: {answer['error']}")
    warnings = [*answer["warnings"], *([answer["error"]] if answer["error"] else [])]
    return from_json({"threads": answer["threads"], "gdb_version": answer["gdb"], "warnings": warnings})


def to_json(backtrace: Backtrace) -> dict[str, Any]:
    """As plain dicts and lists."""
    return asdict(backtrace)


def from_json(data: Mapping[str, Any]) -> Backtrace:
    """The reverse of `to_json`. DebuggerError if it is no backtrace."""
    try:
        if not data["threads"]:
            raise ValueError("it has no threads")
        return Backtrace(
            threads=tuple(_thread(thread) for thread in data["threads"]),
            gdb_version=str(data["gdb_version"]),
            warnings=tuple(map(str, data["warnings"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DebuggerError(f"this is no backtrace of gdb's: {error}") from error


def _thread(data: Mapping[str, Any]) -> ThreadBacktrace:
    frames = tuple(_frame(frame) for frame in data["frames"])
    return ThreadBacktrace(native_id=data["native_id"], name=data["name"], frames=frames)


def _frame(data: Mapping[str, Any]) -> NativeFrame:
    variables = {kind: tuple(Variable(**each) for each in data[kind]) for kind in ("arguments", "locals")}
    return NativeFrame(**{**data, **variables})
