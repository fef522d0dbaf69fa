"""`tdbg trace`, `show`, `runs`, `config`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from torchbench_dbg.cli import options
from torchbench_dbg.cli.app import Panel, app, examples, finish
from torchbench_dbg.commands.options import TraceOptions, ViewOptions

config_app = typer.Typer(help="Settings and where they are from.", no_args_is_help=True)
app.add_typer(config_app, name="config", rich_help_panel=Panel.SEE)

TRACE_EXAMPLES = examples(
    "tdbg trace 'a + b'",
    "tdbg trace '(x * w).sum().backward()' --tree --depth 6",
    "tdbg trace 'F.relu(a)' --break relu --hits 2",
    "tdbg trace 'm(a)' --setup 'm = nn.Linear(4, 4)' --json -o linear.json",
    "tdbg trace --script train.py --line 12",
)
DIFF_EXAMPLES = examples("tdbg diff last~1 last", "tdbg diff float32.json float64.json --exit-code")
SHOW_EXAMPLES = examples("tdbg show linear.json --tree", "tdbg show last --stack")


@app.command(rich_help_panel=Panel.SEE, epilog=TRACE_EXAMPLES)
def trace(
    expression: options.Expression = None,
    setup: options.Setup = None,
    script: options.Script = None,
    line: options.Line = None,
    argument: options.Arguments = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    seed: options.Seed = None,
    load_library: options.Libraries = None,
    python: options.Python = None,
    cold: options.Cold = False,
    timeout: options.Timeout = None,
    max_stops: options.MaxStops = None,
    break_at: options.Breaks = None,
    hits: options.Hits = 1,
    gdb: options.Gdb = None,
    source: options.Source = None,
    tree: options.Tree = False,
    stack: options.Stack = False,
    depth: options.Depth = None,
    grep: options.Grep = None,
    show_all: options.All = False,
    as_json: options.Json = False,
    output: options.Output = None,
    save: options.Save = True,
) -> None:
    """Show what an expression calls, from the Python line to the kernel."""

    def command() -> int:
        from torchbench_dbg.commands import trace as command_module

        wanted = TraceOptions(
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
            view=_view(tree=tree, stack=stack, depth=depth, grep=grep, show_all=show_all),
        )
        # What settings have a value for where the command line has none.
        given: dict[str, object] = {"device": device, "dtype": dtype, "seed": seed, "timeout": timeout}
        given |= {"max_stops": max_stops, "gdb": gdb, "source": source}
        return command_module.run(wanted, given)

    finish(command)


def _view(*, tree: bool, stack: bool, depth: int | None, grep: str | None, show_all: bool) -> ViewOptions:
    if tree and stack:
        from torchbench_dbg.errors import UsageError

        raise UsageError("--tree and --stack are two views: choose one.")
    view: Literal["path", "tree", "stack"] = "tree" if tree else "stack" if stack else "path"
    return ViewOptions(view=view, depth=depth, grep=grep, show_all=show_all)


@app.command(rich_help_panel=Panel.SEE, epilog=SHOW_EXAMPLES)
def show(
    name: Annotated[str, typer.Argument(metavar="FILE|RUN", help="A saved trace, a run of tdbg runs, or 'last'.")],
    tree: options.Tree = False,
    stack: options.Stack = False,
    depth: options.Depth = None,
    grep: options.Grep = None,
    show_all: options.All = False,
    as_json: options.Json = False,
) -> None:
    """Draw a saved trace again."""

    def command() -> int:
        from torchbench_dbg.commands import show as command_module

        view = _view(tree=tree, stack=stack, depth=depth, grep=grep, show_all=show_all)
        return command_module.run(name, view, as_json=as_json)

    finish(command)


@app.command(rich_help_panel=Panel.SEE, epilog=DIFF_EXAMPLES)
def diff(
    left: Annotated[str, typer.Argument(metavar="A", help="A saved trace, a run, 'last' or 'last~1'.")],
    right: Annotated[str, typer.Argument(metavar="B", help="The one to compare it with.")],
    show_all: Annotated[bool, typer.Option("--all", help="Compare the calls of helpers too.")] = False,
    whole: Annotated[bool, typer.Option("--whole", help="Show the equal calls too.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if they differ.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show what is different between two traces."""

    def command() -> int:
        from torchbench_dbg.commands import diff as command_module

        return command_module.run(left, right, everything=show_all, whole=whole, as_json=as_json, exit_code=exit_code)

    finish(command)


@app.command(rich_help_panel=Panel.SEE)
def runs(
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    as_json: options.Json = False,
) -> None:
    """List the last runs, the newest first."""

    def command() -> int:
        from torchbench_dbg.commands import runs as command_module

        return command_module.run(limit=limit, as_json=as_json)

    finish(command)


@config_app.command("show")
def config_show(
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value is from.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show the settings in force."""

    def command() -> int:
        from torchbench_dbg.commands import config as command_module

        return command_module.run(origin=origin, as_json=as_json)

    finish(command)
