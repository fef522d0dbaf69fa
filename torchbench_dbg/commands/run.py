"""`tdbg run`: play a recipe, show its transcript as it grows, keep it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchbench_dbg import console, errors, paths, runs, settings, target
from torchbench_dbg.debugger.gdb import find_gdb
from torchbench_dbg.errors import RecipeError, UsageError
from torchbench_dbg.recipes import library
from torchbench_dbg.recipes.conversation import Conversation, require_terminal
from torchbench_dbg.recipes.format import Recipe, Stage, did_you_mean
from torchbench_dbg.recipes.record import Exchange, Transcript
from torchbench_dbg.recipes.runner import Audience, Player, Setting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

_EXIT_CODES = {
    "green": 0,
    "skipped": 0,
    "red": errors.RecipeFailed.exit_code,
    "timeout": errors.InferiorTimeout.exit_code,
    "interrupted": errors.INTERRUPTED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line said. `timeout`: seconds for one command of a debugger."""

    name: str
    python: str | None = None
    gdb: str | None = None
    timeout: float | None = None
    cuda_sync: bool = False
    interactive: bool = False
    at: str | None = None
    yes: bool = False
    json: bool = False
    output: Path | None = None
    save: bool = True
    everything: bool = False


def run(options: RunOptions) -> int:
    """The exit code says how the recipe ended."""
    place = library.find(options.name)
    recipe = place.read()
    _check(options, recipe)
    _ask_for_trust(place, yes=options.yes)
    record = Player(recipe=recipe, setting=_setting(options), audience=_audience(options)).play()
    text = json.dumps(record.to_json(), ensure_ascii=False)
    if options.save:
        runs.save("transcript", text, title=record.recipe, status=record.status)
    if options.output is not None:
        paths.write_result(options.output, text + "\n")
    if options.json:
        console.print_text(text)
    else:
        _show_end(record)
    return _EXIT_CODES[record.status]


def _check(options: RunOptions, recipe: Recipe) -> None:
    names = [stage.name for stage in recipe.stages]
    if options.at is not None and options.at not in names:
        raise UsageError(
            f"--at {options.at}: {recipe.name} has the stages {', '.join(names)}{did_you_mean(options.at, names)}"
        )
    if options.interactive or options.at:
        if options.json:
            raise UsageError("--interactive is for people, --json for programs: choose one.")
        require_terminal()
    if options.timeout is not None and not 0 < options.timeout < 1e6:
        raise UsageError(f"--timeout {options.timeout:g}: a number of seconds above 0 is expected.")


def _ask_for_trust(place: library.Place, *, yes: bool) -> None:
    """A recipe runs code. tdbg's own are trusted, others if the user says so."""
    if yes or place.origin == "tdbg" or settings.is_trusted(place.project):
        return
    question = f"{place.file} is not from tdbg: it runs a script and commands of its own."
    if not console.may_ask():
        raise RecipeError(
            f"{question} Its directory is not trusted.",
            hint=f'tdbg recipes show {place.file}, and then --yes (or trust = ["{place.project}"] in config.toml)',
        )
    console.message(question)
    if input("Run it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise RecipeError("the recipe was not run.", hint=f"tdbg recipes show {place.file} shows what it does")


def _setting(options: RunOptions) -> Setting:
    loaded = settings.load(warn=console.warn)
    if options.cuda_sync:
        console.message(
            "CUDA_LAUNCH_BLOCKING=1: each kernel is waited for where it is launched, so that an error of the device "
            "is raised by the call that made it. It is slower, and can hide races."
        )
    return Setting(
        python=target.find_target(options.python or loaded["python"]).python,
        gdb=find_gdb(options.gdb or loaded["gdb"]),
        timeout=options.timeout or loaded["timeout"],
        cuda_sync=options.cuda_sync,
    )


def _audience(options: RunOptions) -> Audience:
    """Shows each exchange when it has happened; with --json nothing is shown."""
    from torchbench_dbg.recipes.views import transcript as view

    def show(lines: Iterable[RenderableType]) -> None:
        if not options.json:
            for line in lines:
                console.stdout().print(line)

    def begin(recipe: Recipe, target: dict[str, str]) -> None:
        show(view.heading(recipe.name, recipe.title, recipe.teaches, recipe.watch, target))

    def stage(stage: Stage) -> None:
        show(view.stage_heading(stage.debugger, stage.name, stage.title))

    def exchange(exchange: Exchange) -> None:
        show(view.exchange_lines(exchange, everything=options.everything))

    def hand_over(stage: Stage, conversation: Conversation) -> None:
        if options.at == stage.name or (options.interactive and options.at is None):
            show(view.banner(stage.name, conversation.at, has_gdb=conversation.has_gdb))
            conversation.interact()

    return Audience(begin=begin, stage=stage, exchange=exchange, hand_over=hand_over)


def _show_end(record: Transcript) -> None:
    from torchbench_dbg.recipes.views import transcript as view

    for line in view.lines(record) if record.status == "skipped" else view.summary(record):
        console.stdout().print(line)
