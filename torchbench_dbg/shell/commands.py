"""The commands that begin with a colon. Each changes the shell's choices or shows a trace that is there."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchbench_dbg import console, paths
from torchbench_dbg.errors import ExpressionError, UsageError
from torchbench_dbg.shell.choices import SETTINGS, View, find_setting, meant, shown, with_setting

if TYPE_CHECKING:
    from torchbench_dbg.shell.session import Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`usage` is what stands after the name."""

    run: Callable[[Shell, str], None]
    usage: str
    help: str


def run(shell: Shell, line: str) -> None:
    """Run `:name argument`. UsageError for a name that there is not."""
    name, _, argument = line.lstrip().removeprefix(":").partition(" ")
    find(name).run(shell, argument.strip())


def find(name: str) -> Command:
    """A command by its name or the beginning of it."""
    if name in COMMANDS:
        return COMMANDS[name]
    matching = [full for full in COMMANDS if name and full.startswith(name)]
    if len(matching) == 1:
        return COMMANDS[matching[0]]
    close = matching or difflib.get_close_matches(name, COMMANDS, n=2)
    hint = f"did you mean {' or '.join(f':{each}' for each in close)}?" if close else ":help lists the commands"
    raise UsageError(f"there is no command :{name}.", hint=hint)


def _view(view: View) -> Callable[[Shell, str], None]:
    return lambda shell, argument: shell.show(argument or "last", view)


def _show(shell: Shell, argument: str) -> None:
    shell.show(argument or "last", None)


def _json(shell: Shell, argument: str) -> None:
    console.print_text(shell.json_of(argument or "last"))


def _save(shell: Shell, argument: str) -> None:
    if not argument:
        raise UsageError(":save needs the name of a file.", hint=":save add.json; tdbg show add.json draws it again")
    path = Path(argument).expanduser()
    try:
        paths.write_atomically(path, shell.json_of("last") + "\n")
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from error
    console.message(f"written to {path}")


def _break(shell: Shell, argument: str) -> None:
    breaks = shell.choices.breaks
    if argument == "off":
        shell.choices = replace(shell.choices, breaks=())
    elif argument and argument not in breaks:
        shell.try_out(replace(shell.choices, breaks=(*breaks, argument)))
    _list("stops at", shell.choices.breaks, nothing="no stops: :break NAME makes one")


def _setup(shell: Shell, argument: str) -> None:
    if argument == "off":
        shell.try_out(replace(shell.choices, setup=()))
    elif argument:
        shell.try_out(replace(shell.choices, setup=(*shell.choices.setup, argument)))
    _list("runs first", shell.choices.setup, nothing="no setup: :setup CODE adds a line that runs first, untraced")


def _list(title: str, lines: tuple[str, ...], *, nothing: str) -> None:
    console.message("\n".join(f"{title}  {line}" for line in lines) or nothing)


def _set(shell: Shell, argument: str) -> None:
    name, _, value = argument.partition(" ")
    setting = find_setting(name) if name else None
    if setting is not None and value:
        changed = with_setting(shell.choices, name, value.strip())
        try:
            if setting.in_target:
                shell.try_out(changed)
        except ExpressionError as error:
            error.hint = error.hint or meant(value.strip(), setting)
            raise
        shell.choices = changed
    for each in (name,) if name else SETTINGS:
        console.message(f"{each:<8} {shown(shell.choices, each)}")


def _help(_shell: Shell, _argument: str) -> None:
    width = max(len(f":{name} {command.usage}") for name, command in COMMANDS.items())
    lines = [f"{f':{name} {command.usage}':<{width}}  {command.help}" for name, command in COMMANDS.items()]
    console.message(
        "Type Python statements that use torch, nn, F; a, b; x, w (these require grad).\n" + "\n".join(lines)
    )


def _quit(shell: Shell, _argument: str) -> None:
    shell.ended = True


COMMANDS: dict[str, Command] = {
    "path": Command(run=_view("path"), usage="[N]", help="the last trace (or number N): its path"),
    "tree": Command(run=_view("tree"), usage="[N]", help="its calls, every one"),
    "stack": Command(run=_view("stack"), usage="[N]", help="its merged backtrace at the kernel"),
    "show": Command(run=_show, usage="[N]", help="the view that is set"),
    "json": Command(run=_json, usage="[N]", help="the record as JSON"),
    "save": Command(run=_save, usage="FILE", help="write the last record; tdbg show FILE draws it"),
    "break": Command(run=_break, usage="[NAME|off]", help="backtrace by gdb where NAME is entered"),
    "setup": Command(run=_setup, usage="[CODE|off]", help="runs before every expression, untraced"),
    "set": Command(run=_set, usage="[NAME VALUE]", help=", ".join(SETTINGS)),
    "help": Command(run=_help, usage="", help="this list"),
    "quit": Command(run=_quit, usage="", help="leave (Ctrl-D as well)"),
}
