"""The command line: declarations only, a module for each family. What a command does is in commands/<name>.py."""

# ruff: noqa: I001 - the order of the groups in `tdbg --help`
from torchbench_dbg.cli.app import app as app
from torchbench_dbg.cli import traces as traces
from torchbench_dbg.cli import shell as shell
from torchbench_dbg.cli import sessions as sessions
from torchbench_dbg.cli import gdb as gdb
from torchbench_dbg.cli import processes as processes
from torchbench_dbg.cli import builds as builds
