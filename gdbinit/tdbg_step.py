"""Runs a function that was just entered to its first own line: before that, its arguments are not in their places.

gdb's own stepping writes breakpoints of its own into ld.so, libc and libstdc++ for as long as the process runs. They
would stay behind, should gdb be killed now. So the steps are made here, behind gdb's back: no byte is written.
"""

import ctypes
import os
import signal

import gdb

MOST_STEPS = 400  # instructions of a prologue
PTRACE_SINGLESTEP = 9  # <sys/ptrace.h>
WAIT_FOR_THREADS = 0x40000000  # __WALL


def leave_prologue():
    """Step the selected thread to its function's first own line, if it stands at the function's entry."""
    place = end_of_prologue()
    if place is None:
        return
    begin, end, wanted = place
    tid = gdb.selected_thread().ptid[1]
    ptrace = ctypes.CDLL(None).ptrace
    ptrace.argtypes = [ctypes.c_long] * 4
    try:
        for _ in range(MOST_STEPS):
            if ptrace(PTRACE_SINGLESTEP, tid, 0, 0) != 0 or not waits_after_step(tid):
                return
            forget_what_was_read()
            pc = gdb.newest_frame().pc()
            if pc == wanted or not begin <= pc < end:
                return
    finally:
        forget_what_was_read()
        os.kill(gdb.selected_inferior().pid, signal.SIGSTOP)  # still to be found stopped after the detach


def forget_what_was_read():
    """Memory first: gdb reads the stack as soon as it has forgotten its frames."""
    gdb.execute("maint flush dcache", to_string=True)
    gdb.execute("maint flush register-cache", to_string=True)


def waits_after_step(tid):
    """Wait for the end of a step. False if something else came between, as a fault or the end of the process."""
    _, status = os.waitpid(tid, WAIT_FOR_THREADS)
    # The process was stopped by SIGSTOP before gdb came: that is still to be delivered, and not in the way.
    return os.WIFSTOPPED(status) and os.WSTOPSIG(status) in (signal.SIGTRAP, signal.SIGSTOP)


def end_of_prologue():
    """(begin, end, address of the second line) of the function at whose entry the thread stands, else None."""
    frame = gdb.newest_frame()
    function = frame.function()
    sal = frame.find_sal()
    if function is None or sal.symtab is None or frame.pc() != int(function.value().address):
        return None
    begin, end = frame.pc(), frame.block().end
    places = sorted({entry.pc for entry in sal.symtab.linetable() if begin < entry.pc <= end})
    return (begin, end, places[0]) if places else None
