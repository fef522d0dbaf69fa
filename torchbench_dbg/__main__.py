"""`python -m torchbench_dbg`, and the console script `tdbg`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line."""
    _open_standard_streams()
    if sys.argv[1:] in (["--version"], ["-V"]):
        from torchbench_dbg import __version__

        print(f"tdbg {__version__}")
        return
    from torchbench_dbg.cli import app

    app()


def _open_standard_streams() -> None:
    """A closed stdin, stdout or stderr would give its number to the next file that is opened."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)


if __name__ == "__main__":
    main()
