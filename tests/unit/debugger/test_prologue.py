"""Callers of functions without unwind tables."""

from __future__ import annotations

import struct

import pytest
import tdbg_prologue as prologue

RBX, RBP, RSP, R12, R15, RIP = 3, 6, 7, 12, 15, 16
STACK = 0x8000
# MKL's vmsSin and its kernel, as they begin
PUSHES = bytes.fromhex("55 41 57 41 56 53 48 83 ec 18 85 ff")
FRAME_POINTER = bytes.fromhex("55 48 89 e5 41 57 41 56 41 55 41 54 53 48 83 e4 c0 48 81 ec c0 05 00 00")
CALL = bytes.fromhex("e8 00 00 00 00")


def memory(code: bytes, *stack: int):  # type: ignore[no-untyped-def]
    data = {
        0x1000: code,
        STACK: struct.pack(f"<{len(stack)}Q", *stack),
        0x3FF9: b"\x90\x90" + CALL,
        0x5FF9: b"\x90" * 5 + b"\xff\xd0",
    }

    def read(address: int, length: int) -> bytes:
        for start, piece in data.items():
            if start <= address and address + length <= start + len(piece):
                return piece[address - start :][:length]
        return bytes(length)

    return read


def test_pushed_registers_and_reserved_space_are_counted() -> None:
    found = prologue.read_prologue(PUSHES)
    assert (found.pushed, found.reserved, found.frame_pointer) == ([RBP, R15, 14, RBX], 0x18, None)


def test_pushes_are_undone() -> None:
    read = memory(PUSHES, 0, 0, 0, 33, 1414, 1515, 66, 0x4000)
    found = prologue.caller_by_prologue(0x1000, 0x100A, {RSP: STACK}, read)
    assert found.frame_address == STACK + 64
    assert found.registers == {RSP: STACK + 64, RIP: 0x4000, RBX: 33, 14: 1414, R15: 1515, RBP: 66}


def test_only_what_has_run_counts() -> None:
    found = prologue.caller_by_prologue(0x1000, 0x1001, {RSP: STACK, RBX: 1}, memory(PUSHES, 66, 0x4000))
    assert (found.registers[RIP], found.registers[RBP], found.registers[RBX]) == (0x4000, 66, 1)
    found = prologue.caller_by_prologue(0x1000, 0x1000, {RSP: STACK}, memory(PUSHES, 0x4000))
    assert found.registers == {RSP: STACK + 8, RIP: 0x4000}


def test_a_frame_pointer_survives_an_aligned_stack() -> None:
    read = memory(FRAME_POINTER, 0, 0, 33, 12, 13, 14, 15, 66, 0x4000)
    found = prologue.caller_by_prologue(0x1000, 0x1018, {RSP: 0x1, RBP: STACK + 56}, read)
    assert found.frame_address == STACK + 72
    assert [found.registers[number] for number in (RIP, RBP, R15, R12, RBX)] == [0x4000, 66, 15, 12, 33]


def test_generated_code_is_left_by_the_first_return_address_that_can_be() -> None:
    # 0x5000 is code without a call before it; 0x4000 has a direct call of itself, 0x6000 one through a register.
    read = memory(b"", 1, 0x5000, 0x2000, 0x4000, STACK + 0x80, 0x6000)
    is_code = {0x4000, 0x5000, 0x6000}.__contains__
    found = prologue.caller_by_search(0x1000, {RSP: STACK}, read, is_code, {0x4000}.__contains__)
    assert found is not None
    assert found.registers == {RSP: STACK + 32, RIP: 0x4000}
    found = prologue.caller_by_search(0x1000, {RSP: STACK}, read, is_code, lambda target: False)
    assert found is not None
    assert found.registers == {RSP: STACK + 48, RIP: 0x6000, RBP: STACK + 0x80}
    assert prologue.caller_by_search(0x1000, {RSP: STACK}, read, lambda _: False, is_code) is None


def test_targets_of_direct_calls() -> None:
    assert prologue.direct_target(bytes.fromhex("0000 e8 f0ffffff"), 0x4000) == 0x3FF0


@pytest.mark.parametrize(
    ("code", "is_call"),
    [
        ("e8 01 02 03 04", True),
        ("ff d0", True),  # call *%rax
        ("41 ff d3", True),  # call *%r11
        ("ff 10", True),  # call *(%rax)
        ("ff 50 18", True),  # call *0x18(%rax)
        ("ff 54 24 08", True),  # call *0x8(%rsp)
        ("ff 90 00 01 00 00", True),  # call *0x100(%rax)
        ("ff 15 00 01 00 00", True),  # call *0x100(%rip)
        ("ff 94 24 00 01 00 00", True),  # call *0x100(%rsp)
        ("ff e0", False),  # jmp *%rax
        ("ff 25 00 01 00 00", False),  # jmp *0x100(%rip)
        ("90 90 90", False),
    ],
)
def test_calls_are_known_by_their_bytes(code: str, is_call: bool) -> None:
    assert prologue.follows_call(bytes.fromhex(code).rjust(7, b"\x90")) is is_call
