"""What a signal says: which address was touched, and what is mapped there (siginfo_t, sigaction(2))."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torchbench_dbg.crash.snapshot import AddressMap
from torchbench_dbg.trace.probes import Mapping

Kind = Literal[
    "null", "stack overflow", "unmapped", "protected", "not executable", "non-canonical", "past end of file",
    "memory error", "arithmetic", "illegal instruction", "sent", "none",
]  # fmt: skip

_LOWEST = 1 << 16  # vm.mmap_min_addr: nothing is ever mapped below
_STACK_STEP = 1 << 20  # the farthest below the stack pointer that a function's frame reaches
_SI_KERNEL = 0x80
_SEGV_ACCERR, _BUS_ADRALN, _BUS_ADRERR = 2, 1, 2
_ARITHMETIC = {
    1: "integer division by zero", 2: "integer overflow", 3: "floating-point division by zero",
    4: "floating-point overflow", 7: "invalid floating-point operation",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultFacts:
    """`text` is a sentence for people; `address` is None where the signal has none."""

    kind: Kind
    text: str
    address: int | None = None


def explain(number: int, code: int, address: int, sender: int, *, pc: int, sp: int, where: AddressMap) -> FaultFacts:
    """What happened, from the signal's number, si_code and si_addr, and where the thread stood."""
    if code <= 0:
        return FaultFacts(kind="sent", text=_sent(number, sender))
    if number == signal.SIGFPE:
        return FaultFacts(kind="arithmetic", text=_ARITHMETIC.get(code, "an arithmetic fault"), address=address)
    if number == signal.SIGILL:
        return FaultFacts(kind="illegal instruction", text="the processor refused an instruction", address=address)
    if number == signal.SIGBUS:
        return _bus(code, address, where)
    if number == signal.SIGSEGV:
        return _segment(code, address, pc, sp, where)
    return FaultFacts(kind="none", text="")


def _sent(number: int, sender: int) -> str:
    if number == signal.SIGABRT:
        return "the process ended itself (abort)"
    return f"it was sent by process {sender}" if sender else "it was raised by the program itself"


def _bus(code: int, address: int, where: AddressMap) -> FaultFacts:
    mapping = where.at(address)
    if code == _BUS_ADRERR and mapping is not None and mapping.path:
        file = mapping.path.removesuffix(" (deleted)")
        offset = address - mapping.start + mapping.offset
        size = _size(file)
        now = f", which has {size:,} bytes now" if size is not None else ""
        return FaultFacts(
            kind="past end of file",
            text=f"byte {offset:,} of {mapping.path}{now}, is mapped but not there",
            address=address,
        )
    if code == _BUS_ADRALN:
        return FaultFacts(
            kind="memory error", text=f"{address:#x} is not aligned as the instruction needs", address=address
        )
    return FaultFacts(kind="memory error", text=f"the memory at {address:#x} can't be had", address=address)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _segment(code: int, address: int, pc: int, sp: int, where: AddressMap) -> FaultFacts:
    if code == _SI_KERNEL:
        return FaultFacts(
            kind="non-canonical",
            text="an address that no program can have (or one that is not aligned for the instruction): "
            "the pointer holds something else",
        )
    if _is_stack_overflow(address, sp, where):
        stack = where.above(address)
        size = f" of {_bytes(stack.end - stack.start)}" if stack else ""
        return FaultFacts(kind="stack overflow", text=f"the thread's stack{size} is used up", address=address)
    if address == pc:
        return FaultFacts(
            kind="not executable", text=f"a call or jump to {address:#x}, {_at(address, where)}", address=address
        )
    if address < _LOWEST:
        return FaultFacts(
            kind="null",
            text=f"address {address:#x}: a null pointer"
            + (f", and a field {address} bytes behind it" if address else ""),
            address=address,
        )
    if code == _SEGV_ACCERR:
        return FaultFacts(kind="protected", text=f"address {address:#x}, {_at(address, where)}", address=address)
    return FaultFacts(kind="unmapped", text=f"address {address:#x}, {_at(address, where)}", address=address)


def _is_stack_overflow(address: int, sp: int, where: AddressMap) -> bool:
    """The fault is at the stack pointer or a frame's length below it, where the stack's memory has just ended."""
    if not sp - _STACK_STEP <= address <= sp + _STACK_STEP:
        return False
    touched = where.at(address)
    if touched is not None and "w" in touched.permissions:
        return False
    stack = where.above(address)
    return (
        stack is not None
        and "w" in stack.permissions
        and stack.start - address <= _STACK_STEP
        and stack.start <= max(sp, address) + _STACK_STEP
        and (stack.path.startswith("[stack") or not stack.path)
    )


def _at(address: int, where: AddressMap) -> str:
    """What is mapped at an address, or which mapping it missed."""
    if (mapping := where.at(address)) is not None:
        rights = {"r": "readable", "w": "writable", "x": "executable"}
        has = " and ".join(rights[letter] for letter in mapping.permissions[:3] if letter in rights) or "not accessible"
        return f"in {_name(mapping)}, which is {has}"
    below, above = where.below(address), where.above(address)
    past = address - below.end if below else 1 << 64
    before = above.start - address if above else 1 << 64
    if min(past, before) > 1 << 30:
        return "where nothing is mapped, far from everything"
    if past <= before and below:
        return f"where nothing is mapped, {_bytes(past)} behind {_name(below)}"
    assert above is not None
    return f"where nothing is mapped, {_bytes(before)} before {_name(above)}"


def _name(mapping: Mapping) -> str:
    if mapping.path.startswith("[stack"):
        return "the main thread's stack"
    if mapping.path.startswith("[heap"):
        return "the heap"
    if mapping.path:
        return Path(mapping.path).name
    return f"a block of anonymous memory ({_bytes(mapping.end - mapping.start)})"


def _bytes(count: int) -> str:
    """A size for people, binary units."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
