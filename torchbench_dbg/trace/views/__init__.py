"""What a person sees of a trace: drawn from the record alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from torchbench_dbg.commands.options import ViewOptions
    from torchbench_dbg.console import Console
    from torchbench_dbg.trace.record import TraceRecord


def render(record: TraceRecord, options: ViewOptions) -> Iterable[RenderableType]:
    """The lines of a view; nothing is printed."""
    from torchbench_dbg.trace.operators import TraceAnalysis
    from torchbench_dbg.trace.views import frame, path, stack, tree

    analysis = TraceAnalysis(record)
    yield from frame.header(record)
    if options.view == "tree":
        yield from tree.lines(analysis, depth=options.depth, grep=options.grep, show_all=options.show_all)
    elif options.view == "stack":
        yield from stack.lines(analysis)
    else:
        yield from path.lines(analysis)
    yield from stack.stops(record)
    yield from frame.footer(analysis)


def show(record: TraceRecord, options: ViewOptions, console: Console) -> None:
    """Print a view on a console."""
    for renderable in render(record, options):
        console.print(renderable)
