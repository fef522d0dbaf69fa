"""What a signal says of an address."""

from __future__ import annotations

import signal

import pytest

from torchbench_dbg.crash import faults
from torchbench_dbg.crash.instructions import instruction_set
from torchbench_dbg.crash.snapshot import AddressMap
from torchbench_dbg.trace.probes import Mapping


def mapping(start: int, end: int, permissions: str = "rw-p", path: str = "", offset: int = 0) -> Mapping:
    return Mapping(start=start, end=end, permissions=permissions, offset=offset, path=path)


CODE = mapping(0x400000, 0x500000, "r-xp", "/lib/libx.so")
DATA = mapping(0x500000, 0x501000, "r--p", "/lib/libx.so")
HEAP = mapping(0x900000, 0xA00000, "rw-p", "[heap]")
GUARD = mapping(0x7F0000000000, 0x7F0000001000, "---p")
THREAD = mapping(0x7F0000001000, 0x7F0000801000)
STACK = mapping(0x7FFFFF000000, 0x7FFFFF800000, "rw-p", "[stack]")
MAP = AddressMap([CODE, DATA, HEAP, GUARD, THREAD, STACK])


def of(
    address: int, *, code: int = 1, number: int = signal.SIGSEGV, pc: int = 0x400010, sp: int = STACK.end - 4096
) -> faults.FaultFacts:
    return faults.explain(number, code, address, 0, pc=pc, sp=sp, where=MAP)


@pytest.mark.parametrize(
    ("address", "code", "kind", "said"),
    [
        (0, 1, "null", "address 0x0: a null pointer"),
        (24, 1, "null", "24 bytes behind"),
        (0xA00010, 1, "unmapped", "16 bytes behind the heap"),
        (0x8FFF00, 1, "unmapped", "256 bytes before the heap"),
        (0x600000000000, 1, "unmapped", "far from everything"),
        (0x500010, 2, "protected", "in libx.so, which is readable"),
        (0x400010, 1, "not executable", "in libx.so"),
        (0, 0x80, "non-canonical", "no program can have"),
    ],
)
def test_kinds_of_segmentation_faults(address: int, code: int, kind: str, said: str) -> None:
    facts = of(address, code=code)
    assert facts.kind == kind
    assert said in facts.text


def test_stack_overflow_of_both_kinds_of_threads() -> None:
    main = of(STACK.start - 8, sp=STACK.start + 8)
    assert (main.kind, main.text) == ("stack overflow", "the thread's stack of 8 MiB is used up")
    assert of(GUARD.end - 8, code=2, sp=GUARD.end - 8).kind == "stack overflow"
    assert of(STACK.start - 64, sp=STACK.end - 4096).kind == "unmapped"


def test_other_signals() -> None:
    assert of(0x400010, number=signal.SIGFPE).text == "integer division by zero"
    assert of(0x400010, number=signal.SIGILL).kind == "illegal instruction"
    assert faults.explain(signal.SIGABRT, -6, 0, 7, pc=0, sp=0, where=MAP).text == "the process ended itself (abort)"
    assert faults.explain(signal.SIGSEGV, 0, 0, 77, pc=0, sp=0, where=MAP).text == "it was sent by process 77"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("0f 0b", "ud2"),
        ("62 f5 7c 48 58 c0", "AVX-512"),
        ("c4 e2 7b 49 c0", "AMX"),
        ("c4 e2 f5 b8 c2", "FMA"),
        ("c4 e2 75 40 c2", "AVX2"),
        ("c5 f4 58 c2", "AVX"),
        ("66 0f 38 17 c1", "SSSE3 or SSE4"),
        ("f3 48 0f b8 c1", "POPCNT"),
        ("0f 0f c1 9e", "3DNow!"),
        ("48 8b 45 f8", ""),
        ("", ""),
    ],
)
def test_instruction_sets(code: str, name: str) -> None:
    assert instruction_set(bytes.fromhex(code)) == name
