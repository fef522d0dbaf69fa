"""`tdbg shell`."""

from __future__ import annotations

from torchbench_dbg.cli import options
from torchbench_dbg.cli.app import Panel, app, examples, finish

SHELL_EXAMPLES = examples(
    "tdbg shell",
    "tdbg shell --setup 'm = nn.Linear(4, 4)' --dtype float64",
    "printf 'a + b\\nF.relu(a)\\n' | tdbg shell --json",
)


@app.command(rich_help_panel=Panel.SEE, epilog=SHELL_EXAMPLES)
def shell(
    setup: options.Setup = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    seed: options.Seed = None,
    python: options.Python = None,
    timeout: options.Timeout = None,
    max_stops: options.MaxStops = None,
    break_at: options.Breaks = None,
    gdb: options.Gdb = None,
    source: options.Source = None,
    tree: options.Tree = False,
    stack: options.Stack = False,
    as_json: options.Json = False,
) -> None:
    """Type an expression, see its path at once; the next one needs no new import of torch.

    At a terminal :help lists the commands. Otherwise expressions and commands are read from stdin, line by line.
    """

    def command() -> int:
        from torchbench_dbg.commands import shell as command_module
        from torchbench_dbg.errors import UsageError

        if tree and stack:
            raise UsageError("--tree and --stack are two views: choose one.")
        wanted = command_module.ShellOptions(
            python=python,
            setup=setup,
            breaks=tuple(break_at or ()),
            view="tree" if tree else "stack" if stack else "path",
            json=as_json,
        )
        # What settings have a value for where the command line has none.
        given: dict[str, object] = {"device": device, "dtype": dtype, "seed": seed, "timeout": timeout}
        given |= {"max_stops": max_stops, "gdb": gdb, "source": source}
        return command_module.run(wanted, given)

    finish(command)
