"""Which entries are open, from stack memory made by hand."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

from torchbench_dbg.trace.livestack import Entry, LiveStack, can_jump_to, ends_with_call

TOP = 0x7000_0000


class Memory:
    """Stack and code of a process that never was."""

    def __init__(self) -> None:
        self.bytes: dict[int, int] = {}

    def put(self, address: int, data: bytes) -> None:
        self.bytes.update({address + position: value for position, value in enumerate(data)})

    def read(self, address: int, length: int) -> bytes:
        return bytes(self.bytes.get(address + position, 0) for position in range(length))

    def function_around(self, address: int) -> int:
        """Every function of these tests begins at a multiple of 0x1000."""
        return address // 0x1000 * 0x1000 if address >= 0x1000 else 0


class Thread:
    def __init__(self) -> None:
        self.memory = Memory()
        probes: Any = self.memory
        self.stack = LiveStack(probes)
        self.order = 0

    def enter(self, function: int, stack_pointer: int, return_address: int, *, code: bytes = b"\xc3") -> Entry:
        self.memory.put(stack_pointer, struct.pack("<Q", return_address))
        self.memory.put(function, code)
        index = SimpleNamespace(sizes=[len(code)])
        probe: Any = SimpleNamespace(address=function, region=SimpleNamespace(index=index), symbol=0)
        entry = self.stack.enter(
            probe, tid=1, order=self.order, stack_pointer=stack_pointer, python_events=0, keys=None
        )
        self.order += 1
        return entry


def test_deeper_entries_are_children_and_a_shallower_one_closes_them() -> None:
    thread = Thread()
    outer = thread.enter(0x1000, TOP, 0xA)
    inner = thread.enter(0x2000, TOP - 64, 0x1010)
    sibling = thread.enter(0x3000, TOP - 64, 0x1020)
    after = thread.enter(0x4000, TOP, 0xB)
    assert [outer.parent, inner.parent, sibling.parent, after.parent] == [-1, 0, 0, -1]


def test_a_frame_whose_return_address_was_overwritten_is_closed() -> None:
    """An unprobed function took the place of the second entry and calls the third."""
    thread = Thread()
    thread.enter(0x1000, TOP, 0xA)
    thread.enter(0x2000, TOP - 64, 0x1010)
    thread.memory.put(TOP - 64, struct.pack("<Q", 0x1999))
    assert thread.enter(0x3000, TOP - 128, 0x5000).parent == 0


def test_an_old_return_address_in_the_padding_of_a_newer_frame_proves_nothing() -> None:
    """The second entry returned and its slot is intact; the third is called by the first, deeper in its frame."""
    thread = Thread()
    thread.enter(0x1000, TOP, 0xA)
    thread.enter(0x2000, TOP - 64, 0x1010)
    assert thread.enter(0x3000, TOP - 80, 0x1020).parent == 0


def test_a_jump_at_the_end_makes_the_callee_a_child() -> None:
    thread = Thread()
    jump = b"\xe9" + struct.pack("<i", 0x2000 - (0x1000 + 5))
    thread.enter(0x1000, TOP, 0xA, code=jump)
    callee = thread.enter(0x2000, TOP, 0xA)
    assert callee.tail_call
    assert callee.parent == 0


def test_two_nodes_called_from_one_loop_are_siblings() -> None:
    """Node::operator() calls every node's apply from one place: same stack pointer, same return address."""
    thread = Thread()
    thread.enter(0x9000, TOP + 64, 0xC)
    thread.enter(0x1000, TOP, 0xA)
    second = thread.enter(0x2000, TOP, 0xA)
    assert not second.tail_call
    assert second.parent == 0


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (b"\xe9" + struct.pack("<i", 0x100 - 5), True),
        (b"\x90\x90\xe9" + struct.pack("<i", 0x100 - 7), True),
        (b"\xe9" + struct.pack("<i", 0x200), False),
        (b"\xff\xe0", True),  # jmp *%rax
        (b"\xff\x60\x18", True),  # jmp *0x18(%rax)
        (b"\xff\xd0\xc3", False),  # call *%rax; ret
        (b"\xe9\x00", False),  # cut short
        (b"", False),
    ],
)
def test_tail_calls_are_found_in_the_code(code: bytes, expected: bool) -> None:
    assert can_jump_to(code, 0x5000, 0x5100) is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (b"\x90\x90\xe8\x01\x02\x03\x04", True),  # call rel32
        (b"\x90\x90\x90\x90\x90\xff\xd0", True),  # call *%rax
        (b"\x90\x90\x90\x90\xff\x50\x18", True),  # call *0x18(%rax)
        (b"\x90\x90\x90\x90\x90\xff\xe0", False),  # jmp *%rax
        (b"\x90" * 7, False),
        (b"\xe8\x01", False),
    ],
)
def test_a_return_address_has_a_call_before_it(code: bytes, expected: bool) -> None:
    assert ends_with_call(code) is expected
