"""What stands above and below every view: the expression and its names; the result, what is missing, the cost."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from torchbench_dbg.trace.operators import TraceAnalysis
from torchbench_dbg.trace.record import TraceRecord
from torchbench_dbg.trace.views.style import highlighted, short_path


def header(record: TraceRecord) -> Iterator[Text]:
    """The expression, the target, and what the names were."""
    for line in record.expression.splitlines() or [""]:
        yield highlighted(line)
    if record.script:
        place = f"{record.script}:{record.script_line}" if record.script_line else record.script
        yield Text(f"in {place}", style="dim")
    facts = [f"torch {record.target.torch}", f"Python {record.target.python}"]
    if record.target.debug:
        facts.append("debug build")
    if record.cold:
        facts.append("first run")
    yield Text(" · ".join(facts), style="dim")
    if names := _names(record):
        yield Text(f"{names}", style="dim")
    yield Text("")


def _names(record: TraceRecord) -> str:
    """`a, b: float32 randn 4x4 · x, w: ...`, names of one kind together, those that the expression uses."""
    used = record.expression + (record.setup or "")
    groups: dict[str, list[str]] = {}
    for name in record.names:
        if re.search(rf"\b{re.escape(name.name)}\b", used):
            groups.setdefault(name.description, []).append(name.name)
    return " · ".join(f"{', '.join(names)}: {description}" for description, names in groups.items())


def footer(analysis: TraceAnalysis) -> Iterator[Text]:
    """Result or ending, notes, and the time that it took."""
    record = analysis.record
    yield Text("")
    if record.result is not None:
        lines = record.result.text.splitlines() or [""]
        yield Text.assemble(("result   ", "dim"), lines[0])
        yield from (Text(" " * 9 + line) for line in lines[1:])
    elif record.status_detail:
        yield Text.assemble((f"{record.status:<9}", "bold red"), record.status_detail)
    if record.failure:
        yield from (Text(line, style="dim") for line in record.failure.traceback.splitlines())
    for note in record.notes:
        yield Text.assemble(("note     ", "yellow"), note)
    entered = sum(call.kind == "native" for call in record.calls)
    seconds = record.seconds
    imported = f" (import torch {seconds['import']:.1f} s)" if seconds.get("import") else ""  # a shell did it before
    yield Text(
        f"{entered} C++ calls of {len(record.functions)} functions in {len(record.libraries)} libraries · "
        f"{seconds.get('total', 0):.1f} s{imported}",
        style="dim",
    )


def library_name(record: TraceRecord, number: int) -> str:
    return short_path(record.libraries[number].path).rpartition("/")[2]
