"""The default view: one path from the Python line to the kernel, then the other kernels that ran."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from torchbench_dbg.trace.names import shorten
from torchbench_dbg.trace.operators import KernelUse, TraceAnalysis
from torchbench_dbg.trace.record import Function
from torchbench_dbg.trace.views.frame import library_name
from torchbench_dbg.trace.views.style import (
    code_place,
    function_text,
    highlighted,
    layer_style,
    short_path,
    source_line,
)

_SHOWN_KERNELS = 40  # rows of the table of kernels
_PLUMBING = re.compile(
    "wrap_kernel_functor_unboxed_|make_boxed_from_unboxed_functor|call_functor_with_args_from_stack|WrapFunctionInto"
)
_FOLDED = frozenset({"core", "iterator", "memory"})  # layers of which a run is shown as one line


def lines(analysis: TraceAnalysis) -> Iterator[RenderableType]:
    """The path to the main kernel; where several ran, a table of all."""
    use = analysis.main_kernel
    if use is None:
        yield from _no_kernel(analysis)
        return
    yield _path_table(analysis, use)
    yield Text("")
    yield _kernel_line(analysis, use)
    if len(analysis.kernels) > 1:
        yield Text("")
        yield _kernel_table(analysis, use)


def _no_kernel(analysis: TraceAnalysis) -> Iterator[RenderableType]:
    operators = analysis.operator_calls
    if operators:
        yield _rows_table(analysis, analysis.ancestors(_deepest_below(analysis, operators[0])))
        yield Text("")
        views = [analysis.operator_name(number) for number in operators if analysis.is_view(number)]
        if views:
            reason = (
                f"{', '.join(dict.fromkeys(views))} makes a view: only sizes and strides change, no data is touched"
            )
        else:
            reason = "no function that computes was entered"
    else:
        entered = any(call.kind == "native" for call in analysis.record.calls)
        reason = "no operator was dispatched" + ("" if entered else ": all of it is Python")
        python = [number for number, call in enumerate(analysis.record.calls) if call.kind != "native"]
        if python:
            yield _rows_table(analysis, analysis.ancestors(max(python, key=lambda n: len(analysis.ancestors(n)))))
            yield Text("")
    yield Text.assemble(("no kernel  ", "bold"), reason)


def _deepest_below(analysis: TraceAnalysis, number: int) -> int:
    deepest = number
    while analysis.children[deepest]:
        dispatched = [child for child in analysis.children[deepest] if analysis.layer(child) not in _FOLDED]
        if not dispatched:
            break
        deepest = dispatched[-1]
    return deepest


def _path_table(analysis: TraceAnalysis, use: KernelUse) -> Table:
    return _rows_table(analysis, analysis.ancestors(use.deepest))


def _rows_table(analysis: TraceAnalysis, path: list[int]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0), expand=False)
    table.add_column(no_wrap=True, min_width=10)
    table.add_column(ratio=1, overflow="fold")
    previous = ""
    for label, content in _rows(analysis, path):
        table.add_row(Text(label if label != previous else "", style=layer_style(label)), content)
        previous = label
    return table


def _rows(analysis: TraceAnalysis, path: list[int]) -> Iterator[tuple[str, RenderableType]]:
    yield from _python_root(analysis, path)
    folded = 0
    for position, number in enumerate(path):
        layer = analysis.layer(number)
        if layer == "dispatcher" and _is_plumbing(analysis, number):
            continue
        following = path[position + 1] if position + 1 < len(path) else None
        if layer in _FOLDED and following is not None:
            folded += 1
            continue
        if folded:
            yield "…", Text(f"{folded} call{'s' * (folded > 1)} of helpers", style="dim")
            folded = 0
        if analysis.record.calls[number].kind == "native":
            yield layer, _native_row(analysis, number, path[:position])
            if following is not None:
                yield from _stub_row(analysis, number, following)
        else:
            yield "python", _python_row(analysis, number, following)


def _is_plumbing(analysis: TraceAnalysis, number: int) -> bool:
    """Whether a call only hands on to the function that it wraps: the next line says all."""
    function = analysis.function(number)
    return function is not None and bool(_PLUMBING.search(function.name))


def _python_root(analysis: TraceAnalysis, path: list[int]) -> Iterator[tuple[str, RenderableType]]:
    """The expression's own line, where the recorder did not see its frame being entered."""
    record = analysis.record
    first = record.calls[path[0]]
    if first.kind == "python" and record.codes[first.ref].file in ("<expr>", record.script):
        return
    yield "python", Text.assemble(("<expr>:1  ", "green"), highlighted(record.expression.splitlines()[0]))


def _python_row(analysis: TraceAnalysis, number: int, following: int | None) -> Text:
    record = analysis.record
    call = record.calls[number]
    code = record.codes[call.ref]
    if code.c:
        return Text(code.name, style="green")
    line = (record.calls[following].line if following is not None else 0) or code.line
    text = Text(code_place(code, line), style="green")
    if code.name not in ("<module>",):
        text.append(f" {code.name}", style="green")
    if source := source_line(record, code.file, line):
        text.append("  ")
        text.append_text(highlighted(source))
    return text


def _native_row(analysis: TraceAnalysis, number: int, above: list[int]) -> RenderableType:
    function = analysis.function(number)
    assert function is not None
    text = function_text(function)
    extra: list[Text] = []
    if function.file:
        extra.append(_definition(function))
    elif place := _registration(analysis, number, above):
        extra.append(Text(f"  registered at {short_path(place)}", style="dim"))
    if keys := _keys_text(analysis, number):
        extra.append(keys)
    if made_by := analysis.record.forward_operators.get(analysis.node_name(number)):
        text.append(f"  made by {made_by}", style="dim")
    return Group(text, *extra) if extra else text


def _definition(function: Function) -> Text:
    """Where the source tree defines a function, and its first line."""
    text = Text(f"  {short_path(function.file or '')}:{function.line}  ", style="dim")
    if source := linecache.getline(function.file or "", function.line or 0).strip():
        text.append_text(highlighted(source, language="cpp"))
    return text


def _keys_text(analysis: TraceAnalysis, number: int) -> Text | None:
    if analysis.layer(number) != "dispatcher":
        return None
    raw = analysis.keys_of(number)
    if raw is None:
        return None
    names = analysis.record.key_names(raw)
    text = Text(f"  keys {raw:#x}", style="dim")
    if names:
        text.append("  " + ", ".join(names[:-1]) + (", " if len(names) > 1 else ""), style="dim")
        text.append(names[-1], style="magenta")
        text.append(" wins", style="dim")
    return text


def _registration(analysis: TraceAnalysis, number: int, above: list[int]) -> str | None:
    """Where the kernel that a dispatch chose was registered: shown at the function that the hop leads to."""
    if not above or analysis.layer(above[-1]) != "dispatcher" or analysis.layer(number) == "dispatcher":
        return None
    hop = above[-1]
    while analysis.keys_of(hop) is None:
        hop = analysis.record.calls[hop].parent
        if hop < 0 or analysis.layer(hop) != "dispatcher":
            return None
    names = analysis.record.key_names(analysis.keys_of(hop))
    operator = next((found for step in reversed(above) if (found := analysis.operator(step))), None)
    return operator.registered_at(names[-1]) if operator and names else None


def _stub_row(analysis: TraceAnalysis, number: int, following: int) -> Iterator[tuple[str, RenderableType]]:
    """The DispatchStub's choice, which returned before its kernel was called."""
    for child in analysis.children[number]:
        if child >= following:
            break
        function = analysis.function(child)
        if function and function.layer == "stub":
            yield "stub", function_text(function)
            break


def _kernel_line(analysis: TraceAnalysis, use: KernelUse) -> Text:
    function = analysis.function(use.kernel)
    assert function is not None
    text = Text.assemble(("kernel  ", "bold"), (shorten(function.name), "bold red"))
    text.append(f"  {library_name(analysis.record, function.library)}", style="dim")
    if use.operator_call >= 0:
        text.append(f"  of {analysis.operator_name(use.operator_call)}", style="dim")
    return text


def _kernel_table(analysis: TraceAnalysis, main: KernelUse) -> RenderableType:
    """Every kernel in order of time; those of backward under their autograd node."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    shown = analysis.kernels[:_SHOWN_KERNELS]
    last = shown[-1].kernel if len(shown) < len(analysis.kernels) else len(analysis.record.calls)
    nodes = [number for number in analysis.node_calls if number <= last]
    for use in shown:
        while nodes and nodes[0] < use.kernel:
            table.add_row(*_node_row(analysis, nodes.pop(0)))
        function = analysis.function(use.kernel)
        name = analysis.operator_name(use.operator_call) if use.operator_call >= 0 else ""
        table.add_row(
            Text(("  " if use.node_call >= 0 else "") + name, style="magenta"),
            Text(shorten(function.name) if function else "", style="bold red" if use == main else "red"),
        )
    for number in nodes:
        table.add_row(*_node_row(analysis, number))
    title = Text(f"all kernels, in order ({len(analysis.kernels)})", style="bold")
    rest = len(analysis.kernels) - len(shown)
    more = [Text(f"… and {rest} more: see --tree --grep kernel", style="dim")] if rest else []
    return Group(title, table, *more)


def _node_row(analysis: TraceAnalysis, number: int) -> tuple[Text, Text]:
    record = analysis.record
    node = analysis.node_name(number)
    facts = []
    if made_by := record.forward_operators.get(node):
        facts.append(f"backward of {made_by}")
    forward = analysis.forward_call(number)
    if forward >= 0:
        place, line = analysis.python_place(forward)
        code = record.codes[record.calls[place].ref] if place >= 0 else None
        facts.append(f"made at {code_place(code, line)}" if code else "made by the expression")
    thread = next((each for each in record.threads if each.id == record.calls[number].thread), None)
    if thread is not None and not thread.main:
        facts.append(f"on thread {thread.name} {thread.id}")
    return Text(node, style="bold yellow"), Text(", ".join(facts), style="dim")
