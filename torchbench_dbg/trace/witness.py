"""Full backtraces, by gdb: at a --break, at a crash, at a timeout. Merged with the Python frames of the moment."""

from __future__ import annotations

import mmap
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from torchbench_dbg.debugger.backtrace import Backtrace, NativeFrame, capture
from torchbench_dbg.debugger.gdb import find_gdb
from torchbench_dbg.errors import DebuggerError
from torchbench_dbg.trace.calltree import Merged, merge, read_ring
from torchbench_dbg.trace.libraries import WatchedLibraries
from torchbench_dbg.trace.names import demangle
from torchbench_dbg.trace.record import Call, Code, Frame, Stop, Variable
from torchbench_dbg.trace.tracer import Outcome, Tracer

if TYPE_CHECKING:
    from torchbench_dbg.trace.assemble import FunctionTable
    from torchbench_dbg.trace.engine import TraceRequest

Reason = Literal["break", "crash", "timeout", "exit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """A stop, as far as it is known when it happens: how much of the timeline and of the ring belongs to it."""

    reason: Reason
    title: str
    tid: int
    timeline: int
    python_events: int
    backtrace: Backtrace | None
    note: str | None


@dataclass(slots=True, kw_only=True)
class Witness:
    """Takes the backtraces of one trace."""

    request: TraceRequest
    tracer: Tracer
    libraries: WatchedLibraries
    titles: dict[int, str]  # address of a breakpoint -> what the person typed
    ring: mmap.mmap
    notes: list[str] = field(default_factory=list)
    _moments: list[_Moment] = field(default_factory=list)

    def at_break(self, outcome: Outcome) -> None:
        """Backtrace at a --break; the process goes on afterwards."""
        self._witness("break", self.titles.get(outcome.address, "breakpoint"), outcome)
        self.tracer.resume_suspended(outcome.tid, outcome.address)

    def at_end(self, outcome: Outcome) -> None:
        """Backtrace of a crash or a timeout; the process stays stopped."""
        if outcome.kind == "crashed":
            name = signal.Signals(outcome.code).name
            self._witness("crash", f"{name} at address {outcome.address:#x}", outcome)
        else:
            self._witness("timeout", f"still running after {self.request.timeout:g} s", outcome)

    def _witness(self, reason: Reason, title: str, outcome: Outcome) -> None:
        timeline, events = len(self.tracer.timeline), self.tracer.count_python_events()
        self.tracer.suspend(outcome.tid)
        backtrace, note = None, None
        try:
            backtrace = capture(
                find_gdb(self.request.gdb),
                self.tracer.pid,
                libraries=[library.path for library in self.libraries.loaded],
                want_locals=True,
                source_paths=self._source_paths(),
                thread=outcome.tid,
                all_threads=False,
                limit=self.request.max_break_frames,
                timeout=120,
            )
        except DebuggerError as error:
            if reason == "break":
                raise
            note = f"no full C++ backtrace: {error}"
        self._moments.append(
            _Moment(
                reason=reason,
                title=title,
                tid=outcome.tid,
                timeline=timeline,
                python_events=events,
                backtrace=backtrace,
                note=note,
            )
        )

    def _source_paths(self) -> list[tuple[str, str]]:
        return [("/pytorch", str(self.request.source))] if self.request.source else []

    def stops(self, codes: Sequence[Code], table: FunctionTable) -> Iterator[Stop]:
        """The stops of the record."""
        for moment in self._moments:
            merged = merge(
                read_ring(self.ring)[: moment.python_events],
                self.tracer.timeline[: moment.timeline],
                function_of=table.number,
            )
            frames = _Merging(merged=merged, codes=codes, table=table, libraries=self.libraries)
            open_calls = merged.open_calls.get(moment.tid, ())
            threads = moment.backtrace.threads if moment.backtrace else ()
            native = next((thread.frames for thread in threads if thread.native_id == moment.tid), ())
            yield Stop(
                reason=moment.reason,
                title=moment.title,
                thread=moment.tid,
                frames=tuple(frames.merged_frames(open_calls, native)),
                call=open_calls[-1][0] if open_calls else -1,
                note=moment.note,
            )


@dataclass(slots=True, kw_only=True)
class _Merging:
    """gdb's frames and the merged tree's open calls, as one list, innermost first."""

    merged: Merged
    codes: Sequence[Code]
    table: FunctionTable
    libraries: WatchedLibraries

    def merged_frames(
        self, open_calls: Sequence[tuple[int, int]], native: Sequence[NativeFrame]
    ) -> Iterator[Frame]:
        rest = list(open_calls)
        if not native:
            for number, line in reversed(rest):
                yield self._open_frame(self.merged.calls[number], line)
            return
        for frame in native:
            if _is_interpreter(frame):
                # Here Python frames stand, up to the next C++ function that is known to be open.
                while rest and self.merged.calls[rest[-1][0]].kind != "native":
                    number, line = rest.pop()
                    yield self._open_frame(self.merged.calls[number], line)
                continue
            yield self._native_frame(frame)
            if self._is_watched(frame):
                while rest and self.merged.calls[rest[-1][0]].kind == "native" and self._same(rest[-1][0], frame):
                    rest.pop()
        for number, line in reversed(rest):
            if self.merged.calls[number].kind != "native":
                yield self._open_frame(self.merged.calls[number], line)

    def _same(self, number: int, frame: NativeFrame) -> bool:
        function = self.table.functions[self.merged.calls[number].ref]
        library = self.libraries.loaded[function.library]
        if frame.library is None or Path(frame.library).name != library.path.name:
            return True  # left behind by a tail call: its own frame is gone
        found = library.index.find(frame.offset_in_library or 0)
        return found is not None and library.index.starts[found] == function.offset

    def _is_watched(self, frame: NativeFrame) -> bool:
        return any(frame.library == str(library.path) for library in self.libraries.loaded)

    def _open_frame(self, call: Call, line: int) -> Frame:
        if call.kind == "native":
            function = self.table.functions[call.ref]
            library = self.libraries.loaded[function.library].path
            return Frame(kind="native", name=function.name, library=str(library), address=function.offset)
        code = self.codes[call.ref]
        return Frame(kind="python", name=code.name, file=code.file, line=line or code.line)

    def _native_frame(self, frame: NativeFrame) -> Frame:
        return Frame(
            kind="native",
            name=frame.function or self._name_of(frame) or f"{frame.pc:#x}",
            library=frame.library,
            address=frame.offset_in_library or 0,
            file=frame.file,
            line=frame.line,
            inline=frame.inline,
            arguments=_variables(frame.arguments),
            locals=_variables(frame.locals),
        )

    def _name_of(self, frame: NativeFrame) -> str | None:
        for library in self.libraries.loaded:
            if frame.library == str(library.path) and frame.offset_in_library is not None:
                symbol = library.index.find(frame.offset_in_library)
                if symbol is not None and library.index.name(symbol):
                    return demangle(library.index.name(symbol))
                return f"{library.path.name}+{frame.offset_in_library:#x}"
        return None


def _is_interpreter(frame: NativeFrame) -> bool:
    name = Path(frame.library).name if frame.library else ""
    return name.startswith(("libpython", "python"))


def _variables(variables: Sequence[object]) -> tuple[Variable, ...]:
    return tuple(
        Variable(name=str(getattr(each, "name", "")), type=str(getattr(each, "type", "")), value=str(getattr(each, "value", "")))
        for each in variables
    )
