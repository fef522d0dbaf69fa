"""The format of recipes: `recipe.toml`, read strictly, every problem of a file told at once."""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from torchbench_dbg.errors import RecipeError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Debugger = Literal["pdb", "gdb"]
PROMPTS: dict[str, str] = {"pdb": "(Pdb) ", "gdb": "(gdb) "}
DEBUGGERS: tuple[Debugger, ...] = ("pdb", "gdb")
NEEDS = {"gpu": "a GPU"}  # what a recipe can need: its name in the file, and for people
FILE_NAME = "recipe.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One line that is typed at the prompt.

    `note` says why. `expect`: regular expressions that what is printed must match, one after the other.
    """

    run: str
    note: str | None = None
    expect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Commands for one debugger.

    gdb in the first stage starts the program; after a stage of pdb it attaches to the process in which pdb stands.
    `breaks`: in pdb the text of a line of the script, in gdb the names of functions.
    """

    name: str
    debugger: Debugger
    title: str
    breaks: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A scripted session. `teaches`: some sentences; `watch`: what to look at; `then`: commands to try afterwards."""

    name: str
    title: str
    teaches: str
    watch: tuple[str, ...]
    then: tuple[str, ...]
    needs: tuple[str, ...]
    script: Path
    arguments: tuple[str, ...]
    stages: tuple[Stage, ...]
    file: Path

    @property
    def debuggers(self) -> str:
        """`pdb, gdb`, for people."""
        return ", ".join(dict.fromkeys(stage.debugger for stage in self.stages))


def read(file: Path) -> Recipe:
    """The recipe in a file. RecipeError tells all that is wrong with it, with the path of each key."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecipeError(
            f"{file} can't be read: {error.strerror}", hint="tdbg recipes lists the recipes that there are"
        ) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise RecipeError(f"{file} is not TOML: {error}") from error
    problems: list[str] = []
    recipe = _recipe(_Table(data, "", problems), file)
    if not problems:
        problems += _problems_of_script(recipe)
    if problems:
        raise RecipeError(
            f"{file} is no recipe:\n" + "\n".join(f"  {problem}" for problem in problems),
            hint="tdbg recipes show add shows one that works",
            docs="docs/how-to/recipes.md",
        )
    return recipe


class _Table:
    """A TOML table whose keys are asked for once; what is wrong goes to `problems`, what nobody asked for as well."""

    def __init__(self, data: dict[str, Any], path: str, problems: list[str]) -> None:
        self._data, self._path, self._problems = data, path, problems
        self._known: list[str] = []

    def text(self, key: str, *, default: str | None = None, choices: tuple[str, ...] = ()) -> str:
        value = self._take(key, str, "text", default)
        if choices and isinstance(value, str) and value not in choices:
            self.problem(key, f"{value!r} is none of {', '.join(choices)}{did_you_mean(value, choices)}")
        return cast("str", value) or ""

    def optional_text(self, key: str) -> str | None:
        return self.text(key, default="") or None

    def texts(self, key: str, *, choices: tuple[str, ...] = ()) -> tuple[str, ...]:
        values = self._take(key, list, "a list of texts", [])
        if not all(isinstance(value, str) for value in values):
            self.problem(key, "a list of texts is expected")
            return ()
        for value in values:
            if choices and value not in choices:
                self.problem(key, f"{value!r} is none of {', '.join(choices)}{did_you_mean(value, choices)}")
        return tuple(values)

    def tables(self, key: str) -> list[_Table]:
        """[[key]], at least one."""
        values = self._take(key, list, f"[[{key}]]", None) or []
        if not all(isinstance(value, dict) for value in values):
            self.problem(key, f"[[{key}]] is expected")
            return []
        return [_Table(value, f"{self._path}{key} {i}, ", self._problems) for i, value in enumerate(values, start=1)]

    def finish(self) -> None:
        """Complain of the keys that nobody asked for."""
        for key in self._data:
            if key not in self._known:
                self.problem(key, f"there is no such key{did_you_mean(key, self._known)}")

    def problem(self, key: str, text: str) -> None:
        self._problems.append(f"{self._path}{key}: {text}")

    def _take(self, key: str, kind: type, meaning: str, default: object) -> Any:
        self._known.append(key)
        value = self._data.get(key, default)
        if key not in self._data:
            if default is None:
                self.problem(key, f"it is missing; {meaning} is expected")
            return value if default is not None else kind()
        if not isinstance(value, kind):
            self.problem(key, f"{meaning} is expected, {value!r} found")
            return kind()
        if default is None and not value:
            self.problem(key, f"it is empty; {meaning} is expected")
        return value


def did_you_mean(name: str, known: list[str] | tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f", did you mean {close[0]}?" if close else ""


def _recipe(table: _Table, file: Path) -> Recipe:
    recipe = Recipe(
        name=file.parent.name if file.name == FILE_NAME else file.stem,
        title=table.text("title"),
        teaches=" ".join(table.text("teaches").split()),
        watch=table.texts("watch"),
        then=table.texts("then"),
        needs=table.texts("needs", choices=tuple(NEEDS)),
        script=file.parent / table.text("script"),
        arguments=table.texts("arguments"),
        stages=tuple(map(_stage, table.tables("stage"))),
        file=file,
    )
    table.finish()
    return recipe


def _stage(table: _Table) -> Stage:
    stage = Stage(
        name=table.text("name"),
        debugger=cast("Debugger", table.text("debugger", choices=DEBUGGERS)),
        title=table.text("title"),
        breaks=table.texts("breaks"),
        commands=tuple(map(_command, table.tables("command"))),
    )
    table.finish()
    return stage


def _command(table: _Table) -> Command:
    command = Command(run=table.text("run"), note=table.optional_text("note"), expect=table.texts("expect"))
    if "\n" in command.run.strip():
        table.problem("run", "one line is expected")
    for pattern in command.expect:
        try:
            re.compile(pattern)
        except re.error as error:
            table.problem("expect", f"{pattern!r} is no regular expression: {error}")
    table.finish()
    return command


def _problems_of_script(recipe: Recipe) -> list[str]:
    """The script must be there, beside its recipe, and have the lines at which pdb is to stop."""
    if not recipe.script.resolve().is_relative_to(recipe.file.parent.resolve()):
        return [f"script: {recipe.script.name} is outside of the recipe's own folder"]
    try:
        lines = recipe.script.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        return [f"script: {recipe.script} can't be read: {error.strerror}"]
    except UnicodeDecodeError as error:
        return [f"script: {recipe.script} is not UTF-8: {error}"]
    names = [stage.name for stage in recipe.stages]
    problems = [f"stage: two have the name {name}" for name in sorted({n for n in names if names.count(n) > 1})]
    for stage in recipe.stages:
        for text in stage.breaks if stage.debugger == "pdb" else ():
            found = [line for line in lines if text in line]
            if len(found) != 1:
                problems.append(f"stage {stage.name}, breaks: {len(found)} lines of the script have {text!r}, not one")
    return problems


def line_of(recipe: Recipe, text: str) -> int:
    """Number of the script's one line with this text, from 1."""
    lines = recipe.script.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)
