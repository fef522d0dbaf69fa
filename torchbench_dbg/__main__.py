"""`python -m torchbench_dbg`, and the console script `tdbg`."""

from __future__ import annotations

import os
import sys

from torchbench_dbg import __version__, console, streams
from torchbench_dbg.errors import UsageError
from torchbench_dbg.failures import guarded


def main() -> None:
    """Run the command line."""
    streams.prepare()
    sys.exit(guarded(_command_line))


def _command_line() -> int:
    if sys.argv[1:] in (["--version"], ["-V"]):  # without the 0.1 s of importing the command line
        console.print_text(f"tdbg {__version__}")
        return 0
    if len(sys.argv) == 3 and sys.argv[1] == "attach" and sys.argv[2].isdigit():  # somebody's process hangs: at once
        return _attach(sys.argv[2])
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("the current directory no longer exists.", hint="cd to one that does") from error
    from torchbench_dbg.cli import app

    try:
        app()  # ends with SystemExit, always
    finally:
        sys.stdout.flush()  # at Python's own exit it would be too late to say what failed
    return 0


def _attach(process: str) -> int:
    from torchbench_dbg.commands import attach
    from torchbench_dbg.failures import with_settings

    return with_settings(lambda: attach.run(attach.AttachOptions(process=process)))


if __name__ == "__main__":
    main()
