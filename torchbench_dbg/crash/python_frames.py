"""Python frames out of a process's memory: the reader is gdbinit/tdbg_python_stacks.py, which gdb uses as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchbench_dbg.paths import import_from_gdbinit

if TYPE_CHECKING:
    from tdbg_python_stacks import PythonFrame as PythonFrame
    from tdbg_python_stacks import PythonStacks as PythonStacks
else:
    _reader = import_from_gdbinit("tdbg_python_stacks")
    PythonFrame, PythonStacks = _reader.PythonFrame, _reader.PythonStacks
