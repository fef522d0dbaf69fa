"""`tdbg debug`, `tdbg recipes` and `tdbg run`."""

from __future__ import annotations

from typing import Annotated

import typer

from torchbench_dbg.cli import options
from torchbench_dbg.cli.app import Panel, app, examples, finish

RUN_EXAMPLES = examples(
    "tdbg run add",
    "tdbg run train-min --interactive --at engine",
    "tdbg run crash --gdb /usr/bin/gdb -o crash.json",
    "tdbg run .tdbg/recipes/mine/recipe.toml --yes",
)
DEBUG_EXAMPLES = examples(
    "tdbg debug train.py --epochs 1",
    "tdbg debug --break train.py:12 train.py",
    "tdbg debug -m package.module",
    "then, at (Pdb): gdb (the line's own functions), gdb add_kernel",
)
recipes_app = typer.Typer(
    help="List the recipes: scripted pdb and gdb sessions.",
    invoke_without_command=True,
    epilog=examples("tdbg recipes", "tdbg recipes show train-min", "tdbg run train-min"),
)
app.add_typer(recipes_app, name="recipes", rich_help_panel=Panel.DEBUG)


def _names(incomplete: str) -> list[str]:
    from torchbench_dbg.recipes import library

    return [name for name in library.names() if name.startswith(incomplete)]


Recipe = Annotated[
    str, typer.Argument(metavar="NAME|FILE", help="A recipe, or the file of one.", autocompletion=_names)
]


@recipes_app.callback()
def recipes(context: typer.Context, as_json: options.Json = False) -> None:
    """List the recipes: scripted pdb and gdb sessions that teach one thing each."""
    if context.invoked_subcommand is not None:
        return

    def command() -> int:
        from torchbench_dbg.commands import recipes as command_module

        return command_module.run(as_json=as_json)

    finish(command)


@recipes_app.command("show", epilog=examples("tdbg recipes show add"))
def recipes_show(name: Recipe, as_json: options.Json = False) -> None:
    """Show what a recipe teaches, what it types, and its script."""

    def command() -> int:
        from torchbench_dbg.commands import recipes as command_module

        return command_module.show(name, as_json=as_json)

    finish(command)


@app.command(rich_help_panel=Panel.DEBUG, epilog=RUN_EXAMPLES)
def run(
    name: Recipe,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Hand the terminal over at the end of each stage.")
    ] = False,
    at: Annotated[str | None, typer.Option("--at", metavar="STAGE", help="Hand it over after this stage only.")] = None,
    cuda_sync: Annotated[
        bool, typer.Option("--cuda-sync", help="Set CUDA_LAUNCH_BLOCKING=1: kernels run one by one.")
    ] = False,
    python: options.Python = None,
    gdb: Annotated[str | None, typer.Option(metavar="PATH", help="gdb to use.")] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="For one command.", show_default="60")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Run it though its directory is not trusted.")] = False,
    show_all: Annotated[bool, typer.Option("--all", help="The debuggers' output as it was, nothing folded.")] = False,
    as_json: options.Json = False,
    output: options.Output = None,
    save: options.Save = True,
) -> None:
    """Play a recipe: a pdb and gdb session that checks itself."""

    def command() -> int:
        from torchbench_dbg.commands import run as command_module

        wanted = command_module.RunOptions(
            name=name,
            python=python,
            gdb=gdb,
            timeout=timeout,
            cuda_sync=cuda_sync,
            interactive=interactive,
            at=at,
            yes=yes,
            json=as_json,
            output=output,
            save=save,
            everything=show_all,
        )
        return command_module.run(wanted)

    finish(command)


@app.command(
    rich_help_panel=Panel.DEBUG,
    epilog=DEBUG_EXAMPLES,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
def debug(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="The program; its arguments follow it.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARG", help="Of the script.", show_default=False)
    ] = None,
    is_module: Annotated[bool, typer.Option("-m", help="SCRIPT is the name of a module.")] = False,
    break_at: Annotated[
        list[str] | None, typer.Option("--break", metavar="PLACE", help="pdb breakpoint: FILE:LINE or a function.")
    ] = None,
    python: options.Python = None,
    gdb: Annotated[str | None, typer.Option(metavar="PATH", help="gdb to use.")] = None,
) -> None:
    """Debug a script with pdb, and with gdb in the same process: pdb gets a command `gdb`."""

    def command() -> int:
        from torchbench_dbg.commands import debug as command_module

        wanted = command_module.DebugOptions(
            script=script,
            arguments=tuple(arguments or ()),
            is_module=is_module,
            python=python,
            gdb=gdb,
            breaks=tuple(break_at or ()),
        )
        return command_module.run(wanted)

    finish(command)
