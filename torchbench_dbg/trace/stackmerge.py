"""One backtrace out of two: gdb's C++ frames, and the Python frames that the recorder knows.

gdb sees the interpreter's own C functions where Python frames are. Each run of them stands for the Python frames
between two C++ functions whose entries were seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchbench_dbg.debugger.backtrace import NativeFrame
from torchbench_dbg.trace.libraries import WatchedLibraries
from torchbench_dbg.trace.names import demangle
from torchbench_dbg.trace.probes import ProbeSet
from torchbench_dbg.trace.record import Call, Code, Frame

if TYPE_CHECKING:
    from torchbench_dbg.trace.assemble import FunctionTable

_BEFORE_MAIN = frozenset({"main", "_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main"})


@dataclass(slots=True, kw_only=True)
class StackMerge:
    """Merges the stacks of one moment."""

    calls: Sequence[Call]
    codes: Sequence[Code]
    table: FunctionTable
    libraries: WatchedLibraries
    probes: ProbeSet

    def frames(
        self, open_calls: Sequence[tuple[int, int]], native: Sequence[NativeFrame], *, in_python: bool
    ) -> Iterator[Frame]:
        """All frames, innermost first. `in_python`: the process stands in Python code (and in the recorder in it).

        `open_calls`: (call, current line) of the calls that were open, outermost first. Without `native` frames
        the C++ functions among them are all that is known of the C++ stack.
        """
        rest = list(open_calls)
        skipping = in_python and any(map(_is_interpreter, native))
        for frame in native:
            if skipping and not _is_interpreter(frame):
                continue
            skipping = False
            if _is_interpreter(frame):
                while rest and self.calls[rest[-1][0]].kind != "native":
                    yield self._open_frame(*rest.pop())
                continue
            if frame.function in _BEFORE_MAIN:
                break
            yield self._native_frame(frame)
            while rest and self._is_frame_of(rest[-1][0], frame):
                rest.pop()
        for number, line in reversed(rest):
            if not native or self.calls[number].kind != "native":
                yield self._open_frame(number, line)

    def _is_frame_of(self, number: int, frame: NativeFrame) -> bool:
        """Whether an open call is this C++ frame: it was entered at the start of the frame's function."""
        call = self.calls[number]
        region = self.probes.region_at(frame.pc)
        if call.kind != "native" or region is None:
            return False
        function = self.table.functions[call.ref]
        symbol = region.index.find(frame.pc - region.bias)
        if symbol is None:
            return False
        same = region.library == function.library and region.index.starts[symbol] == function.offset
        # A function that left by a tail call has no frame: its caller's frame comes next.
        parent = self.calls[number].parent
        return same or (parent >= 0 and not self._has_own_frame(number))

    def _has_own_frame(self, number: int) -> bool:
        return not any(call.parent == number and call.tail for call in self.calls[number + 1 :])

    def _open_frame(self, number: int, line: int) -> Frame:
        call = self.calls[number]
        if call.kind == "native":
            function = self.table.functions[call.ref]
            library = self.libraries.loaded[function.library].path
            return Frame(kind="native", name=function.name, library=str(library), address=function.offset)
        code = self.codes[call.ref]
        return Frame(kind="python", name=code.name, file=code.file, line=line or code.line)

    def _native_frame(self, frame: NativeFrame) -> Frame:
        region = self.probes.region_at(frame.pc)
        return Frame(
            kind="native",
            name=self._name(frame),
            library=frame.library,
            address=frame.pc - region.bias if region else frame.pc,
            file=frame.file,
            line=frame.line,
            inline=frame.inline,
            # Of the C library and the interpreter nobody wants the locals.
            arguments=frame.arguments if region else (),
            locals=frame.locals if region else (),
        )

    def _name(self, frame: NativeFrame) -> str:
        region = self.probes.region_at(frame.pc)
        if region is not None and frame.file is None:
            symbol = region.index.find(frame.pc - region.bias)
            if symbol is not None and (name := region.index.name(symbol)):
                return demangle(name)
            return f"{region.index.path.name}+{frame.pc - region.bias:#x}"
        if frame.function:
            return frame.function
        return f"{Path(frame.library).name if frame.library else ''}+{frame.pc:#x}"


def _is_interpreter(frame: NativeFrame) -> bool:
    name = Path(frame.library).name if frame.library else ""
    return name.startswith(("libpython", "python"))
