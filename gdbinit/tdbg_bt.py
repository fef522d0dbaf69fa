"""tdbg-bt: the backtrace of Python and C++ in one, from memory alone; libpython needs no debug information."""

import re
import struct

import gdb
import gdb.unwinder
import tdbg_torch
import tdbg_unwinder
from tdbg_python_stacks import PythonStacks
from tdbg_unwind_tables import Unreadable

MOST_FRAMES = 400
LONGEST_NAME = 100
_PYTHON_FILE = re.compile(r"/(?:lib)?python(\d)\.(\d+)[a-z]*(?:\.so[.\d]*)?$")
_LOOP = re.compile(r"_PyEval_EvalFrameDefault\b|PyEval_EvalFrameDefault\b")
_ARGUMENTS = re.compile(r"\((?!anonymous)[^()]*(?:\([^()]*\)[^()]*)*\)(?: const)?$")
_BEFORE_MAIN = ("main", "_start", "__libc_start_main", "__libc_start_call_main", "clone", "clone3", "start_thread")


class BacktraceCommand(gdb.Command):
    """Show the backtrace of Python and C++, merged, the most recent call first.

    Usage: tdbg-bt [all] [-interpreter]

    `all` shows every thread. The interpreter's own functions are left out;
    -interpreter shows them too. Nothing is called in the process.

        tdbg-bt
        tdbg-bt all
    """

    def __init__(self):
        super().__init__("tdbg-bt", gdb.COMMAND_STACK)

    def invoke(self, argument, _from_tty):
        words = argument.split()
        if unknown := [word for word in words if word not in ("all", "-interpreter")]:
            raise gdb.GdbError("tdbg-bt does not know %s: help tdbg-bt" % unknown[0])
        selected = gdb.selected_thread()
        if selected is None:
            raise gdb.GdbError("no process: run it, or attach to one")
        python, process = find_python(), go_up_by_tables()
        threads = gdb.selected_inferior().threads() if "all" in words else [selected]
        frame = gdb.selected_frame()
        try:
            for thread in sorted(threads, key=lambda thread: thread.num):
                thread.switch()
                if len(threads) > 1:
                    gdb.write(
                        "thread %d  %s (%d)\n" % (thread.num, thread.name or "", thread.ptid[1] or thread.ptid[0])
                    )
                for line in lines(python, process, everything="-interpreter" in words):
                    gdb.write(line + "\n")
        finally:
            selected.switch()
            frame.select()


def find_python():
    """The reader of the process's Python frames, or None with a line that says why."""
    for path in files():
        found = _PYTHON_FILE.search(path)
        if found is None:
            continue
        version = int(found[1]), int(found[2])
        try:
            gdb.execute("sharedlibrary %s$" % re.escape(path), to_string=True)
            runtime = int(gdb.parse_and_eval("(unsigned long)&_PyRuntime"))
            return PythonStacks(read, runtime, version)
        except (gdb.error, LookupError, Unreadable) as error:
            gdb.write("Python frames are not shown: %s (Python %d.%d)\n" % (error, *version))
            return None
    return None


def files():
    """What is loaded, libraries of Python first."""
    paths = {each.filename for each in gdb.objfiles() if each.filename}
    try:
        with open("/proc/%d/maps" % gdb.selected_inferior().pid, errors="surrogateescape") as maps:
            paths.update(line.rstrip("\n").split(None, 5)[-1] for line in maps if " r-xp " in line)
    except OSError:
        pass  # a core file
    return sorted(paths, key=lambda path: "/lib" not in path[path.rfind("/") :])


def read(address, length):
    try:
        return tdbg_torch.read_memory(address, length)
    except (gdb.error, gdb.MemoryError, OverflowError, ValueError):
        raise Unreadable("%#x" % address) from None


def go_up_by_tables():
    """Have gdb unwind the libraries that it has not read by their tables; None for a core file."""
    try:
        process = tdbg_unwinder.Process(gdb.selected_inferior().pid, None)
    except OSError:
        return None
    gdb.unwinder.register_unwinder(None, tdbg_unwinder.TableUnwinder(process), replace=True)
    gdb.invalidate_cached_frames()
    return process


def name_of(frame, process):
    """The function of a frame: gdb's name, else that of the file's symbol table."""
    name, pc = frame.name(), frame.pc()
    if name is None and process is not None and (image := process.image(pc)) is not None:
        found = image.function(pc if frame.level() == 0 else pc - 1)
        name = tdbg_unwinder.demangled(found[1]) if found is not None and found[1] else None
    return name or ""


def lines(python, process, everything):
    """The selected thread's frames, innermost first, each call of the evaluation loop as the Python frames it runs."""
    groups = []
    if python is not None:
        try:
            groups = python.of_thread(int(gdb.parse_and_eval("$fs_base")))
        except (gdb.error, Unreadable, struct.error):
            gdb.write("the Python frames of this thread can't be read\n")
    number, inner = 0, True
    frame = gdb.newest_frame()
    for _ in range(MOST_FRAMES):
        if frame is None:
            break
        name = name_of(frame, process)
        library = gdb.solib_name(frame.pc()) or ""
        interpreter = _PYTHON_FILE.search(library) or (not library and name.startswith(("_Py", "Py")))
        if _LOOP.match(name) and groups:
            inner = False
            for each in groups.pop(0):
                yield "#%-3d py  %s  %s:%s" % (number, each.function, each.file, each.line)
                number += 1
        elif (everything or not interpreter or inner) and (everything or name not in _BEFORE_MAIN):
            yield "#%-3d c++ %s" % (number, native_text(frame, name, library))
            number += 1
        try:
            frame = frame.older()
        except gdb.error:
            yield "     the native stack can't be followed further"
            break
    for group in groups:
        for each in group:
            yield "#%-3d py  %s  %s:%s" % (number, each.function, each.file, each.line)
            number += 1


def native_text(frame, name, library):
    """A C++ frame in one line: the name without its arguments, and where it is."""
    place = frame.find_sal()
    where = "%s:%d" % (place.symtab.filename, place.line) if place.symtab is not None else library.rpartition("/")[2]
    return "%s  %s" % ((_ARGUMENTS.sub("", name) or "%#x" % frame.pc())[:LONGEST_NAME], where)


def register():
    BacktraceCommand()
