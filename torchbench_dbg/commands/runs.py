"""`tdbg runs`: the last runs, the newest first."""

from __future__ import annotations

import json
from dataclasses import asdict

from torchbench_dbg import console, runs


def run(*, limit: int, as_json: bool) -> int:
    found = runs.load_all()[:limit]
    if as_json:
        console.print_text(json.dumps([asdict(each) for each in found], ensure_ascii=False))
        return 0
    if not found:
        console.message("no runs yet: tdbg trace 'a + b' makes one")
        return 0
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for each in found:
        title = each.title.splitlines()[0] if each.title else ""
        table.add_row(Text(each.identifier, style="cyan"), Text(each.status), Text(title))
    console.stdout().print(table)
    console.message("tdbg show RUN draws one again; tdbg show last the newest")
    return 0
