"""The Typer application, its global options, and what every declaration of a command needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from torchbench_dbg import __version__
from torchbench_dbg.cli import options


class Panel:
    """The groups of commands in `tdbg --help`."""

    SEE = "See what runs"
    DEBUG = "Debug"
    PROCESSES = "Look at a process"
    BUILD = "Build PyTorch"


app = typer.Typer(
    name="tdbg",
    help="What really runs when PyTorch runs: the Python and C++ calls of an expression, down to the kernel.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def examples(*lines: str) -> str:
    """The epilog of a command: commands to try, one a line."""
    return "\n".join(["Examples:", *(f"[cyan]  {line}[/]" for line in lines)])


def finish(command: Callable[[], int]) -> None:
    """Run a command; its exit code is the program's."""
    from torchbench_dbg.failures import guarded, with_settings

    raise typer.Exit(guarded(lambda: with_settings(command)))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tdbg {__version__}")
        raise typer.Exit


@app.callback()
def main(
    verbose: options.Verbose = 0,
    quiet: options.Quiet = 0,
    color: options.Color = None,
    no_input: options.NoInput = False,
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of all commands."""
    from torchbench_dbg.failures import configure_console, guarded

    if code := guarded(lambda: configure_console(color, verbose - quiet, no_input=no_input)):
        raise typer.Exit(code)
