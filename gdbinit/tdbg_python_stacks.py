"""Python frames out of a process's memory: CPython's own structures, no symbols but `_PyRuntime`.

Offsets: CPython's headers (Include/cpython/code.h, Include/internal/pycore_frame.h, pycore_runtime.h) of 3.9 to 3.12;
from 3.13 on `_PyRuntime` begins with a table of them (`_Py_DebugOffsets`). Line tables: Objects/locations.md (3.11),
Objects/lnotab_notes.txt (3.9, 3.10). The memory is somebody else's: every read is capped, every chain bounded.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tdbg_unwind_tables import Unreadable

Read = Callable[[int, int], bytes]
_MOST_INTERPRETERS, _MOST_THREADS, _MOST_FRAMES, _LONGEST_TEXT, _LONGEST_TABLE = 64, 4096, 1 << 20, 4096, 1 << 20
_ENDS = 100  # frames that are kept at each end of a deep stack
_COOKIE = b"xdebugpy"


class PythonFrame(NamedTuple):
    """One frame of a Python function."""

    function: str
    file: str
    line: int | None


class Offsets(NamedTuple):
    """Where fields lie. `frame`: steps from the thread state to the pointer to its innermost frame."""

    head: int  # _PyRuntime.interpreters.head
    threads: int  # PyInterpreterState.threads.head
    next: int  # PyThreadState.next
    thread_id: int  # PyThreadState.thread_id: pthread_self()
    frame: tuple[int, ...]
    code: int
    previous: int
    instruction: int
    owner: int | None  # None: a frame object, which is one call of the evaluation loop
    name: int
    file: int
    first_line: int
    line_table: int
    bytecode: int
    ascii_size: int
    compact_size: int
    is_entry: int | None = None
    next_interpreter: int = 0  # PyInterpreterState.next


_AT = {
    (3, 9): Offsets(
        head=32, threads=8, next=8, thread_id=176, frame=(24,), code=32, previous=24, instruction=104, owner=None,
        name=112, file=104, first_line=40, line_table=120, bytecode=0, ascii_size=48, compact_size=72,
    ),
    (3, 10): Offsets(
        head=32, threads=8, next=8, thread_id=176, frame=(24,), code=32, previous=24, instruction=96, owner=None,
        name=112, file=104, first_line=40, line_table=120, bytecode=0, ascii_size=48, compact_size=72,
    ),
    (3, 11): Offsets(
        head=40, threads=16, next=8, thread_id=152, frame=(56, 8), code=32, previous=48, instruction=56, owner=69,
        name=128, file=112, first_line=72, line_table=136, bytecode=184, ascii_size=48, compact_size=72, is_entry=68,
    ),
    (3, 12): Offsets(
        head=40, threads=72, next=8, thread_id=136, frame=(56, 0), code=0, previous=8, instruction=56, owner=70,
        name=128, file=112, first_line=68, line_table=136, bytecode=192, ascii_size=40, compact_size=56,
    ),
}  # fmt: skip
# Version -> where sections of _Py_DebugOffsets begin, in words behind the cookie: interpreter, thread, frame, code.
_SECTIONS = {(3, 13): (5, 18, 27, 33), (3, 14): (5, 21, 30, 38)}
_OWNED_BY_C = 3  # FRAME_OWNED_BY_CSTACK; from 3.14 on FRAME_OWNED_BY_INTERPRETER, and CSTACK is 4


class PythonStacks:
    """The Python frames of each thread of an interpreter process."""

    def __init__(self, read: Read, runtime: int, version: tuple[int, int]) -> None:
        """`runtime`: address of `_PyRuntime`. LookupError for a version that is not known."""
        self._read, self._runtime, self._version = read, runtime, version
        self.offsets = _AT.get(version) or _described(read, runtime, version)
        self.left_out = 0  # frames in the middle of the last stack, where it was too deep to read them all
        self._codes: dict[int, tuple[str, str, int, bytes]] = {}

    def reads_by(self, read: Read) -> None:
        """Read by another function from now on."""
        self._read = read

    def of_thread(self, pthread: int) -> list[list[PythonFrame]]:
        """The frames of the thread whose pthread_self() that is, innermost first, one list for each call of the
        evaluation loop; [] if it has none.
        """
        self.left_out = 0
        with contextlib.suppress(Unreadable):
            for state in self._thread_states():
                if self._word(state + self.offsets.thread_id) == pthread and (groups := self._groups(state)):
                    return groups  # a thread has a state in each interpreter that it was in
        return []

    def _thread_states(self) -> Iterator[int]:
        offsets = self.offsets
        for interpreter in self._chain(self._runtime + offsets.head, offsets.next_interpreter, _MOST_INTERPRETERS):
            yield from self._chain(interpreter + offsets.threads, offsets.next, _MOST_THREADS)

    def _chain(self, head: int, following: int, most: int) -> Iterator[int]:
        place = self._word(head)
        for _ in range(most):
            if not place:
                return
            yield place
            place = self._word(place + following)

    def _groups(self, state: int) -> list[list[PythonFrame]]:
        places: list[tuple[int, bool]] = []
        with contextlib.suppress(Unreadable):
            places.extend(self._places(state))
        if len(places) > 2 * _ENDS:
            self.left_out = len(places) - 2 * _ENDS
            del places[_ENDS:-_ENDS]
        groups: list[list[PythonFrame]] = [[]]
        with contextlib.suppress(Unreadable, IndexError, struct.error):  # what was read so far is true
            for place, entry in places:
                if place:
                    groups[-1].append(self._frame(place))
                if entry:
                    groups.append([])
        return [group for group in groups if group]

    def _places(self, state: int) -> Iterator[tuple[int, bool]]:
        """(address of a frame or 0, whether the evaluation loop was entered with it), innermost first."""
        offsets = self.offsets
        place = state
        for step in offsets.frame:
            place = self._word(place + step)
        seen: set[int] = set()
        for _ in range(_MOST_FRAMES):
            if not place or place in seen:
                return
            seen.add(place)
            if offsets.owner is None:
                yield place, True
            elif offsets.is_entry is not None:
                yield place, bool(self._read(place + offsets.is_entry, 1)[0])
            elif self._read(place + offsets.owner, 1)[0] >= _OWNED_BY_C:
                yield 0, True
            else:
                yield place, False
            place = self._word(place + offsets.previous)

    def _frame(self, place: int) -> PythonFrame:
        offsets = self.offsets
        code = self._word(place + offsets.code) & ~3  # 3.14 marks references in the low bits
        if code not in self._codes:
            self._codes[code] = (
                self._text(self._word(code + offsets.name)),
                self._text(self._word(code + offsets.file)),
                struct.unpack("<i", self._read(code + offsets.first_line, 4))[0],
                self._bytes(self._word(code + offsets.line_table)),
            )
        name, file, first, table = self._codes[code]
        if offsets.owner is None:
            (at,) = struct.unpack("<i", self._read(place + offsets.instruction, 4))
            line = line_of_lnotab(table, first, at) if self._version == (3, 9) else line_of_ranges(table, first, 2 * at)
        else:
            line = line_of_locations(table, first, self._word(place + offsets.instruction) - code - offsets.bytecode)
        return PythonFrame(function=name, file=file, line=line)

    def _word(self, address: int) -> int:
        return int.from_bytes(self._read(address, 8), "little")

    def _bytes(self, place: int) -> bytes:
        size = min(self._word(place + 16), _LONGEST_TABLE)
        return self._read(place + 32, size)

    def _text(self, place: int) -> str:
        length = min(self._word(place + 16), _LONGEST_TEXT)
        (state,) = struct.unpack("<I", self._read(place + 32, 4))
        width, ascii_only = state >> 2 & 7, state >> 6 & 1
        start = place + (self.offsets.ascii_size if ascii_only else self.offsets.compact_size)
        encoding = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}.get(width, "latin-1")
        return self._read(start, length * max(1, width)).decode(encoding, "replace")


def _described(read: Read, runtime: int, version: tuple[int, int]) -> Offsets:
    """The offsets that `_PyRuntime` tells of itself (3.13 on). LookupError if it does not."""
    if version < min(_SECTIONS) or read(runtime, 8) != _COOKIE:
        raise LookupError("its structures are not known")
    words = struct.unpack("<60Q", read(runtime + 8, 480))
    sections = _SECTIONS.get((words[0] >> 24, words[0] >> 16 & 0xFF))
    if sections is None:
        raise LookupError("its structures are not known")
    if words[1]:
        raise LookupError("the structures of a Python without the GIL are not known")
    interpreter, thread, frame, code = (words[start:] for start in sections)
    return Offsets(
        head=words[4], next_interpreter=interpreter[2], threads=interpreter[3],
        next=thread[2], thread_id=thread[5], frame=(thread[4],),
        previous=frame[1], code=frame[2], instruction=frame[3], owner=frame[5],
        file=code[1], name=code[3], line_table=code[4], first_line=code[5], bytecode=code[9],
        ascii_size=40, compact_size=56,
    )  # fmt: skip


def line_of_locations(table: bytes, first: int, at: int) -> int | None:
    """The line of a bytecode offset in `co_linetable` (3.11 on)."""
    position, start, line = 0, 0, first

    def number() -> int:
        nonlocal position
        value = shift = 0
        while position < len(table):
            byte = table[position]
            position += 1
            value |= (byte & 63) << shift
            shift += 6
            if not byte & 64:
                break
        return value

    while position < len(table):
        head = table[position]
        position += 1
        kind, end = head >> 3 & 15, start + 2 * ((head & 7) + 1)
        if kind in (13, 14):
            signed = number()
            line += -(signed >> 1) if signed & 1 else signed >> 1
            if kind == 14:
                for _ in range(3):
                    number()
        elif 10 <= kind <= 12:
            line += kind - 10
            position += 2
        elif kind < 10:
            position += 1
        if start <= at < end:
            return None if kind == 15 else line
        start = end
    return None


def line_of_lnotab(table: bytes, first: int, at: int) -> int:
    """The line of a bytecode offset in `co_lnotab` of 3.9: pairs of bytes, (offset step, signed line step)."""
    line, start = first, 0
    for length, raw in zip(table[0::2], table[1::2]):  # noqa: B905 - gdb may have an older Python
        start += length
        if start > at:
            break
        line += raw - 256 if raw > 127 else raw
    return line


def line_of_ranges(table: bytes, first: int, at: int) -> int | None:
    """The line of a bytecode offset in `co_linetable` of 3.10: pairs of bytes, (length, signed line step)."""
    line, end = first, 0
    for length, raw in zip(table[0::2], table[1::2]):  # noqa: B905 - gdb may have an older Python
        step = raw - 256 if raw > 127 else raw
        end += length
        line += 0 if step == -128 else step
        if at < end:
            return None if step == -128 else line
    return None
