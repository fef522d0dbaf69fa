"""`python -m torchbench_dbg`, and the console script `tdbg`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from torchbench_dbg import __version__

        print(f"tdbg {__version__}")
        return
    from torchbench_dbg.cli import app

    app()


if __name__ == "__main__":
    main()
