"""The command line: declarations only, a module for each family. What a command does is in commands/<name>.py."""

from torchbench_dbg.cli import builds as builds
from torchbench_dbg.cli import traces as traces
from torchbench_dbg.cli.app import app as app
