"""Full backtraces, by gdb: at a --break, at a crash, at a timeout. Merged with the Python frames of the moment."""

from __future__ import annotations

import mmap
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from torchbench_dbg.debugger.backtrace import Backtrace, capture
from torchbench_dbg.debugger.gdb import find_gdb
from torchbench_dbg.errors import DebuggerError
from torchbench_dbg.trace import ptrace
from torchbench_dbg.trace.calltree import merge, read_ring
from torchbench_dbg.trace.libraries import WatchedLibraries
from torchbench_dbg.trace.outcome import Outcome
from torchbench_dbg.trace.record import Code, Stop
from torchbench_dbg.trace.stackmerge import StackMerge
from torchbench_dbg.trace.tracer import Tracer

if TYPE_CHECKING:
    from torchbench_dbg.trace.assemble import FunctionTable
    from torchbench_dbg.trace.request import TraceRequest

_MOST_FRAMES = 200

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
    in_python: bool


@dataclass(slots=True, kw_only=True)
class Witness:
    """Takes the backtraces of one trace."""

    request: TraceRequest
    tracer: Tracer
    libraries: WatchedLibraries
    titles: dict[int, str]  # address of a breakpoint -> what the person typed
    python_titles: list[str]  # the same for Python functions, by their position
    ring: mmap.mmap
    tensor_layout: dict[str, int] | None
    notes: list[str] = field(default_factory=list)
    _moments: list[_Moment] = field(default_factory=list)

    def at_break(self, outcome: Outcome) -> None:
        """Backtrace at a --break; the process goes on afterwards."""
        self._witness("break", self.title(outcome), outcome)
        self.tracer.resume_suspended(outcome)

    def require_gdb(self) -> None:
        """DebuggerError now, before anything has run, if there is no gdb to take backtraces with."""
        find_gdb(self.request.gdb)

    def title(self, outcome: Outcome) -> str:
        """What the person typed for the breakpoint that was hit."""
        return self.python_titles[outcome.code] if outcome.kind == "python hit" else self.titles[outcome.address]

    def at_end(self, outcome: Outcome) -> None:
        """Backtrace of a crash or a timeout; the process stays stopped."""
        if outcome.kind == "crashed":
            name = signal.Signals(outcome.code).name
            self._witness("crash", f"{name} at address {outcome.address:#x}", outcome)
        else:
            self._witness("timeout", f"still running after {self.request.timeout:g} s", outcome)

    def _witness(self, reason: Reason, title: str, outcome: Outcome) -> None:
        timeline, events = len(self.tracer.log.timeline), self.tracer.log.count_python_events()
        backtrace, note = None, None
        try:
            self.tracer.suspend(outcome.tid)
            backtrace = capture(
                find_gdb(self.request.gdb),
                self.tracer.pid,
                thread=outcome.tid,
                tensor_layout=self.tensor_layout,
                past_prologue=outcome.kind == "hit",
                source_paths=self._source_paths(),
                limit=_MOST_FRAMES,
            )
        except (DebuggerError, ptrace.TraceeGone) as error:
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
                in_python=outcome.kind == "python hit",
            )
        )

    def _source_paths(self) -> list[tuple[str, str]]:
        return [("/pytorch", str(self.request.source))] if self.request.source else []

    def stops(self, codes: Sequence[Code], table: FunctionTable) -> Iterator[Stop]:
        """The stops of the record."""
        for moment in self._moments:
            merged = merge(
                read_ring(self.ring)[: moment.python_events],
                self.tracer.log.timeline[: moment.timeline],
                function_of=table.number,
            )
            frames = StackMerge(
                calls=merged.calls, codes=codes, table=table, libraries=self.libraries, probes=self.tracer.probes
            )
            open_calls = merged.open_calls.get(moment.tid, ())
            native = moment.backtrace.frames if moment.backtrace else ()
            yield Stop(
                reason=moment.reason,
                title=moment.title,
                thread=moment.tid,
                frames=tuple(frames.frames(open_calls, native, in_python=moment.in_python)),
                call=open_calls[-1][0] if open_calls else -1,
                note=moment.note,
            )
