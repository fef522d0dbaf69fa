"""The modules that run inside gdb are imported as gdb does: by their directory."""

from __future__ import annotations

import sys

from torchbench_dbg.paths import gdbinit_directory

sys.path.insert(0, str(gdbinit_directory()))
