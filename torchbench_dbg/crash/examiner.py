"""Looks at each process that dies, while it stands still."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from torchbench_dbg.crash import analysis, stacks
from torchbench_dbg.crash.record import Crash
from torchbench_dbg.crash.snapshot import LiveProcess
from torchbench_dbg.crash.stderr import WrittenText
from torchbench_dbg.crash.watcher import Death
from torchbench_dbg.debugger import backtrace
from torchbench_dbg.debugger.gdb import Gdb
from torchbench_dbg.errors import TdbgError
from torchbench_dbg.trace import elf, procfs
from torchbench_dbg.trace.architecture import Architecture
from torchbench_dbg.trace.record import Frame, Variable

_GDB_SECONDS = 60.0


@dataclass(slots=True, kw_only=True)
class Examiner:
    """`show` is called with each crash when it has been looked at. `gdb`: for lines and variables."""

    script: int
    architecture: Architecture
    written: WrittenText
    show: Callable[[Crash], None]
    untraced: Callable[[Death], AbstractContextManager[None]]
    gdb: Gdb | None
    crashes: list[Crash] = field(default_factory=list)

    def on_death(self, death: Death) -> None:
        live = LiveProcess(death.pid, self.architecture)
        try:
            if not any(thread.native_id == death.tid for thread in live.threads):
                return
            crash = self._analyse(live, death, {})
            if self.gdb is not None and (libraries := _with_lines(crash)):
                with self.untraced(death):
                    details = _by_gdb(self.gdb, death, libraries)
                if details:
                    crash = self._analyse(live, death, details)
        finally:
            live.close()
        self.crashes.append(crash)
        self.show(crash)

    def _analyse(self, live: LiveProcess, death: Death, details: stacks.Details) -> Crash:
        at_fault = None
        if death.fault is not None:
            block = self.architecture.registers.from_buffer_copy(death.fault.registers)
            at_fault = {name: int(getattr(block, name)) for name, *_ in block._fields_}
        return analysis.analyse(
            live,
            next(thread for thread in live.threads if thread.native_id == death.tid),
            death.fault,
            command=procfs.command_line(death.pid),
            is_script=death.pid == self.script,
            written=self.written.text,
            process_facts=self._facts(death.pid),
            details=details,
            at_fault=at_fault,
        )

    def _facts(self, pid: int) -> list[str]:
        if pid == self.script:
            return []
        parent = int(procfs.status(pid).get("PPid", "0"))
        return ["child", *(["forked"] if parent and procfs.command_line(parent) == procfs.command_line(pid) else [])]


def _with_lines(crash: Crash) -> list[Path]:
    """The libraries in the failing stack that have debug information which somebody wants to see."""
    frames = crash.threads[0].frames if crash.threads else ()
    wanted = {
        Path(frame.library)
        for frame in frames
        if frame.library
        and frame.library.startswith("/")
        and not stacks.is_runtime(frame)
        and not stacks.is_standard(frame)
    }
    return sorted(library for library in wanted if _has_dwarf(library))


def _has_dwarf(path: Path) -> bool:
    try:
        with elf.opened(path) as file:
            return file.has_dwarf
    except (OSError, ValueError):
        return False


def _by_gdb(gdb: Gdb, death: Death, libraries: Sequence[Path]) -> dict[int, list[Frame]]:
    """The failing thread's frames in those libraries by program counter; {} if gdb can't."""
    try:
        found = backtrace.capture(gdb, death.pid, thread=death.tid, libraries=libraries, timeout=_GDB_SECONDS)
    except TdbgError:
        return {}
    details: dict[int, list[Frame]] = {}
    for frame in found.frames:
        if frame.library and Path(frame.library) in libraries and frame.file:
            details.setdefault(frame.pc, []).append(_described(frame))
    return details


def _described(frame: backtrace.NativeFrame) -> Frame:
    return Frame(
        kind="native",
        name=frame.function or "",
        library=frame.library,
        address=frame.offset_in_library or 0,
        file=frame.file,
        line=frame.line,
        inline=frame.inline,
        arguments=_told(frame.arguments),
        locals=_told(frame.locals),
    )


def _told(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """Those whose value is known."""
    return tuple(each for each in variables if not each.value.startswith(("<optimized out>", "<unreadable")))
