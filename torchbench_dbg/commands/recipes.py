"""`tdbg recipes`: which there are, and what one of them does."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from torchbench_dbg import console
from torchbench_dbg.errors import RecipeError
from torchbench_dbg.recipes import library
from torchbench_dbg.recipes.format import Recipe

SCHEMA = "tdbg.recipes/1"


def run(*, as_json: bool) -> int:
    """The table of all recipes; one that can't be read is listed with the reason."""
    rows = [(place, _read(place)) for place in library.places()]
    if as_json:
        listed = [_summary(place, recipe) for place, recipe in rows]
        console.print_text(json.dumps({"schema": SCHEMA, "recipes": listed}, ensure_ascii=False))
    else:
        from torchbench_dbg.recipes.views import listing

        console.stdout().print(listing.table(rows))
        console.message("tdbg recipes show NAME says what one does, tdbg run NAME plays it.")
    return 0


def _read(place: library.Place) -> Recipe | str:
    try:
        return place.read()
    except RecipeError as error:
        return error.message


def _summary(place: library.Place, recipe: Recipe | str) -> dict[str, Any]:
    about: dict[str, Any] = {"name": place.name, "origin": place.origin, "file": str(place.file)}
    if isinstance(recipe, str):
        return {**about, "error": recipe}
    stages = [stage.debugger for stage in recipe.stages]
    return {**about, "title": recipe.title, "stages": stages, "needs": list(recipe.needs)}


def show(name: str, *, as_json: bool) -> int:
    """What a recipe teaches, its stages and commands, and its script."""
    recipe = library.find(name).read()
    if as_json:
        plain = dataclasses.asdict(recipe) | {"script": str(recipe.script), "file": str(recipe.file)}
        console.print_text(json.dumps({"schema": "tdbg.recipe/1", **plain}, ensure_ascii=False))
    else:
        from torchbench_dbg.recipes.views import listing

        for line in listing.lines(recipe):
            console.stdout().print(line)
    return 0
