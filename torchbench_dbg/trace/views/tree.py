"""The whole call tree: every Python call and every C++ entry, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from torchbench_dbg.errors import UsageError
from torchbench_dbg.trace.names import shorten
from torchbench_dbg.trace.operators import TraceAnalysis
from torchbench_dbg.trace.record import Thread
from torchbench_dbg.trace.views.style import code_place, function_text

_NOISE = re.compile(r"^(void |bool |unsigned long )?(std|__gnu_cxx)::|::~|^operator (new|delete)|^_GLOBAL__")


def lines(
    analysis: TraceAnalysis, *, depth: int | None = None, grep: str | None = None, show_all: bool = False
) -> Iterator[Text]:
    """One line a call, indented by its depth; equal neighbours are counted.

    `depth`: levels shown; `grep`: only the calls that match the regular expression, with what leads to them;
    `show_all`: std:: and destructors too, where the trace has them (--all).
    """
    wanted = _matching(analysis, grep) if grep else None
    if wanted is not None and not wanted:
        yield Text(f"no call matches {grep}", style="yellow")
    for thread in analysis.record.threads:
        roots = [number for number in analysis.roots if analysis.record.calls[number].thread == thread.id]
        if wanted is not None:
            roots = [number for number in roots if number in wanted]
        if not roots:
            continue
        if len(analysis.record.threads) > 1:
            yield _thread_line(thread)
        yield from _walk(analysis, roots, depth=depth, wanted=wanted, show_all=show_all)


def _thread_line(thread: Thread) -> Text:
    role = "main thread" if thread.main else f"thread {thread.name}"
    return Text(f"── {role} ({thread.id})", style="bold")


def _matching(analysis: TraceAnalysis, grep: str) -> set[int]:
    """The calls that match, and all their callers."""
    try:
        expression = re.compile(grep, re.IGNORECASE)
    except re.error as error:
        raise UsageError(f"--grep {grep} is not a regular expression: {error}") from error
    found: set[int] = set()
    for number in range(len(analysis.record.calls)):
        name = _whole_name(analysis, number)
        if expression.search(name) or expression.search(shorten(name)):
            found.update(analysis.ancestors(number))
    return found


def _whole_name(analysis: TraceAnalysis, number: int) -> str:
    function = analysis.function(number)
    return function.name if function else analysis.record.codes[analysis.record.calls[number].ref].name


def _walk(
    analysis: TraceAnalysis, roots: list[int], *, depth: int | None, wanted: set[int] | None, show_all: bool
) -> Iterator[Text]:
    # An explicit stack: a trace can be deeper than Python's recursion limit.
    pending: list[tuple[list[int], int]] = [(roots, 0)]
    while pending:
        siblings, level = pending[-1]
        if not siblings:
            pending.pop()
            continue
        number = siblings[0]
        same = _leading_repeats(analysis, siblings)
        pending[-1] = (siblings[same:], level)
        children = [child for child in analysis.children[number] if wanted is None or child in wanted]
        if not show_all and _is_noise(analysis, number):
            pending.append((children, level))
            continue
        hidden = depth is not None and level + 1 >= depth and bool(children)
        yield _line(analysis, number, level, repeats=same, hidden=_count_below(analysis, number) if hidden else 0)
        if children and not hidden:
            pending.append((children, level + 1))


def _leading_repeats(analysis: TraceAnalysis, siblings: list[int]) -> int:
    """How many of the first siblings are calls of one function without children."""
    first = analysis.record.calls[siblings[0]]
    count = 1
    if analysis.children[siblings[0]]:
        return count
    for number in siblings[1:]:
        call = analysis.record.calls[number]
        if (call.kind, call.ref) != (first.kind, first.ref) or analysis.children[number]:
            break
        count += 1
    return count


def _is_noise(analysis: TraceAnalysis, number: int) -> bool:
    function = analysis.function(number)
    return function is not None and bool(_NOISE.search(function.name))


def _count_below(analysis: TraceAnalysis, number: int) -> int:
    count, pending = 0, list(analysis.children[number])
    while pending:
        count += 1
        pending += analysis.children[pending.pop()]
    return count


def _line(analysis: TraceAnalysis, number: int, level: int, *, repeats: int, hidden: int) -> Text:
    record = analysis.record
    call, function = record.calls[number], analysis.function(number)
    text = Text("  " * level, no_wrap=False)
    if function:
        text.append_text(function_text(function))
        if call.keys is not None:
            names = record.key_names(call.keys)
            text.append(f"  [{', '.join(names) or hex(call.keys)}]", style="dim magenta")
        text.append(f"  {function.layer}", style="dim")
    else:
        code = record.codes[call.ref]
        text.append(code.name, style="green")
        if place := code_place(code):
            text.append(f"  {place}", style="dim green")
    if repeats > 1:
        text.append(f"  ×{repeats}", style="bold")
    if hidden:
        text.append(f"  (+{hidden} below)", style="dim")
    return text
