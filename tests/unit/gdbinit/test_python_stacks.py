"""Line tables against the interpreter that runs the tests, and memory that is hostile."""

from __future__ import annotations

import struct
import sys
from types import CodeType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tdbg_python_stacks import PythonStacks, line_of_lnotab, line_of_locations, line_of_ranges
from tdbg_unwind_tables import Unreadable

VERSIONS = [(3, 9), (3, 10), (3, 11), (3, 12)]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the table of this interpreter has another form")
@pytest.mark.parametrize("code", [pytest.approx.__code__, PythonStacks._places.__code__, given.__code__])
def test_lines_are_those_of_the_code_object(code: CodeType) -> None:
    expected = {at: line for start, end, line in code.co_lines() for at in range(start, end, 2)}
    assert {at: line_of_locations(code.co_linetable, code.co_firstlineno, at) for at in expected} == expected


def test_lines_of_3_10() -> None:
    table = bytes([4, 1, 6, 2, 2, 128, 4, 0xFE])  # lines 11, 13, none, 11
    assert [line_of_ranges(table, 10, at) for at in (0, 2, 4, 8, 10, 12, 14, 16)] == [
        11,
        11,
        13,
        13,
        None,
        11,
        11,
        None,
    ]


def test_lines_of_3_9() -> None:
    table = bytes([0, 1, 6, 2, 255, 0, 1, 0xFE])  # 11 from 0, 13 from 6, 11 from 262
    assert [line_of_lnotab(table, 10, at) for at in (0, 4, 6, 260, 262, 400)] == [11, 11, 13, 13, 11, 11]


def read_nothing(address: int, length: int) -> bytes:
    raise Unreadable(hex(address))


@pytest.mark.parametrize("version", VERSIONS)
def test_no_memory(version: tuple[int, int]) -> None:
    assert PythonStacks(read_nothing, 4096, version).of_thread(1) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_chains_without_end(version: tuple[int, int]) -> None:
    """Each pointer leads to itself, so that all chains are cycles."""

    def read(address: int, length: int) -> bytes:
        return (struct.pack("<Q", 4096) * (length // 8 + 1))[:length]

    assert PythonStacks(read, 4096, version).of_thread(1) == []
    frames = [frame for group in PythonStacks(read, 4096, version).of_thread(4096) for frame in group]
    assert len(frames) == 1, "the cycle was gone through once"


@given(version=st.sampled_from(VERSIONS), content=st.binary(min_size=64, max_size=512))
def test_any_memory(version: tuple[int, int], content: bytes) -> None:
    def read(address: int, length: int) -> bytes:
        if address > len(content) or length > len(content):
            raise Unreadable(hex(address))
        return (content * 2)[address : address + length].ljust(length, b"\0")

    groups = PythonStacks(read, 0, version).of_thread(int.from_bytes(content[:8], "little"))
    assert all(frame.function is not None for group in groups for frame in group)


@pytest.mark.parametrize("version", [(2, 7), (3, 8), (3, 13), (3, 99)])
def test_versions_that_are_not_known(version: tuple[int, int]) -> None:
    with pytest.raises(LookupError, match="not known"):
        PythonStacks(lambda _address, length: b"\1" * length, 4096, version)


@pytest.mark.parametrize(("raw", "told"), [((0x030F00F0, 0), "not known"), ((0x030E00F0, 1), "without the GIL")])
def test_tables_of_offsets_that_are_not_known(raw: tuple[int, int], told: str) -> None:
    table = b"xdebugpy" + struct.pack("<60Q", *raw, *[0] * 58)
    with pytest.raises(LookupError, match=told):
        PythonStacks(lambda address, length: table[address - 4096 :][:length], 4096, (3, 14))
