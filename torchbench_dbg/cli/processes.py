"""`tdbg crash`, `tdbg core`, `tdbg attach`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torchbench_dbg.cli import options
from torchbench_dbg.cli.app import Panel, app, examples, finish

CRASH_EXAMPLES = examples(
    "tdbg crash -- train.py --epochs 1",
    "tdbg crash -m mypackage.train --lr 0.1",
    "tdbg crash --cuda-sync --timeout 600 -- train.py",
    "tdbg crash --json -- train.py 2> crash.json",
)
AllThreads = Annotated[bool, typer.Option("--all-threads", help="The stacks of all threads.")]
Gdb = Annotated[str | None, typer.Option(metavar="PATH", help="gdb to use for lines and variables.")]


@app.command(
    rich_help_panel=Panel.PROCESSES, epilog=CRASH_EXAMPLES, context_settings={"allow_interspersed_args": False}
)
def crash(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[--] SCRIPT [ARGS]", help="As `python` takes it.", show_default=False)
    ] = None,
    module: Annotated[str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as python -m.")] = None,
    python: Annotated[str | None, typer.Option(metavar="PATH", help="Interpreter or environment.")] = None,
    cuda_sync: Annotated[
        bool, typer.Option("--cuda-sync", help="CUDA_LAUNCH_BLOCKING=1: errors show where they are made.")
    ] = False,
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="Then show where it stands, end it.")] = None,
    all_threads: AllThreads = False,
    gdb: Gdb = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole record as JSON, on stderr.")] = False,
    output: options.Output = None,
    save: options.Save = True,
) -> None:
    """Run a script as it is; should it crash, print the stack, the cause and the fix.

    A script that ends well says nothing, and runs at full speed. Its input and output are its own.
    """

    def command() -> int:
        from torchbench_dbg.commands import crash as command_module

        script, *arguments = ([module] if module else []) + (words or []) or [""]
        wanted = command_module.CrashOptions(
            script=script,
            arguments=tuple(arguments),
            is_module=module is not None,
            python=python,
            gdb=gdb,
            timeout=timeout,
            cuda_sync=cuda_sync,
            all_threads=all_threads,
            json=as_json,
            output=output,
            save=save,
        )
        return command_module.run(wanted)

    finish(command)


@app.command(
    rich_help_panel=Panel.PROCESSES,
    epilog=examples("tdbg core core.4242", "tdbg core core.4242 --all-threads", "tdbg core core --json -o why.json"),
)
def core(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A core file.", show_default=False)],
    executable: Annotated[
        Path | None,
        typer.Option("--executable", "--python", metavar="PATH", help="The program, if it is elsewhere by now."),
    ] = None,
    all_threads: AllThreads = False,
    as_json: options.Json = False,
    output: options.Output = None,
    save: options.Save = True,
) -> None:
    """Say why a process died, from its core file: the stack in Python and C++, the cause, the fix."""

    def command() -> int:
        from torchbench_dbg.commands import core as command_module

        wanted = command_module.CoreOptions(
            file=file,
            executable=executable,
            all_threads=all_threads,
            json=as_json,
            output=output,
            save=save,
        )
        return command_module.run(wanted)

    finish(command)


@app.command(
    rich_help_panel=Panel.PROCESSES,
    epilog=examples("tdbg attach 4242", "tdbg attach train.py --thread 4250", "tdbg attach 4242 --json -o hang.json"),
)
def attach(
    name: Annotated[
        str, typer.Argument(metavar="PID|NAME", help="A process, or a word of its command.", show_default=False)
    ],
    thread: Annotated[int | None, typer.Option(metavar="TID", help="Only this thread.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="The interpreter's own frames too.")] = False,
    as_json: options.Json = False,
    output: options.Output = None,
    save: options.Save = True,
) -> None:
    """Show the stacks of a running process, Python and C++ in one. It stands still for some milliseconds."""

    def command() -> int:
        from torchbench_dbg.commands import attach as command_module

        wanted = command_module.AttachOptions(
            process=name, thread=thread, everything=everything, json=as_json, output=output, save=save
        )
        return command_module.run(wanted)

    finish(command)
