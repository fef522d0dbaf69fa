"""`source .../gdbinit/tdbg.py` in gdb 12 or newer: commands and printers for PyTorch.

The folder can be copied anywhere; it needs nothing but gdb.
"""

import os
import sys

import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tdbg_break
import tdbg_bt
import tdbg_commands
import tdbg_printers


class Prefix(gdb.Command):
    """Commands for PyTorch. They read memory and call nothing in the process.

    tdbg-break NAME      stop at an operator, a binding, a kernel or a node
    tdbg-bt              backtrace of Python and C++, merged
    tdbg-tensor EXPR     a tensor: shape, dtype, autograd, storage, first elements
    tdbg-keys EXPR       a dispatch key set in names, and the key that wins
    tdbg-graph EXPR      the graph that backward would walk

    `help NAME` has examples of each. Tensors, storages, array references and
    the like are printed as text by `print`, `info locals` and `backtrace`.
    `print /r` shows one raw, `disable pretty-printer global tdbg` all.
    """

    def __init__(self):
        super().__init__("tdbg", gdb.COMMAND_USER)

    def invoke(self, _argument, _from_tty):
        gdb.execute("help tdbg")


Prefix()
tdbg_printers.register()
tdbg_commands.register()
tdbg_break.register()
tdbg_bt.register()
