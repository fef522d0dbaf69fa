"""Unwinding by tables, on tables written here byte by byte. The real ones are compared with readelf's reading of them
in tests/integration/debugger.
"""

from __future__ import annotations

import struct

import pytest
import tdbg_call_frames as call_frames
from tdbg_call_frames import X86_64, Caller
from tdbg_unwind_tables import Function, Reader, Unreadable, Unsupported, UnwindTables

RBX, RBP, RSP, RIP = 3, 6, 7, 16
# At a function's entry the return address was just pushed: the frame is at rsp + 8.
ENTRY = b"\x0c\x07\x08" + b"\x90\x01"


class Memory:
    """Bytes at addresses; `read` fails outside of them."""

    def __init__(self, **pieces: tuple[int, bytes]) -> None:
        self.pieces = list(pieces.values())

    def read(self, address: int, length: int) -> bytes:
        for start, data in self.pieces:
            if start <= address and address + length <= start + len(data):
                return data[address - start : address - start + length]
        raise Unreadable(f"{address:#x}")


def function(instructions: bytes, initial: bytes = ENTRY, begin: int = 0x1000) -> Function:
    return Function(begin, begin + 0x100, 1, -8, RIP, False, initial, instructions)


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def caller(table: Function, pc: int, registers: dict[int, int], stack: bytes = b"", at: int = 0x8000) -> Caller | None:
    return call_frames.caller(table, pc, registers, Memory(stack=(at, stack)).read, X86_64)


def test_at_the_entry_the_return_address_is_on_top() -> None:
    found = caller(function(b""), 0x1000, {RSP: 0x8000, RBX: 5}, words(0x4444))
    assert found == Caller(0x8008, {RIP: 0x4444, RSP: 0x8008, RBX: 5}, 0x1000)


def test_a_saved_register_is_restored_from_where_it_was_pushed() -> None:
    # advance 1; frame offset 16; rbp saved at frame-16; advance 3; frame register rbp
    table = function(b"\x41\x0e\x10\x86\x02" + b"\x43\x0d\x06")
    at_push = caller(table, 0x1001, {RSP: 0x8000, RBP: 1}, words(0x7777, 0x4444))
    assert at_push is not None
    assert (at_push.registers[RBP], at_push.registers[RIP], at_push.frame_address) == (0x7777, 0x4444, 0x8010)
    later = caller(table, 0x1004, {RSP: 0x1, RBP: 0x8000}, words(0x7777, 0x4444))
    assert later is not None
    assert later.frame_address == 0x8010


def test_a_remembered_state_comes_back() -> None:
    # offset 16 at +1; remembered; offset 8 at +2 (before ret); restored at +3
    table = function(b"\x41\x0e\x10\x0a" + b"\x41\x0e\x08" + b"\x41\x0b")
    offsets = [call_frames.row_at(table, 0x1000 + at).frame for at in range(4)]
    assert offsets == [(RSP, 8), (RSP, 16), (RSP, 8), (RSP, 16)]


def test_restore_takes_the_rule_of_the_beginning() -> None:
    table = function(b"\x83\x05" + b"\x41\xc3" + b"\x41\x90\x03" + b"\x41\xd0")
    rules = [call_frames.row_at(table, 0x1000 + at).rules for at in range(4)]
    assert [rule.get(RBX) for rule in rules] == [("at", -40), None, None, None]
    assert [rule[RIP] for rule in rules] == [("at", -8), ("at", -8), ("at", -24), ("at", -8)]


@pytest.mark.parametrize(
    ("advance", "length"), [(b"\x02\x40", 0x40), (b"\x03\x80\x00", 0x80), (b"\x04\xf0\x00\x00\x00", 0xF0)]
)
def test_long_advances(advance: bytes, length: int) -> None:
    table = function(advance + b"\x0e\x20")
    assert call_frames.row_at(table, 0x1000 + length - 1).frame == (RSP, 8)
    assert call_frames.row_at(table, 0x1000 + length).frame == (RSP, 32)


def test_the_table_of_the_procedure_linkage() -> None:
    """rsp + 8 + ((rip & 15) >= 11) * 8: what linkers write for the PLT, whose entries push a word."""
    plt = bytes.fromhex("77 08 80 00 3f 1a 3b 2a 33 24 22")
    table = function(b"\x0f" + bytes([len(plt)]) + plt)
    for pc, frame in ((0x1000, 0x8008), (0x100A, 0x8008), (0x100B, 0x8010)):
        found = caller(table, pc, {RSP: 0x8000, RIP: pc}, words(0x4444, 0x5555))
        assert found is not None
        assert found.frame_address == frame


def test_a_signal_trampoline_restores_registers_from_the_kernels_record() -> None:
    # frame: *(rsp + 16); rbx at rsp + 8
    table = function(b"\x0f\x03\x77\x10\x06" + b"\x10\x03\x02\x77\x08", initial=b"\x90\x01")
    found = caller(table, 0x1000, {RSP: 0x8000}, words(1, 99, 0x8020, 0x4444))
    assert found is not None
    assert (found.frame_address, found.registers[RBX], found.registers[RIP]) == (0x8020, 99, 0x4444)


def test_an_undefined_return_address_ends_the_stack() -> None:
    assert caller(function(b"\x07\x10"), 0x1000, {RSP: 0x8000}, words(1)) is None


def test_same_and_moved_registers() -> None:
    table = function(b"\x08\x03" + b"\x09\x06\x03" + b"\x07\x0c")
    found = caller(table, 0x1000, {RSP: 0x8000, RBX: 7, RBP: 8, 12: 9}, words(0x4444))
    assert found is not None
    assert (found.registers[RBX], found.registers[RBP], 12 in found.registers) == (7, 7, False)


@pytest.mark.parametrize("program", [b"\x3f", b"\x0b", b"\x0f\x01\xff", b"\x0f\x01\x22", b"\x0e", b"\x0f\x7f"])
def test_damaged_tables_are_refused(program: bytes) -> None:
    with pytest.raises(Unsupported):
        caller(function(program), 0x1000, {RSP: 0x8000}, words(0x4444))


def test_memory_that_is_not_there_is_refused() -> None:
    with pytest.raises(Unreadable):
        caller(function(b""), 0x1000, {RSP: 0x9000}, words(0x4444))


@pytest.mark.parametrize(
    ("data", "value"), [(b"\x02", 2), (b"\x7f", -1), (b"\x80\x7f", -128), (b"\xe5\x8e\x26", 624485)]
)
def test_signed_numbers(data: bytes, value: int) -> None:
    assert Reader(data, 0).sleb() == value


HEADER, FRAMES = 0x5000, 0x6000


def eh_frame() -> Memory:
    """Two functions, 0x1000-0x1100 and 0x2000-0x2010, with pointers as GCC writes them (relative, four bytes)."""
    common = struct.pack("<I", 0) + b"\x01zR\0\x01\x78\x10\x01\x1b" + ENTRY
    common = struct.pack("<I", len(common)) + common
    frames, places = common, []
    for begin, length in ((0x1000, 0x100), (0x2000, 0x10)):
        place = len(frames)
        places.append((begin, FRAMES + place))
        body = struct.pack("<Iii", place + 4, begin - (FRAMES + place + 8), length) + b"\0" + b"\x41\x0e\x10"
        frames += struct.pack("<I", len(body)) + body
    header = b"\x01\x1b\x03\x3b" + struct.pack("<iI", FRAMES - HEADER - 4, 2)
    header += b"".join(struct.pack("<ii", begin - HEADER, place - HEADER) for begin, place in places)
    return Memory(header=(HEADER, header), frames=(FRAMES, frames))


@pytest.mark.parametrize(
    ("pc", "begin"),
    [(0xFFF, None), (0x1000, 0x1000), (0x10FF, 0x1000), (0x1100, None), (0x200F, 0x2000), (0x2010, None)],
)
def test_functions_are_found_by_search(pc: int, begin: int | None) -> None:
    found = UnwindTables(eh_frame().read, HEADER).find(pc)
    assert (found.begin if found else None) == begin


def test_a_found_table_is_run() -> None:
    found = UnwindTables(eh_frame().read, HEADER).find(0x1001)
    assert found is not None
    assert (found.end, found.data_factor, found.return_address, found.of_signal) == (0x1100, -8, RIP, False)
    assert call_frames.row_at(found, 0x1001).frame == (RSP, 16)


def test_a_search_table_of_another_form_is_refused() -> None:
    with pytest.raises(Unsupported):
        UnwindTables(lambda address, length: b"\x01\x1b\x03\xff"[:length], HEADER)
