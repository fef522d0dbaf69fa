"""A transcript as a person would have typed it: stages, prompts, notes, answers, ticks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from rich.rule import Rule
from rich.text import Text

from torchbench_dbg.recipes.record import Exchange, StageTranscript, Transcript
from torchbench_dbg.recipes.views import output
from torchbench_dbg.trace.views.style import highlighted

_STATUS_STYLES = {"green": "bold green", "skipped": "bold yellow"}


def lines(record: Transcript, *, everything: bool = False) -> Iterator[Text | Rule]:
    """The whole of it."""
    yield from heading(record.recipe, record.title, record.teaches, record.watch, record.target)
    for stage in record.stages:
        yield from stage_heading(stage.debugger, stage.name, stage.title)
        for exchange in stage.exchanges:
            yield from exchange_lines(exchange, everything=everything)
    yield from summary(record)


def heading(name: str, title: str, teaches: str, watch: Sequence[str], target: Mapping[str, str]) -> Iterator[Text]:
    yield Text.assemble((name, "bold cyan"), "  ", (title, "bold"))
    if target:
        shown = [f"{key} {value}" for key, value in target.items() if key != "executable"]
        yield Text(" · ".join(shown), style="dim")
    yield Text("")
    yield Text(teaches)
    for text in watch:
        yield Text.assemble(("watch ", "bold cyan"), text)


def stage_heading(debugger: str, name: str, title: str) -> Iterator[Text | Rule]:
    yield Text("")
    yield Rule(Text.assemble((f"{debugger} ", "bold"), (f"{name}: ", "cyan"), title), align="left", style="dim")


def note_lines(note: str) -> Iterator[Text]:
    yield from (Text(f"┃ {line}", style="italic cyan") for line in textwrap.wrap(note, 76))


def exchange_lines(exchange: Exchange, *, everything: bool = False) -> Iterator[Text]:
    """A note is marked by a bar, which no debugger prints."""
    if exchange.note:
        yield Text("")
        yield from note_lines(exchange.note)
    command = highlighted(exchange.command) if exchange.debugger == "pdb" else Text(exchange.command)
    command.stylize("bold")
    yield Text.assemble((exchange.prompt, "bold green"), command)
    yield from output.lines(exchange.debugger, exchange.output, everything=everything)
    for expectation in exchange.expectations:
        if not expectation.met:
            yield Text.assemble(("✗ not printed: ", "bold red"), expectation.pattern)


def banner(stage: str, at: str, *, has_gdb: bool) -> Iterator[Text]:
    """Said when the terminal is handed over."""
    yield Text("")
    where = {
        "pdb": "at pdb's prompt" + (", gdb is attached to the same process" if has_gdb else ""),
        "gdb": "at gdb's prompt, the process is stopped",
    }[at]
    yield Text.assemble(("┃ yours ", "bold magenta"), f"after stage {stage}, {where}. Ctrl-] goes on with the recipe.")


def summary(record: Transcript) -> Iterator[Text | Rule]:
    """What was seen, and what to try next."""
    yield Text("")
    yield Rule(style="dim")
    seen = list(record.expectations())
    for stage, exchange, expectation in seen:
        if exchange.command.startswith("break ") and expectation.met:
            continue  # a breakpoint that was set is no news
        yield _tick(stage, exchange, expectation.pattern, met=expectation.met)
    met = sum(expectation.met for _, _, expectation in seen)
    verdict = Text(record.status, style=_STATUS_STYLES.get(record.status, "bold red"))
    if record.status == "skipped":
        yield Text.assemble(verdict, f": {record.failure}")
    else:
        yield Text.assemble(verdict, f": {met} of {len(seen)} expectations met · {record.seconds:.1f} s")
        if record.failure:
            yield Text(record.failure, style="red")
    for text in record.then:
        yield Text.assemble(("next  ", "bold cyan"), text)


def _tick(stage: StageTranscript, exchange: Exchange, pattern: str, *, met: bool) -> Text:
    mark = ("✓ ", "bold green") if met else ("✗ ", "bold red")
    return Text.assemble(mark, (f"{stage.name}, {exchange.command}: ", "dim"), pattern.replace("\\", ""))
