"""Backtraces: the merged stack at the kernel (--stack), and the stops that gdb witnessed (--break, crash, timeout)."""

from __future__ import annotations

import linecache
from collections.abc import Iterator

from rich.text import Text

from torchbench_dbg.trace.names import shorten
from torchbench_dbg.trace.operators import TraceAnalysis
from torchbench_dbg.trace.record import Frame, TraceRecord
from torchbench_dbg.trace.views.frame import library_name
from torchbench_dbg.trace.views.style import (
    code_place,
    function_text,
    highlighted,
    short_path,
    source_line,
)

_SHOWN_VARIABLES = 12
_TITLES = {"break": "stopped at", "crash": "crashed", "timeout": "timed out", "exit": "ended"}


def lines(analysis: TraceAnalysis) -> Iterator[Text]:
    """Python and C++ frames at the deepest kernel, innermost first, as a debugger prints them."""
    record = analysis.record
    use = analysis.main_kernel
    if use is None:
        numbered = [n for n, call in enumerate(record.calls) if call.kind == "native"] or list(range(len(record.calls)))
        if not numbered:
            yield Text("nothing was called", style="dim")
            return
        at = max(numbered, key=lambda number: len(analysis.ancestors(number)))
    else:
        at = use.deepest
    inner: int | None = None
    library = -1
    for level, number in enumerate(analysis.ancestors(at)[::-1]):
        function = analysis.function(number)
        current = function.library if function else -1
        yield _call_line(analysis, level, number, inner, names_library=current != library)
        library = current
        inner = number


def _call_line(analysis: TraceAnalysis, level: int, number: int, inner: int | None, *, names_library: bool) -> Text:
    """One frame; its library is named where it differs from that of the frame before."""
    record = analysis.record
    call, function = record.calls[number], analysis.function(number)
    text = Text(f"#{level:<3} ", style="dim")
    if function:
        text.append_text(function_text(function))
        if names_library:
            text.append(f"  {library_name(record, function.library)}", style="dim")
        return text
    code = record.codes[call.ref]
    line = record.calls[inner].line if inner is not None else 0
    text.append(code.name, style="green")
    text.append(f"  {code_place(code, line)}", style="dim")
    if source := source_line(record, code.file, line or code.line):
        text.append("  ")
        text.append_text(highlighted(source))
    return text


def stops(record: TraceRecord) -> Iterator[Text]:
    """Each stop with its merged backtrace."""
    for stop in record.stops:
        yield Text("")
        yield Text.assemble(
            (f"{_TITLES[stop.reason]} ", "bold red"), (stop.title, "bold"), (f"  thread {stop.thread}", "dim")
        )
        if stop.note:
            yield Text(f"  {stop.note}", style="yellow")
        library = None
        for level, frame in enumerate(stop.frames):
            yield from _frame_lines(record, level, frame, names_library=frame.library != library)
            library = frame.library


def _frame_lines(record: TraceRecord, level: int, frame: Frame, *, names_library: bool) -> Iterator[Text]:
    text = Text(f"#{level:<3} ", style="dim")
    place = f"{short_path(frame.file)}:{frame.line}" if frame.file and frame.line else ""
    if frame.kind == "python":
        text.append(frame.name, style="green")
        text.append(f"  {place}", style="dim")
        if source := source_line(record, frame.file, frame.line):
            text.append("  ")
            text.append_text(highlighted(source))
        yield text
        return
    text.append(shorten(frame.name), style="bold" if level == 0 else "")
    if frame.inline:
        text.append(" (inlined)", style="dim")
    library = short_path(frame.library or "").rpartition("/")[2] if names_library else ""
    text.append(f"  {place or library}".rstrip(), style="dim")
    yield text
    if frame.file and frame.line and (source := linecache.getline(frame.file, frame.line).strip()):
        yield Text("       ").append_text(highlighted(source, language="cpp"))
    for kind, variables in (("argument", frame.arguments), ("local", frame.locals)):
        for variable in variables[:_SHOWN_VARIABLES]:
            yield Text.assemble(
                ("       ", ""), (f"{kind} ", "dim"), (variable.name, "cyan"), (f" = {variable.value}", "")
            )
        if len(variables) > _SHOWN_VARIABLES:
            yield Text(f"       … {len(variables) - _SHOWN_VARIABLES} more {kind}s", style="dim")
