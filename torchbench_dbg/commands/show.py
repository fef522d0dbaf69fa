"""`tdbg show`: draw a saved record again, whatever made it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torchbench_dbg import console, records, runs
from torchbench_dbg.commands.options import ViewOptions
from torchbench_dbg.errors import RecordError


def run(name: str, view: ViewOptions, *, as_json: bool) -> int:
    """`name`: a file, the identifier of a run, or `last`."""
    path = Path(name)
    data = records.read(path if path.exists() or path.suffix == ".json" else runs.find(name).record)
    kind = str(data.get("schema")).partition("/")[0]
    if kind not in _DRAWN_BY:
        raise RecordError(f"{name} is no record of tdbg's: its schema is {data.get('schema')!r}.")
    canonical = _DRAWN_BY[kind](data, None if as_json else view)
    if as_json:
        console.print_text(json.dumps(canonical, ensure_ascii=False))
    return 0


def _trace(data: Mapping[str, Any], view: ViewOptions | None) -> dict[str, Any]:
    from torchbench_dbg.trace import views
    from torchbench_dbg.trace.record import from_json

    record = from_json(data)
    if view is not None:
        views.show(record, view, console.stdout())
    return record.to_json()


def _difference(data: Mapping[str, Any], view: ViewOptions | None) -> dict[str, Any]:
    from torchbench_dbg.trace.difference import from_json
    from torchbench_dbg.trace.views import difference

    record = from_json(data)
    if view is not None:
        for line in difference.lines(record):
            console.stdout().print(line)
    return record.to_json()


def _transcript(data: Mapping[str, Any], view: ViewOptions | None) -> dict[str, Any]:
    from torchbench_dbg.recipes.record import from_json
    from torchbench_dbg.recipes.views import transcript

    record = from_json(data)
    if view is not None:
        for line in transcript.lines(record, everything=view.show_all):
            console.stdout().print(line)
    return record.to_json()


def _crash(data: Mapping[str, Any], view: ViewOptions | None) -> dict[str, Any]:
    from torchbench_dbg.crash import views
    from torchbench_dbg.crash.record import from_json

    record = from_json(data)
    if view is not None:
        for line in views.lines(record, all_threads=view.show_all):
            console.stdout().print(line)
    return record.to_json()


def _stacks(data: Mapping[str, Any], view: ViewOptions | None) -> dict[str, Any]:
    from torchbench_dbg.attach import views
    from torchbench_dbg.attach.record import from_json

    record = from_json(data)
    if view is not None:
        for line in views.lines(record, colours=console.stdout().color_system is not None):
            console.stdout().print(line)
    return record.to_json()


# Name of the schema -> checks a record, draws it if a view is given, and returns its canonical JSON form.
_DRAWN_BY: dict[str, Callable[[Mapping[str, Any], ViewOptions | None], dict[str, Any]]] = {
    "tdbg.trace": _trace,
    "tdbg.difference": _difference,
    "tdbg.transcript": _transcript,
    "tdbg.crash": _crash,
    "tdbg.stacks": _stacks,
}
