"""`tdbg config show`: the settings in force, and where each is from."""

from __future__ import annotations

import json

from torchbench_dbg import console, settings


def run(*, origin: bool, as_json: bool) -> int:
    loaded = settings.load(warn=console.warn).by_name
    if as_json:
        values = {name: {"value": each.value, "origin": each.origin} for name, each in loaded.items()}
        console.print_text(json.dumps(values, ensure_ascii=False))
        return 0
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    for name, each in loaded.items():
        row = [Text(name, style="cyan"), Text("" if each.value is None else str(each.value))]
        table.add_row(*row, Text(each.origin if origin else settings.KEYS[name].meaning, style="dim"))
    console.stdout().print(table)
    return 0
