"""The ring and the stacks of open calls, without any interpreter but this one."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import pytest

from torchbench_dbg.inferior.ring import C_CALL, C_RETURN, CALL, LINE, RETURN, Ring
from torchbench_dbg.inferior.stacks import Stacks, ThreadStack

CAPACITY = 8


@pytest.fixture
def descriptor() -> Iterator[int]:
    number = os.memfd_create("ring")
    os.ftruncate(number, 64 + 16 * CAPACITY + 8)
    yield number
    os.close(number)


def records(descriptor: int) -> list[tuple[int, int, int]]:
    """(kind, name id, line) of each record."""
    count = struct.unpack("<Q", os.pread(descriptor, 8, 0))[0]
    data = os.pread(descriptor, 16 * count, 64)
    return [(kind, identity, line) for kind, identity, line, _ in struct.iter_unpack("<IIII", data)]


def test_a_record_is_four_little_endian_words(descriptor: int) -> None:
    Ring(descriptor).write(3 | 7 << 32, 11 | 4_000_000_000 << 32)
    assert os.pread(descriptor, 16, 64) == struct.pack("<IIII", 3, 7, 11, 4_000_000_000)
    assert os.pread(descriptor, 16, 0) == struct.pack("<QQ", 1, 0)


def test_a_full_ring_only_counts(descriptor: int) -> None:
    ring = Ring(descriptor)
    for number in range(CAPACITY + 3):
        ring.write(number, 0)
    assert ring.capacity == CAPACITY
    assert os.pread(descriptor, 16, 0) == struct.pack("<QQ", CAPACITY, 3)
    # The odd bytes behind the last record stay as they were.
    assert os.pread(descriptor, 8, 64 + 16 * CAPACITY) == bytes(8)


def test_a_file_too_small_is_refused() -> None:
    number = os.memfd_create("small")
    os.ftruncate(number, 64)
    with pytest.raises(ValueError, match="64 bytes"):
        Ring(number)
    os.close(number)


@pytest.fixture
def stack(descriptor: int) -> ThreadStack:
    return ThreadStack(Ring(descriptor).write)


def word(identity: int) -> int:
    return identity << 32


def test_a_return_without_its_call_is_not_written(stack: ThreadStack, descriptor: int) -> None:
    stack.leave(word(1))
    stack.c_leave()
    assert records(descriptor) == []


def test_an_outer_return_closes_what_is_open_inside(stack: ThreadStack, descriptor: int) -> None:
    stack.call(word(1), 10)
    stack.c_call(word(2), 11)
    stack.call(word(3), 12)
    stack.leave(word(1))
    assert records(descriptor) == [
        (CALL, 1, 10),
        (C_CALL, 2, 11),
        (CALL, 3, 12),
        (RETURN, 3, 0),
        (C_RETURN, 2, 0),
        (RETURN, 1, 0),
    ]


def test_a_second_c_call_of_a_frame_closes_the_first(stack: ThreadStack, descriptor: int) -> None:
    stack.c_call(word(2), 1)
    stack.c_call(word(2), 2)
    assert records(descriptor) == [(C_CALL, 2, 1), (C_RETURN, 2, 0), (C_CALL, 2, 2)]


def test_a_c_return_does_not_close_a_python_call(stack: ThreadStack, descriptor: int) -> None:
    stack.call(word(1), 1)
    stack.c_leave()
    stack.line(word(1), 2)
    assert records(descriptor) == [(CALL, 1, 1), (LINE, 1, 2)]


def test_a_closed_stack_returns_from_everything_and_is_silent(stack: ThreadStack, descriptor: int) -> None:
    stack.call(word(1), 1)
    stack.close()
    stack.call(word(1), 1)
    stack.line(word(1), 1)
    stack.leave(word(1))
    assert records(descriptor) == [(CALL, 1, 1), (RETURN, 1, 0)]


def test_a_thread_that_comes_after_the_end_is_silent(descriptor: int) -> None:
    stacks = Stacks(Ring(descriptor).write)
    stacks.close()
    stacks.this_thread().call(word(1), 1)
    assert records(descriptor) == []
