"""The table of recipes, and one recipe before it is played."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from torchbench_dbg.recipes.format import NEEDS, PROMPTS, Recipe, line_of
from torchbench_dbg.recipes.library import Place
from torchbench_dbg.recipes.views.transcript import heading, note_lines, stage_heading

if TYPE_CHECKING:
    from rich.console import RenderableType


def table(rows: Sequence[tuple[Place, Recipe | str]]) -> Table:
    """Of each recipe its name and title; or what is wrong with its file."""
    shown = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("name", "title", "stages", "needs", "from"):
        shown.add_column(column, no_wrap=column != "title")
    for place, recipe in rows:
        if isinstance(recipe, str):
            shown.add_row(Text(place.name, "bold red"), Text(recipe, "red"), "", "", place.origin)
        else:
            needs = ", ".join(NEEDS[need] for need in recipe.needs)
            shown.add_row(Text(place.name, "bold cyan"), recipe.title, recipe.debuggers, needs, place.origin)
    return shown


def lines(recipe: Recipe) -> Iterator[RenderableType]:
    """What it teaches, what it types, and the script."""
    yield from heading(recipe.name, recipe.title, recipe.teaches, recipe.watch, {})
    for need in recipe.needs:
        yield Text.assemble(("needs ", "bold yellow"), NEEDS[need])
    yield Text("")
    yield Text(" ".join([recipe.script.name, *recipe.arguments]), style="dim")
    yield Syntax(
        recipe.script.read_text(encoding="utf-8").rstrip(),
        "python",
        theme="ansi_dark",
        background_color="default",
        line_numbers=True,
    )
    for stage in recipe.stages:
        yield from stage_heading(stage.debugger, stage.name, stage.title)
        for place in stage.breaks:
            shown = f"{recipe.script.name}:{line_of(recipe, place)}" if stage.debugger == "pdb" else place
            yield Text.assemble((PROMPTS[stage.debugger], "bold green"), (f"break {shown}", "bold"))
        for command in stage.commands:
            if command.note:
                yield from note_lines(command.note)
            yield Text.assemble((PROMPTS[stage.debugger], "bold green"), (command.run, "bold"))
    yield Text("")
    yield Text.assemble(("next  ", "bold cyan"), f"tdbg run {recipe.name}")
