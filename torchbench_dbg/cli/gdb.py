"""`tdbg gdb` and `tdbg gdbinit`."""

from __future__ import annotations

from typing import Annotated

import typer

from torchbench_dbg.cli.app import Panel, app, examples, finish

GDB_EXAMPLES = examples(
    "tdbg gdb --args python train.py --epochs 1",
    "tdbg gdb -p 4242",
    "tdbg gdb python core",
    "tdbg gdb -ex 'tdbg-break add' -ex run --args python -c 'import torch; torch.ones(2) + 1'",
)
# Everything that gdb knows goes through: of tdbg's own there are --gdb and --help, before the first other word.
UNTOUCHED = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": ["--help"],
}


@app.command(
    rich_help_panel=Panel.DEBUG,
    name="gdb",
    epilog=GDB_EXAMPLES,
    context_settings=UNTOUCHED,
    options_metavar="[--gdb PATH] [GDB-ARGUMENT]…",
)
def start_gdb(
    context: typer.Context,
    path: Annotated[str | None, typer.Option("--gdb", metavar="PATH", help="gdb to start.")] = None,
) -> None:
    """Start gdb with tdbg's commands and printers; it takes all of gdb's own arguments."""

    def command() -> int:
        from torchbench_dbg.commands import gdb as command_module

        return command_module.run(context.args, explicit=path)

    finish(command)


@app.command(
    rich_help_panel=Panel.DEBUG,
    epilog=examples('gdb -x "$(tdbg gdbinit)" --args python train.py', "echo source $(tdbg gdbinit) >> ~/.gdbinit"),
)
def gdbinit() -> None:
    """Print the file that brings tdbg's commands and printers into any gdb."""

    def command() -> int:
        from torchbench_dbg.commands import gdb as command_module

        return command_module.print_path()

    finish(command)
