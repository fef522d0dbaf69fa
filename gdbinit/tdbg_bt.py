"""tdbg-bt: the backtrace of Python and C++, merged, by reading memory; no debug information of Python is needed."""

import contextlib
import itertools
import linecache
import os

import gdb
import gdb.unwinder
import tdbg_merging
import tdbg_unwinder
from tdbg_break import qualified
from tdbg_merging import version_in_name
from tdbg_python_stacks import PythonFrame, PythonStacks
from tdbg_unwind_tables import Unreadable

MOST_FRAMES = 200
MASK = (1 << 64) - 1
NARROWEST = 40


class MergedBacktrace(gdb.Command):
    """Backtrace of Python and C++, merged; the innermost frame first.

    Usage: tdbg-bt [COUNT] [all] [-interpreter]

    A frame with a number is native: `frame NUMBER` selects it. A frame marked
    `py` is a Python function with the line that it executes. The interpreter's
    own frames between them are left out; -interpreter shows them. COUNT is how
    many native frames are looked at (200). `all` means every thread; those
    with the same stack are shown once. Nothing is called in the process.

        tdbg-bt
        tdbg-bt 20
        tdbg-bt all
    """

    def __init__(self):
        super().__init__("tdbg-bt", gdb.COMMAND_STACK)

    def invoke(self, argument, _from_tty):
        words = argument.split()
        counts = [word for word in words if word.isdigit()]
        if unknown := [word for word in words if word not in ("all", "-interpreter", *counts[:1])]:
            raise gdb.GdbError("tdbg-bt does not know %s: help tdbg-bt" % unknown[0])
        if gdb.selected_thread() is None:
            raise gdb.GdbError("no process: run it, or attach to one")
        try:
            walk = Walk(int(counts[0]) if counts else MOST_FRAMES, everything="-interpreter" in words)
            lines = of_all_threads(walk) if "all" in words else of_thread(walk)
            for line in lines:
                gdb.write(line + "\n")
        except (gdb.error, RuntimeError) as error:
            raise gdb.GdbError(str(error)) from None


class Walk:
    """Reads the stacks of threads."""

    def __init__(self, most, everything):
        self.most, self.everything = most, everything
        self.python, self.note = find_python()
        self.process = go_up_by_tables()

    def stack(self):
        """(merged stack of the selected thread, its native frames)."""
        native = list(itertools.islice(self.native(), self.most + 1))
        groups = self.groups()
        is_cut = len(native) > self.most
        merged = tdbg_merging.merge(native[: self.most], groups, is_cut=is_cut, everything=self.everything)
        note = merged.note
        if is_cut:
            note = "more than %d native frames: the outer ones are left out; tdbg-bt COUNT" % self.most
        if self.python is not None and self.python.left_out:
            note = "the Python stack is deep: %d frames in its middle are left out" % self.python.left_out
        return merged._replace(note=note), native

    def native(self):
        frame, level = gdb.newest_frame(), 0
        while frame is not None:
            yield self.describe(frame, level)
            level += 1
            try:
                frame = frame.older()
            except gdb.error:
                return

    def describe(self, frame, level):
        pc, name, library = frame.pc(), frame.name(), ""
        image = self.process.image(pc) if self.process is not None else None
        if image is not None:
            library = image.path
            if name is None:
                found = image.function(pc if level == 0 else pc - 1)
                name = tdbg_unwinder.demangled(found[1]) if found is not None and found[1] else None
        elif self.process is None:
            library = gdb.solib_name(pc) or (gdb.current_progspace().filename if name is not None else "")
        sal = frame.find_sal()
        place = (sal.symtab.filename, sal.line) if sal.symtab is not None else ("", 0)
        return tdbg_merging.NativeFrame(level, pc, qualified(name) if name else None, library, *place)

    def groups(self):
        if self.python is None:
            return []
        try:
            return self.python.of_thread(int(gdb.parse_and_eval("$fs_base")) & MASK)
        except (gdb.error, ValueError):  # a processor without it
            self.note = "which Python frames are this thread's is known on x86-64 only"
            return []


def go_up_by_tables():
    """What is mapped, for gdb to go up by it from functions without unwind tables, as MKL has; None for a core file."""
    try:
        process = tdbg_unwinder.Process(gdb.selected_inferior().pid, None)
    except (OSError, ValueError):
        return None
    if process.mapping(gdb.newest_frame().pc()) is None:  # another process has the number of the one that left the core
        return None
    gdb.unwinder.register_unwinder(None, tdbg_unwinder.TableUnwinder(process), replace=True)
    gdb.invalidate_cached_frames()
    return process


def find_python():
    """(the reader of Python's frames or None, why there is none)."""
    runtime = variable("_PyRuntime")
    if runtime is None:
        with contextlib.suppress(gdb.error):  # its symbols are not read where auto-solib-add is off
            gdb.execute("sharedlibrary libpython", to_string=True)
        runtime = variable("_PyRuntime")
    if runtime is None:
        return None, "no Python is in this process, or it is older than 3.7: only native frames are shown"
    try:
        version = version_of_python()
        return PythonStacks(tdbg_unwinder.read_memory, runtime, version), ""
    except (LookupError, Unreadable) as error:
        return None, "Python frames are not shown: %s" % error


def variable(name):
    """The address of a variable, by gdb's symbols; None if they have it not."""
    try:
        return int(gdb.parse_and_eval("(unsigned long)&" + name))
    except gdb.error:
        return None


def version_of_python():
    """(major, minor): by its own variable from 3.11 on, else by the name of the file. LookupError."""
    told = variable("Py_Version")
    if told is not None:
        number = int.from_bytes(tdbg_unwinder.read_memory(told, 8), "little")
        return number >> 24 & 0xFF, number >> 16 & 0xFF
    named = [version_in_name(each.filename or "") for each in gdb.objfiles()]
    if not any(named):
        raise LookupError("no file tells the version of Python")
    return next(version for version in named if version)


def of_thread(walk):
    """The lines for the selected thread."""
    merged, native = walk.stack()
    if tdbg_merging.waits_for_gil(native):
        yield "waiting for the GIL"
    yield from stack_lines(merged)
    if walk.note:
        yield "note: " + walk.note


def of_all_threads(walk):
    """The lines for all threads, the selected one first; it is selected again afterwards."""
    selected, frame = gdb.selected_thread(), gdb.selected_frame()
    alike = {}
    try:
        threads = sorted(gdb.selected_inferior().threads(), key=lambda each: (each.num != selected.num, each.num))
        for thread in threads:
            thread.switch()
            merged, native = walk.stack()
            key = tuple(map(tdbg_merging.place, merged.frames)), tdbg_merging.waits_for_gil(native)
            alike.setdefault(key, (merged, []))[1].append(thread)
    finally:
        selected.switch()
        if frame.is_valid():
            frame.select()
    for (_, waits), (merged, same) in alike.items():
        yield title(same) + ("  waiting for the GIL" if waits else "")
        yield from stack_lines(merged)
        yield ""
    if walk.note:
        yield "note: " + walk.note


def title(threads):
    numbers = ", ".join(str(thread.num) for thread in threads)
    names = sorted({thread.name for thread in threads if thread.name})
    if len(threads) == 1:
        return "Thread %s (%d)  %s" % (numbers, threads[0].ptid[1] or threads[0].ptid[0], "".join(names))
    return "%d threads (%s)  %s" % (len(threads), numbers, ", ".join(names))


def stack_lines(merged):
    library = None
    for frame in tdbg_merging.folded(merged.frames):
        if isinstance(frame, str):
            yield "      … " + frame
        elif isinstance(frame, PythonFrame):
            yield from python_lines(frame)
        else:
            yield from native_lines(frame, names_library=frame.library != library)
            library = frame.library
    if merged.note:
        yield "note: " + merged.note


def python_lines(frame):
    where = tdbg_merging.short_path(frame.file) + (":%d" % frame.line if frame.line else "")
    yield from in_one_or_two("py    " + frame.function, where)
    linecache.checkcache(frame.file)
    source = linecache.getline(frame.file, frame.line).strip() if frame.line else ""
    if source:
        yield "          " + source[: width() - 10]


def native_lines(frame, names_library):
    where = "%s:%d" % (tdbg_merging.short_path(frame.file), frame.line) if frame.file else ""
    if not where and names_library:
        where = os.path.basename(frame.library)
    name = frame.function or "%#x" % frame.pc
    yield from in_one_or_two("#%-4d " % frame.level + tdbg_merging.in_width(name, width() - 6), where)


def in_one_or_two(first, second):
    """Two texts in a line, or the second in a line of its own."""
    if not second or len(first) + 2 + len(second) <= width():
        return [first + ("  " + second if second else "")]
    return [first, "          " + second]


def width():
    """Columns of gdb's screen."""
    told = gdb.parameter("width")
    return max(NARROWEST, told) if told else 1 << 16


def register():
    """Add the command to gdb."""
    MergedBacktrace()
