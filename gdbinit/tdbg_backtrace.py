"""Runs inside gdb (12 to 18), attached to a stopped process: walks a thread's stack and writes it as one JSON line.

The environment variable TDBG_BACKTRACE holds the request: {"descriptor", "thread", "limit", "variables",
"past_prologue", "tensor_layout"}. Symbols are read only of the libraries that stand in the
stack, as libtorch_cpu alone has hundreds of thousands. Without a library's own unwind tables gdb could not go up
from it.
"""

import json
import os
import re
import signal
import sys

import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tdbg_values

MOST_LIBRARIES = 64  # symbol reads before the walk gives up


def select_thread(wanted):
    """Make the thread with that kernel id the selected one; False if there is none."""
    for thread in gdb.selected_inferior().threads():
        if thread.ptid[1] == wanted or (thread.ptid[1] == 0 and thread.ptid[0] == wanted):
            thread.switch()
            return True
    return False


def load_symbols_of_stack(limit):
    """Read the symbols of every library in the selected thread's stack, from the innermost frame outwards."""
    loaded = set()
    for _ in range(MOST_LIBRARIES):
        library = first_unread_library(limit, loaded)
        if library is None:
            return
        loaded.add(library)
        gdb.execute("sharedlibrary ^%s$" % re.escape(library), to_string=True)


def first_unread_library(limit, loaded):
    frame = gdb.newest_frame()
    for _ in range(limit):
        if frame is None:
            return None
        library = gdb.solib_name(frame.pc())
        if library is not None and library not in loaded:
            return library
        frame = older(frame)
    return None


def older(frame):
    """The calling frame; None at the end of the stack and where it can't be unwound."""
    try:
        return frame.older()
    except gdb.error:
        return None


def leave_prologue():
    """Run the selected thread to its function's first own line: before that, arguments are not in their places."""
    frame = gdb.newest_frame()
    function = frame.function()
    sal = frame.find_sal()
    if function is None or sal.symtab is None or frame.pc() != int(function.value().address):
        return
    begin = frame.pc()
    end = frame.block().end
    places = sorted({entry.pc for entry in sal.symtab.linetable() if begin < entry.pc <= end})
    if places:
        gdb.execute("set scheduler-locking on", to_string=True)
        # The process was stopped by SIGSTOP before gdb came; that must not end the short run.
        gdb.execute("handle SIGSTOP nostop noprint nopass", to_string=True)
        gdb.execute("tbreak *%d" % places[0], to_string=True)
        gdb.execute("continue", to_string=True)
        os.kill(gdb.selected_inferior().pid, signal.SIGSTOP)  # still to be found stopped after the detach


def frames(limit, want_variables):
    frame = gdb.newest_frame()
    for level in range(limit):
        if frame is None:
            return
        yield describe(frame, level, want_variables)
        frame = older(frame)


def describe(frame, level, want_variables):
    pc = frame.pc()
    function = frame.function()
    sal = frame.find_sal()
    library = gdb.solib_name(pc)
    record = {
        "level": level,
        "pc": pc,
        "function": function.print_name if function is not None else frame.name(),
        "library": library or executable(),
        "file": sal.symtab.fullname() if sal.symtab is not None else None,
        "line": sal.line if sal.symtab is not None else None,
        "inline": frame.type() == gdb.INLINE_FRAME,
        "arguments": [],
        "locals": [],
    }
    if want_variables and function is not None:
        record["arguments"], record["locals"] = tdbg_values.variables(frame)
    return record


def executable():
    return gdb.current_progspace().filename


def main():
    request = json.loads(os.environ["TDBG_BACKTRACE"])
    tdbg_values.use_layout(request["tensor_layout"])
    answer = {"gdb": gdb.VERSION, "frames": [], "error": None}
    try:
        if not select_thread(request["thread"]):
            answer["error"] = "thread %d is not there" % request["thread"]
        else:
            load_symbols_of_stack(request["limit"])
            if request["past_prologue"]:
                leave_prologue()
            answer["frames"] = list(frames(request["limit"], request["variables"]))
    except (gdb.error, gdb.MemoryError, RuntimeError, ValueError) as error:
        answer["error"] = str(error)
    with os.fdopen(request["descriptor"], "w") as channel:
        channel.write(json.dumps(answer) + "\n")


main()
