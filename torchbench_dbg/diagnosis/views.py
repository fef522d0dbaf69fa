"""Diagnoses for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from torchbench_dbg.diagnosis.matcher import Diagnosis

_CERTAINTY = {"certain": "", "likely": "likely: ", "possible": "possibly: "}


def lines(diagnoses: Sequence[Diagnosis]) -> Iterator[RenderableType]:
    """Each cause with what to do; says so where none is known."""
    if not diagnoses:
        yield Text("cause unknown: the catalogue has nothing that looks like this", style="bold yellow")
    for diagnosis in diagnoses:
        yield Text.assemble(
            (_CERTAINTY[diagnosis.certainty], "yellow"), (diagnosis.title, "bold"), (f"  {diagnosis.code}", "dim")
        )
        yield Padding(_details(diagnosis), (0, 0, 0, 2))


def _details(diagnosis: Diagnosis) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("cause", diagnosis.cause)
    for number, step in enumerate(diagnosis.fix):
        text = Text(step, style="cyan") if step.startswith("$ ") else Text(step)
        table.add_row("fix" if number == 0 else "", text)
    table.add_row("seen", Text(diagnosis.known_by, style="dim"))
    for number, reference in enumerate(diagnosis.references):
        table.add_row("see" if number == 0 else "", Text(reference, style="dim"))
    return table
