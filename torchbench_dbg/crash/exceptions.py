"""The C++ exception that ended a process, and the message that the C library left: read from memory.

Sources: Itanium C++ ABI, exception handling 2.2 (the exception's header) and 2.9.5 (type_info); libsupc++'s
unwind-cxx.h (`__cxa_refcounted_exception`); glibc's include/abort_msg.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchbench_dbg.crash.snapshot import AddressMap, Snapshot, ThreadState, Unreadable
from torchbench_dbg.crash.symbols import address_of
from torchbench_dbg.trace.names import demangle

_SEARCHED = 1 << 16  # bytes of stack
_CLASSES = (b"\x00++CCUNG", b"\x01++CCUNG")  # "GNUCC++\0" and that of a rethrown one, as a word in memory
_BEFORE_HEADER = 80  # bytes from the type to the unwinder's header, the object is 32 behind that
_LONGEST = 4096
# Their objects begin with a vtable and the address of the text: the standard's with a string of the old kind,
# c10::Error (c10/util/Exception.h) with a std::string.
_WITH_TEXT = ("St13runtime_error", "St11logic_error", "N3c105ErrorE")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrownException:
    """Type (demangled) and what() of an exception; "" where the text is not where known classes have it."""

    type: str
    text: str


def find_exception(snapshot: Snapshot, thread: ThreadState) -> ThrownException | None:
    """The exception under way in a thread that stands in std::terminate: its header's address is on the stack."""
    where = AddressMap(snapshot.mappings)
    for pointer in _stack_words(snapshot, thread):
        mapping = where.at(pointer)
        if pointer % 8 or mapping is None or "w" not in mapping.permissions:
            continue
        try:
            if snapshot.read(pointer, 8) in _CLASSES:
                return _read(snapshot, pointer)
        except Unreadable:
            continue
    return None


def _stack_words(snapshot: Snapshot, thread: ThreadState) -> Iterator[int]:
    start = thread.registers["rsp"] & ~7
    for size in (_SEARCHED, _SEARCHED // 8, 4096):
        try:
            data = snapshot.read(start, size)
        except Unreadable:
            continue
        seen = set()
        for (word,) in struct.iter_unpack("<Q", data):
            if word not in seen:
                seen.add(word)
                yield word
        return


def _word(snapshot: Snapshot, address: int) -> int:
    return int.from_bytes(snapshot.read(address, 8), "little")


def _read(snapshot: Snapshot, header: int) -> ThrownException | None:
    if snapshot.read(header, 8) == _CLASSES[1]:  # rethrown: the object is elsewhere, its address comes before
        thrown = _word(snapshot, header - 8)
        kind = _word(snapshot, thrown - 32 - _BEFORE_HEADER)
    else:
        thrown, kind = header + 32, _word(snapshot, header - _BEFORE_HEADER)
    bases = list(_bases(snapshot, kind))
    if not bases:
        return None
    text = ""
    try:
        if any(base in _WITH_TEXT for base in bases):
            text = _c_string(snapshot, _word(snapshot, thrown + 8))
    except Unreadable:
        pass
    return ThrownException(type=_type_name(bases[0]), text=text.strip())


def _bases(snapshot: Snapshot, kind: int) -> Iterator[str]:
    """Mangled names of a type and of its base classes along single inheritance."""
    for _ in range(16):
        try:
            name = _c_string(snapshot, _word(snapshot, kind + 8)).lstrip("*")
            if not name or not name.isprintable():
                return
            yield name
            base = _word(snapshot, kind + 16)
            _word(snapshot, base + 8)
        except Unreadable:
            return
        kind = base


def _type_name(mangled: str) -> str:
    """The name of a type, from the name in its type_info."""
    return demangle(f"_ZTS{mangled}").removeprefix("typeinfo name for ")


def _c_string(snapshot: Snapshot, address: int) -> str:
    for size in (_LONGEST, 256, 64, 16):
        try:
            return snapshot.read(address, size).partition(b"\0")[0].decode(errors="replace")
        except Unreadable:
            continue
    raise Unreadable(f"{address:#x}")


def abort_message(snapshot: Snapshot) -> str:
    """What glibc printed before it ended the process (heap checks, assert): "" if it did not."""
    paths = {mapping.path for mapping in snapshot.mappings}
    library = next((path for path in sorted(paths) if Path(path).name.startswith("libc.so")), None)
    if library is None:
        return ""
    try:
        place = address_of(snapshot, library, "__abort_msg")
        message = _word(snapshot, place) if place else 0
        return _c_string(snapshot, message + 4).strip() if message else ""
    except Unreadable:
        return ""
