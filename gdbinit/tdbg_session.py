"""Runs inside gdb (12 to 18) that shares a process with pdb: `tdbg debug` and recipes.

The environment variable TDBG_SESSION holds {"token", "control"}: torchbench_dbg/debugger/marks.py says what the token
is for; on the descriptor `control` come gdb commands, a line each, that are executed even while the program runs.
No symbols of torch's large libraries are read, which would take seconds: tdbg_unwinder goes up without, names in
backtraces come from the files, and breakpoints are set at addresses that the host knows.
"""

import functools
import json
import os
import re
import signal
import sys
import threading

import gdb
import gdb.frames
import gdb.unwinder
from gdb.FrameDecorator import FrameDecorator

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tdbg_unwinder

MOST_FRAMES = 100  # that are looked at for libraries with debug information
MOST_LIBRARIES = 64
LARGE = r"/lib(torch\w*|c10\w*)\.so"


def mark(text):
    return "\x1b]7774;%s;%s\x07" % (session.token, text)


class Session:
    """What is known of the process at its last stop."""

    def __init__(self, token, control):
        self.token, self.control = token, control
        self.maps = self.process = None
        self.titles = {}  # number of a breakpoint that the host set -> name of the function
        self.exit_code = ""

    def look(self):
        """Bring the mappings up to date, and read the libraries in the stack whose lines and variables gdb can tell."""
        pid = gdb.selected_inferior().pid
        try:
            with open("/proc/%d/maps" % pid, errors="surrogateescape") as file:
                maps = [line for line in file if " r-xp " in line or " rwxp " in line]
            if maps != self.maps:
                self.process, self.maps = tdbg_unwinder.Process(pid, None), maps
                unwinder = tdbg_unwinder.TableUnwinder(self.process)
                gdb.unwinder.register_unwinder(None, unwinder, replace=True)
                gdb.invalidate_cached_frames()
            self.read_libraries()
        except (OSError, gdb.error, gdb.MemoryError, RuntimeError, ValueError):
            return  # without, gdb shows what it can

    def read_libraries(self):
        for _ in range(MOST_LIBRARIES):
            frame, image = gdb.newest_frame(), None
            for _ in range(MOST_FRAMES):
                image = self.process.image(frame.pc())
                if image is not None and self.process.must_be_read(image):
                    break
                frame, image = frame.older(), None
                if frame is None:
                    return
            if image is None:
                return
            self.process.read_by_gdb.add(image.path)
            name = gdb.solib_name(frame.pc())
            if name is not None:
                gdb.execute("sharedlibrary ^%s$" % re.escape(name), to_string=True)

    def name(self, pc, inside):
        """The function at an address, by the symbol table of its file; None if that has none."""
        image = self.process.image(pc) if self.process is not None else None
        found = image.function(inside) if image is not None else None
        if not found or not found[1]:
            return None
        return tdbg_unwinder.demangled(found[1])


class NamedFrame(FrameDecorator):
    """A frame of a library that gdb has not read."""

    def function(self):
        frame = self.inferior_frame()
        if frame.name() is not None:
            return super().function()
        pc = frame.pc()
        return session.name(pc, pc if frame.level() == 0 else pc - 1) or super().function()


class NameFilter:
    """`backtrace` with the names of all functions."""

    name, priority, enabled = "tdbg-names", 10, True

    def __init__(self):
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        return map(NamedFrame, frames)


class Do(gdb.Command):
    """Execute a command for the host: what it prints comes behind a mark."""

    def __init__(self):
        super().__init__("tdbg-do", gdb.COMMAND_OBSCURE)

    def invoke(self, argument, _from_tty):
        gdb.write(mark("run"))
        gdb.flush()
        try:
            gdb.execute(argument, from_tty=True)
        except gdb.error as error:
            gdb.write("%s\n" % error)
        gdb.flush()


class Place(gdb.Command):
    """Set breakpoints at addresses, in place of those that were set so before. The argument is JSON."""

    def __init__(self):
        super().__init__("tdbg-place", gdb.COMMAND_OBSCURE)

    def invoke(self, argument, _from_tty):
        for each in gdb.breakpoints():
            if each.number in session.titles:
                each.delete()
        session.titles = {}
        for place in json.loads(argument):
            gdb.execute("break *%#x" % place["address"], to_string=True)
            created = gdb.breakpoints()[-1]
            created.silent = True  # gdb would show it as `?? ()`; on_stop shows it by its name
            session.titles[created.number] = place["name"]


def on_stop(event):
    session.look()
    for each in getattr(event, "breakpoints", ()):
        if each.number in session.titles:
            gdb.write("\nBreakpoint %d, %s\n" % (each.number, session.titles[each.number]))
            gdb.flush()


def on_exit(event):
    session.exit_code = getattr(event, "exit_code", "")


def prompt(_current):
    """The prompt behind its mark, which readline is told not to count."""
    return "\001" + mark("prompt %d %s" % (gdb.selected_inferior().pid, session.exit_code)) + "\002(gdb) "


def listen():
    """Execute what the host sends, in gdb's own thread."""
    with os.fdopen(session.control) as lines:
        for line in lines:
            gdb.post_event(functools.partial(gdb.execute, line.strip(), False, True))


def main():
    kept = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for gdb's own thread
    threading.Thread(target=listen, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_SETMASK, kept)
    NameFilter()
    Do()
    Place()
    gdb.events.stop.connect(on_stop)
    gdb.events.exited.connect(on_exit)
    for command in ("break", "tbreak", "tdbg-break"):
        gdb.execute("define hook-%s\npython tdbg_session_symbols()\nend" % command)
    for command in ("detach", "quit"):
        gdb.execute("define hook-%s\npython tdbg_session_leave()\nend" % command)
    if gdb.selected_inferior().pid:
        session.look()
    gdb.prompt_hook = prompt


def tdbg_session_leave():
    """Tell the host before the program goes on, and reaches its next prompt."""
    gdb.write(mark("leave"))
    gdb.flush()


def tdbg_session_symbols():
    """Have gdb read torch's symbols, once: a breakpoint by name needs them."""
    mappings = session.process.mappings if session.process is not None else ()
    mapped = {mapping.path for mapping in mappings if re.search(LARGE, mapping.path)}
    if mapped - {each.filename for each in gdb.objfiles()}:
        gdb.write("reading the symbols of torch, once …\n")
        gdb.flush()
        gdb.execute("sharedlibrary " + LARGE, to_string=True)


request = json.loads(os.environ["TDBG_SESSION"])
session = Session(request["token"], request["control"])
main()
