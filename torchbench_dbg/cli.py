"""The command line: declarations only. What a command does is in commands/<name>.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from torchbench_dbg import __version__
from torchbench_dbg.commands.options import TraceOptions, ViewOptions

app = typer.Typer(
    name="tdbg",
    help="What really runs when PyTorch runs: the Python and C++ calls of an expression, down to the kernel.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
config_app = typer.Typer(help="Settings and where they are from.", no_args_is_help=True)
app.add_typer(config_app, name="config")

ViewTree = Annotated[bool, typer.Option("--tree", help="Every call, in order.", rich_help_panel="View")]
ViewStack = Annotated[bool, typer.Option("--stack", help="The merged backtrace at the kernel.", rich_help_panel="View")]
Depth = Annotated[int | None, typer.Option(min=1, help="Levels of --tree to show.", rich_help_panel="View")]
Grep = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX", help="In --tree only the calls that match, and their callers.", rich_help_panel="View"
    ),
]
All = Annotated[bool, typer.Option("--all", help="std:: functions and destructors too.", rich_help_panel="View")]
Json = Annotated[bool, typer.Option("--json", help="The whole record as JSON on stdout.")]


def _finish(command: Callable[[], int]) -> None:
    """Run a command; its exit code is the program's."""
    from torchbench_dbg.failures import guarded

    raise typer.Exit(guarded(command))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tdbg {__version__}")
        raise typer.Exit


@app.callback()
def main(
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="Say more.")] = 0,
    quiet: Annotated[int, typer.Option("--quiet", "-q", count=True, help="Say less.")] = 0,
    color: Annotated[str | None, typer.Option(metavar="WHEN", help="auto, always or never.")] = None,
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of all commands."""
    from torchbench_dbg.failures import configure_console

    _run_now(lambda: configure_console(color, verbose - quiet))


def _run_now(action: Callable[[], int]) -> None:
    from torchbench_dbg.failures import guarded

    if code := guarded(action):
        raise typer.Exit(code)


@app.command(
    epilog="Examples:  [cyan]tdbg trace 'a + b'[/]  ·  [cyan]tdbg trace '(x * w).sum().backward()' --tree[/]  ·  "
    "[cyan]tdbg trace 'F.relu(a)' --break relu --hits 2[/]  ·  [cyan]tdbg trace --script train.py --line 12[/]"
)
def trace(
    expression: Annotated[
        str | None,
        typer.Argument(
            metavar="EXPR",
            help="One or more Python statements. They can use torch, nn, F; a, b (float32 4x4); x, w (the same, "
            "requiring grad). '-' reads them from stdin.",
            show_default=False,
        ),
    ] = None,
    setup: Annotated[str | None, typer.Option(metavar="CODE", help="Runs first, untraced.")] = None,
    script: Annotated[Path | None, typer.Option(metavar="FILE", help="Runs first; EXPR sees its globals.")] = None,
    line: Annotated[int | None, typer.Option(min=1, metavar="N", help="Trace this line of the script.")] = None,
    argument: Annotated[list[str] | None, typer.Option("--arg", metavar="ARG", help="Argument of the script.")] = None,
    device: Annotated[str | None, typer.Option(help="Device of a, b, x, w.", show_default="cpu")] = None,
    dtype: Annotated[str | None, typer.Option(help="Their dtype.", show_default="float32")] = None,
    seed: Annotated[int | None, typer.Option(help="Their seed.", show_default="0")] = None,
    load_library: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="torch.ops.load_library this first.")
    ] = None,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="Interpreter (or environment) whose torch runs.")
    ] = None,
    cold: Annotated[bool, typer.Option("--cold", help="No warm-up: first-run work shows too.")] = False,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="For the expression.", show_default="60")
    ] = None,
    max_stops: Annotated[
        int | None, typer.Option(metavar="N", help="Function entries to record.", show_default="50000")
    ] = None,
    break_at: Annotated[
        list[str] | None,
        typer.Option(
            "--break",
            metavar="NAME",
            help="Full backtrace by gdb where this function is entered: C++ name (whole or its end), /regex/, or "
            "Python name.",
            rich_help_panel="Stops",
        ),
    ] = None,
    hits: Annotated[int, typer.Option(min=1, help="Stops for each --break.", rich_help_panel="Stops")] = 1,
    gdb: Annotated[str | None, typer.Option(metavar="PATH", help="gdb to use.", rich_help_panel="Stops")] = None,
    source: Annotated[
        Path | None, typer.Option(metavar="DIR", help="PyTorch's sources, for their lines.", rich_help_panel="Stops")
    ] = None,
    tree: ViewTree = False,
    stack: ViewStack = False,
    depth: Depth = None,
    grep: Grep = None,
    show_all: All = False,
    as_json: Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the record there too.")
    ] = None,
    save: Annotated[bool, typer.Option("--save/--no-save", help="Keep the run for tdbg runs.")] = True,
) -> None:
    """Show what an expression calls, from the Python line to the kernel."""

    def command() -> int:
        from torchbench_dbg.commands import trace as command_module

        view = ViewOptions(view=_view(tree, stack), depth=depth, grep=grep, show_all=show_all)
        options = TraceOptions(
            expression=expression or "",
            python=python,
            setup=setup,
            script=script,
            line=line,
            arguments=tuple(argument or ()),
            cold=cold,
            load_libraries=tuple(load_library or ()),
            breaks=tuple(break_at or ()),
            hits=hits,
            json=as_json,
            output=output,
            save=save,
            view=view,
        )
        given = {
            "device": device,
            "dtype": dtype,
            "seed": seed,
            "timeout": timeout,
            "max_stops": max_stops,
            "gdb": gdb,
            "source": source,
        }
        return command_module.run(options, given)

    _finish(command)


def _view(tree: bool, stack: bool) -> Literal["path", "tree", "stack"]:
    if tree and stack:
        from torchbench_dbg.errors import UsageError

        raise UsageError("--tree and --stack are two views: choose one.")
    return "tree" if tree else "stack" if stack else "path"


@app.command(epilog="Examples:  [cyan]tdbg show trace.json --tree[/]  ·  [cyan]tdbg show last --stack[/]")
def show(
    name: Annotated[str, typer.Argument(metavar="FILE|RUN", help="A saved trace, a run of tdbg runs, or 'last'.")],
    tree: ViewTree = False,
    stack: ViewStack = False,
    depth: Depth = None,
    grep: Grep = None,
    show_all: All = False,
    as_json: Json = False,
) -> None:
    """Draw a saved trace again."""

    def command() -> int:
        from torchbench_dbg.commands import show as command_module

        view = ViewOptions(view=_view(tree, stack), depth=depth, grep=grep, show_all=show_all)
        return command_module.run(name, view, as_json=as_json)

    _finish(command)


@app.command()
def runs(
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    as_json: Json = False,
) -> None:
    """List the last runs, the newest first."""

    def command() -> int:
        from torchbench_dbg.commands import runs as command_module

        return command_module.run(limit=limit, as_json=as_json)

    _finish(command)


@config_app.command("show")
def config_show(
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value is from.")] = False,
    as_json: Json = False,
) -> None:
    """Show the settings in force."""

    def command() -> int:
        from torchbench_dbg.commands import config as command_module

        return command_module.run(origin=origin, as_json=as_json)

    _finish(command)
