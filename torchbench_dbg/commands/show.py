"""`tdbg show`: draw a saved trace again."""

from __future__ import annotations

import json
from pathlib import Path

from torchbench_dbg import console, runs
from torchbench_dbg.commands.options import ViewOptions
from torchbench_dbg.trace import record as records
from torchbench_dbg.trace import views


def run(name: str, view: ViewOptions, *, as_json: bool) -> int:
    """`name`: a file, the identifier of a run, or `last`."""
    path = Path(name)
    record = records.load(path if path.exists() or path.suffix == ".json" else runs.find(name).record)
    if as_json:
        console.print_text(json.dumps(record.to_json(), ensure_ascii=False))
    else:
        views.show(record, view, console.stdout())
    return 0
