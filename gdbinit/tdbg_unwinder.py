"""gdb's side of the unwinding by tables: what is mapped where, which libraries gdb has to read, and the unwinder."""

from __future__ import annotations

import bisect
import contextlib
import struct

import gdb
import gdb.unwinder
import tdbg_call_frames
import tdbg_images
import tdbg_prologue
from tdbg_unwind_tables import Unreadable, Unsupported, UnwindTables

SMALL_SYMBOL_TABLE = 1 << 19  # bytes, 24 for each; gdb reads that many in a few hundredths of a second


def read_memory(address, length):
    """Bytes of the process. Unreadable where there are none."""
    try:
        return bytes(gdb.selected_inferior().read_memory(address, length))
    except (gdb.MemoryError, gdb.error, OverflowError) as error:
        raise Unreadable(str(error)) from None


def demangled(name):
    """A C++ name as people write it, by gdb's own demangler; what is none stays."""
    if not name.startswith("_Z"):
        return name
    try:
        return gdb.execute("demangle -l c++ -- " + name, to_string=True).strip()
    except gdb.error:
        return name


class Image:
    """One file that is mapped into the process."""

    def __init__(self, path, base):
        self.path, self.base = path, base
        self.headers = self.tables = self.sections = None
        self._symbols = None
        self._functions = {}
        with contextlib.suppress(Unsupported, struct.error):
            self.headers = tdbg_images.read_headers(read_memory, base)
            if self.headers is not None and self.headers.eh_frame_header is not None:
                self.tables = UnwindTables(read_memory, self.headers.eh_frame_header)
        with contextlib.suppress(OSError, ValueError, struct.error, IndexError):  # deleted or damaged: no names
            self.sections = tdbg_images.read_sections(path)

    def function(self, pc):
        """(start, mangled name or None) of the function that contains an address, None if that is unknown."""
        if pc not in self._functions:
            self._functions[pc] = self._find_function(pc) if self.headers is not None else None
        return self._functions[pc]

    def _find_function(self, pc):
        if self._symbols is None:
            self._symbols = tdbg_images.Symbols(self.path)
        table = self.find_table(pc)
        if table is not None:
            name = self._symbols.at(table.begin - self.headers.bias)
            if name is not None:
                return table.begin, name
        found = self._symbols.before(pc - self.headers.bias)
        if found is not None:
            return found[0] + self.headers.bias, found[1]
        return (table.begin, None) if table is not None else None

    def find_table(self, pc):
        try:
            return self.tables.find(pc) if self.tables is not None else None
        except (Unsupported, struct.error):
            return None


class Process:
    """The mappings of the process, and the libraries whose symbols gdb has read."""

    def __init__(self, pid, wanted):
        """`wanted`: paths of the libraries whose debug information is to be read, None for all in the stack."""
        with open("/proc/%d/maps" % pid, errors="surrogateescape") as lines:
            self.mappings = tdbg_images.parse_mappings(lines)
        self.starts = [mapping.start for mapping in self.mappings]
        self.wanted = wanted
        self.read_by_gdb = {gdb.current_progspace().filename}
        self._images = {}

    def mapping(self, address):
        """What is mapped at an address, or None."""
        place = bisect.bisect_right(self.starts, address) - 1
        return self.mappings[place] if place >= 0 and address < self.mappings[place].end else None

    def is_code(self, address):
        mapping = self.mapping(address)
        return mapping is not None and mapping.executable

    def image(self, address):
        """The file that is mapped at an address; None in anonymous memory and in the kernel's pages."""
        mapping = self.mapping(address)
        if mapping is None or not mapping.path.startswith("/"):
            return None
        if mapping.path not in self._images:
            base = next(each.start for each in self.mappings if each.path == mapping.path)
            self._images[mapping.path] = Image(mapping.path, base)
        return self._images[mapping.path]

    def must_be_read(self, image):
        """Whether gdb has to read this library: for its lines and variables, or because it is no trouble."""
        if image.path in self.read_by_gdb:
            return False
        if image.sections is None or image.tables is None or machine() is None:
            return True
        if image.sections.debug_information_bytes:
            return self.wanted is None or image.path in self.wanted
        return image.sections.symbol_bytes <= SMALL_SYMBOL_TABLE


def machine():
    return tdbg_call_frames.MACHINES.get(gdb.selected_inferior().architecture().name())


class FrameId:
    """What gdb tells frames apart by."""

    def __init__(self, frame_address, function):
        self.sp, self.pc = gdb.Value(frame_address), gdb.Value(function)


class TableUnwinder(gdb.unwinder.Unwinder):
    """Unwinds the frames of libraries that gdb has not read, and of functions without unwind tables."""

    def __init__(self, process):
        super().__init__("tdbg")
        self.process = process
        self.interrupted = set()  # levels of the frames that a signal interrupted

    def __call__(self, pending):
        processor = machine()
        if processor is None:
            return None
        try:
            registers = read_registers(pending, processor)
            caller = self.caller(registers, pending.level(), processor)
        except (Unsupported, KeyError, struct.error, gdb.error, RuntimeError, OverflowError):
            return None
        if caller is None:
            return None
        unwound = pending.create_unwind_info(FrameId(caller.frame_address, caller.function))
        for number, value in caller.registers.items():
            unwound.add_saved_register(processor.names[number], gdb.Value(value))
        return unwound

    def caller(self, registers, level, processor):
        """The caller of a frame with those registers; None leaves the frame to gdb."""
        if level == 0:
            self.interrupted = {0}
        pc = registers[processor.return_address]
        if not self.process.is_code(pc):
            # A call through a wild pointer: its return address was just pushed.
            return self.believable(tdbg_prologue.caller_by_prologue(pc, pc, registers, read_memory))
        inside = pc if level in self.interrupted else pc - 1  # a call may be a function's last instruction
        image = self.process.image(pc)
        if image is None:
            mapping = self.process.mapping(pc)
            return None if mapping.path else self.search(pc, registers)  # gdb knows the kernel's pages
        table = image.find_table(inside) or image.find_table(pc)  # trampolines begin where handlers return to
        if table is None:
            return self.without_table(image, pc, inside, registers)
        if table.of_signal:
            self.interrupted.add(level + 1)
        if image.path in self.process.read_by_gdb:
            return None
        return tdbg_call_frames.caller(table, inside, registers, read_memory, processor)

    def believable(self, caller):
        """The caller if it returns behind a call instruction, else None."""
        back = caller.registers[tdbg_prologue.RIP]
        return caller if self.process.is_code(back) and tdbg_prologue.follows_call(read_memory(back - 7, 7)) else None

    def without_table(self, image, pc, inside, registers):
        found = image.function(inside)
        if found is not None:
            caller = self.believable(tdbg_prologue.caller_by_prologue(found[0], pc, registers, read_memory))
            if caller is not None:
                return caller
        return self.search(pc, registers)

    def search(self, pc, registers):
        here = self.process.mapping(pc)

        def is_near(target):
            there = self.process.mapping(target)
            return there is not None and (there is here or (there.path == here.path and there.path != ""))

        return tdbg_prologue.caller_by_search(pc, registers, read_memory, self.process.is_code, is_near)


def read_registers(pending, processor):
    """The registers of a frame by their DWARF numbers; those that are not known are left out."""
    registers = {}
    for number, name in processor.names.items():
        try:
            registers[number] = int(pending.read_register(name)) & (1 << 64) - 1
        except (gdb.error, ValueError):
            continue
    return registers
