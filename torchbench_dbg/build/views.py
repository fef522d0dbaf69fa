"""What a person sees of a build: the plan before it, its progress, what came of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from torchbench_dbg.build.plan import STEPS, BuildPlan
from torchbench_dbg.build.record import BuildRecord

_SHOWN_FILES = 5


def plan_lines(plan: BuildPlan) -> Iterator[Text | Table]:
    """Every choice with its reason, then the problems."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    version = f"  ({plan.checkout.version}, {plan.checkout.layout})" if plan.checkout else "  (to be cloned)"
    table.add_row("sources", f"{plan.source}{version}")
    table.add_row("profile", f"{plan.profile.name}: {plan.profile.meaning}")
    table.add_row("environment", f"{plan.prefix}  by {plan.backend.name} ({plan.backend_reason})")
    table.add_row("jobs", f"{plan.jobs} ({plan.jobs_reason})")
    by_origin: dict[str, list[str]] = {}
    for variable in plan.variables:
        by_origin.setdefault(variable.origin, []).append(f"{variable.name}={shlex.quote(variable.value)}")
    for origin, texts in by_origin.items():
        table.add_row(origin, " ".join(texts))
    table.add_row("steps", " → ".join(plan.steps))
    yield table
    for problem in plan.problems:
        label, style = ("problem  ", "bold red") if problem.severity == "fail" else ("warning  ", "bold yellow")
        yield Text.assemble((label, style), problem.message)
        if problem.hint:
            yield Text.assemble((" " * 9, ""), (problem.hint, "cyan"))


def script_lines(plan: BuildPlan) -> Iterator[str]:
    """A shell script that does the same, for --dry-run."""
    from torchbench_dbg.build.steps import BY_NAME

    yield "#!/bin/sh"
    yield f"# {plan.identifier}: what `tdbg build` would do"
    yield "set -eu"
    for variable in plan.variables:
        yield f"export {variable.name}={shlex.quote(variable.value)}  # {variable.origin}"
    yield f'export PATH={shlex.quote(str(plan.prefix / "bin"))}:"$PATH" PYTHONNOUSERSITE=1'
    for step in plan.steps:
        yield ""
        yield f"# {STEPS[step]}"
        if plan.checkout is None and step not in ("environment", "clone", "submodules"):
            yield "# known when the sources are there: run with --dry-run again after them"
            continue
        for command in BY_NAME[step].commands(plan):
            words = " ".join(
                [*(f"{k}={shlex.quote(v)}" for k, v in command.variables.items()), shlex.join(command.argv)]
            )
            yield f"(cd {shlex.quote(str(command.cwd))} && {words})" if command.cwd else words


def result_lines(record: BuildRecord) -> Iterator[Text]:
    """How it ended, and what to run next."""
    yield Text("")
    if record.failure is not None:
        yield from _failure_lines(record)
        return
    if record.proof is not None:
        proof = record.proof
        with_lines = sum(library.has_dwarf for library in proof.libraries)
        yield Text.assemble(("built    ", "bold green"), f"torch {proof.version} at {proof.file}")
        yield Text(
            f"         {with_lines} of {len(proof.libraries)} libraries have debug information"
            + (", DEBUG assertions on" if proof.debug else "")
        )
        if proof.breakpoint:
            yield Text(f"         a breakpoint resolves: {proof.breakpoint}")
    else:
        done = STEPS[record.steps[-1].name] if record.steps else "nothing"
        style = "bold green" if record.status == "stopped" else "bold yellow"
        yield Text.assemble(("done     " if record.status == "stopped" else f"{record.status:<9}", style), done)
    if record.cache is not None and record.cache.hits + record.cache.misses:
        total = record.cache.hits + record.cache.misses
        yield Text.assemble(
            ("ccache   ", "dim"), f"{record.cache.hits} of {total} files were hits ({record.cache.hits / total:.0%})"
        )
    for file in [each for each in record.slowest if each.seconds >= 1][:_SHOWN_FILES]:
        yield Text.assemble(("slowest  ", "dim"), f"{file.seconds:7.1f} s  {file.output}")
    yield Text.assemble(("log      ", "dim"), record.log)
    if record.status == "finished":
        yield Text.assemble(("next     ", "dim"), f"tdbg trace 'a + b' --python {record.python}")
    elif record.steps and record.steps[0].name == "environment":
        yield Text.assemble(("next     ", "dim"), "tdbg build --resume goes on from here")


def _failure_lines(record: BuildRecord) -> Iterator[Text]:
    failure = record.failure
    assert failure is not None
    yield Text.assemble(("failed   ", "bold red"), STEPS[failure.step])
    yield Text.assemble(("error    ", "bold red"), failure.error)
    if failure.command:
        yield Text.assemble(("command  ", "dim"), failure.command)
    place = f"{record.log}:{failure.log_line}" if failure.log_line else record.log
    yield Text.assemble(("log      ", "dim"), place)
    for line in failure.tail[-8:]:
        yield Text(f"         {line}", style="dim")
    yield Text.assemble(("next     ", "dim"), "mend it; the same command again goes on from this step")
