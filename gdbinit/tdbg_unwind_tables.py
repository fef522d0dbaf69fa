"""Reads the unwind tables (.eh_frame) of a library, as they lie in the process's memory.

gdb can do this too, but only after it has read all of the library's symbols: 2 to 4 s and 600 MB for
libtorch_cpu, more for libtorch_cuda. The table that C++ exceptions use (.eh_frame_hdr) is sorted, so one function is
found in twenty reads. Nothing here imports gdb: memory comes through a function `read(address, length) -> bytes`.

Source: Linux Standard Base core 5.0, 10.6 (.eh_frame, .eh_frame_hdr).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

Read = Callable[[int, int], bytes]
MOST_INSTRUCTION_BYTES = 1 << 16  # of one function's table
MASK = (1 << 64) - 1


class Unsupported(Exception):
    """The table is of a form that compilers for Linux do not write, or damaged."""


class Unreadable(Unsupported):
    """Memory that `read` was asked for is not there."""


class Reader:
    """Reads numbers one after the other out of bytes that lie at `address`."""

    def __init__(self, data: bytes, address: int) -> None:
        self.data, self.address, self.at = data, address, 0

    def more(self) -> bool:
        return self.at < len(self.data)

    def take(self, length: int) -> bytes:
        piece = self.data[self.at : self.at + length]
        if len(piece) < length:
            raise Unsupported("cut off")
        self.at += length
        return piece

    def number(self, form: str) -> int:
        """One number in a form of the struct module, little endian."""
        value: int = struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]
        return value

    def uleb(self) -> int:
        value, shift = 0, 0
        while shift < 70:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value
        raise Unsupported("a number without end")

    def sleb(self) -> int:
        start = self.at
        value = self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def pointer(self, encoding: int) -> int:
        """A pointer encoded as DW_EH_PE_* says: absolute or relative to its own place."""
        if encoding == 0xFF:
            return 0
        form = {0x00: "Q", 0x02: "H", 0x03: "I", 0x04: "Q", 0x0A: "h", 0x0B: "i", 0x0C: "q"}.get(encoding & 0x0F)
        if form is None or encoding & 0x70 not in (0x00, 0x10):
            raise Unsupported("pointer encoding %#x" % encoding)
        origin = self.address + self.at if encoding & 0x70 == 0x10 else 0
        return (self.number(form) + origin) & MASK


class Function(NamedTuple):
    """The table of one function (an FDE and its CIE)."""

    begin: int
    end: int
    code_factor: int
    data_factor: int
    return_address: int
    of_signal: bool  # the return trampoline of a signal handler
    initial: bytes
    instructions: bytes


class UnwindTables:
    """The tables of one library, found through its .eh_frame_hdr at `header` (an address in the process)."""

    def __init__(self, read: Read, header: int) -> None:
        self.read, self.header = read, header
        version, of_pointer, of_count, of_table = read(header, 4)
        if (version, of_count, of_table) != (1, 0x03, 0x3B):
            raise Unsupported("search table of another form")
        pointer = Reader(read(header + 4, 12), header + 4)
        pointer.pointer(of_pointer)
        self.count = pointer.number("I")
        self.first = header + 4 + pointer.at

    def find(self, pc: int) -> Function | None:
        """The table of the function that contains `pc`; None if there is none (hand-written assembly)."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self._entry(middle)[0] <= pc:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return None
        function = self._function(self._entry(low - 1)[1])
        return function if function.begin <= pc < function.end else None

    def _entry(self, index: int) -> tuple[int, int]:
        begin, table = struct.unpack("<ii", self.read(self.first + 8 * index, 8))
        return self.header + begin, self.header + table

    def _record(self, address: int) -> Reader:
        length = struct.unpack("<I", self.read(address, 4))[0]
        if not 4 <= length <= MOST_INSTRUCTION_BYTES:
            raise Unsupported("record of %d bytes" % length)
        return Reader(self.read(address + 4, length), address + 4)

    def _function(self, address: int) -> Function:
        record = self._record(address)
        common = self._record(address + 4 - record.number("I"))
        common.number("I")
        version = common.number("B")
        augmentation = b""
        while (letter := common.take(1)) != b"\0":
            augmentation += letter
        if version not in (1, 3) or not (augmentation == b"" or augmentation.startswith(b"z")):
            raise Unsupported("version %d, augmentation %r" % (version, augmentation))
        code_factor, data_factor = common.uleb(), common.sleb()
        return_address = common.number("B") if version == 1 else common.uleb()
        encoding = _pointer_encoding(common, augmentation) if augmentation else 0
        begin = record.pointer(encoding)
        length = record.pointer(encoding & 0x0F)
        if augmentation:
            record.take(record.uleb())
        return Function(
            begin, begin + length, code_factor, data_factor, return_address, b"S" in augmentation,
            common.data[common.at :], record.data[record.at :],
        )  # fmt: skip


def _pointer_encoding(common: Reader, augmentation: bytes) -> int:
    """Read a CIE's augmentation data, of which only the encoding of code addresses is needed here."""
    encoding, length = 0, common.uleb()
    end = common.at + length
    for letter in augmentation[1:].decode("latin-1"):
        if letter == "R":
            encoding = common.number("B")
        elif letter == "L":
            common.number("B")
        elif letter == "P":
            common.pointer(common.number("B") & 0x7F)
        elif letter != "S":
            raise Unsupported("augmentation %r" % augmentation)
    common.at = end
    return encoding
