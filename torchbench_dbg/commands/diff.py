"""`tdbg diff`: what is different between two saved traces."""

from __future__ import annotations

import json
from pathlib import Path

from torchbench_dbg import console, records, runs
from torchbench_dbg.trace.difference import compare
from torchbench_dbg.trace.operators import TraceAnalysis
from torchbench_dbg.trace.record import TraceRecord, from_json
from torchbench_dbg.trace.views import difference as view

DIFFERENT = 1  # with --exit-code, as diff(1) has it


def run(left: str, right: str, *, everything: bool, whole: bool, as_json: bool, exit_code: bool) -> int:
    """`left`, `right`: files, runs, `last` or `last~N`. The exit code is 0, or DIFFERENT if it is asked for."""
    one, other = _load(left), _load(right)
    found = compare(TraceAnalysis(one), TraceAnalysis(other), sources=(left, right), everything=everything)
    if as_json:
        console.print_text(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        for line in view.lines(found, whole=whole):
            console.stdout().print(line)
    different = not found.is_empty or found.same_result is False
    return DIFFERENT if exit_code and different else 0


def _load(name: str) -> TraceRecord:
    path = Path(name)
    file = path if path.exists() or path.suffix == ".json" else runs.find(name).record
    return from_json(records.read(file), source=name)
