"""First instructions done on a register block instead of by the processor."""

from __future__ import annotations

import ctypes
import platform
from typing import Any

import pytest

from torchbench_dbg.errors import TargetError
from torchbench_dbg.trace import architecture
from torchbench_dbg.trace.architecture import X86_64, X8664Registers, _emulate_x86_64

# In the order of the processor's register numbers.
REGISTERS = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()


def block() -> Any:
    made: Any = X8664Registers(rip=0x40_0001)
    for number, name in enumerate(REGISTERS):
        setattr(made, name, 0x0102_0304_0506_0700 + number)
    made.rsp = 0x7FFF_0000_0010
    return made


@pytest.mark.parametrize("number", range(16))
def test_a_push_of_every_register(number: int) -> None:
    made = block()
    code = (b"\x41" if number >= 8 else b"") + bytes([0x50 + number % 8]) + b"\x90\x90"
    pushed = 0x7FFF_0000_0010 if number == 4 else 0x0102_0304_0506_0700 + number  # push %rsp: as it was before
    assert _emulate_x86_64(made, code, 0x40_0000) == pushed.to_bytes(8, "little")
    assert made.rsp == 0x7FFF_0000_0008
    assert made.rip == 0x40_0000 + (2 if number >= 8 else 1)


def test_endbr64_changes_nothing_but_the_program_counter() -> None:
    made, before = block(), block()
    assert _emulate_x86_64(made, b"\xf3\x0f\x1e\xfa\x55", 0x40_0000) == b""
    before.rip = 0x40_0004
    assert bytes(made) == bytes(before)


@pytest.mark.parametrize(
    "code",
    [
        b"\xf3\x0f\x1e\xfb",  # endbr32
        b"\x58\x90\x90\x90",  # pop %rax
        b"\x4f\x90\x90\x90",
        b"\x41\x58\x90\x90",  # pop %r8
        b"\x41\x4f\x90\x90",
        b"\x48\x89\xe5\x90",  # mov %rsp,%rbp
        b"\x66\x50\x90\x90",  # push %ax
        b"\x41",  # the prefix alone, at the end of what could be read
    ],
)
def test_anything_else_is_left_to_the_processor(code: bytes) -> None:
    made = block()
    assert _emulate_x86_64(made, code, 0x40_0000) is None
    assert bytes(made) == bytes(block())


def test_the_register_block_is_that_of_the_kernel() -> None:
    """sys/user.h: 27 words; the offsets are those of <sys/reg.h>."""
    assert ctypes.sizeof(X8664Registers) == 27 * 8
    places = {name: getattr(X8664Registers, name).offset // 8 for name in ("rdi", "rsi", "orig_rax", "rip", "rsp")}
    assert places == {"rdi": 14, "rsi": 13, "orig_rax": 15, "rip": 16, "rsp": 19}


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "x86_64"), ("Linux", "aarch64")])
def test_another_machine_is_refused(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with pytest.raises(TargetError, match=f"this is {system} {machine}"):
        architecture.current()


def test_linux_on_x86_64_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert architecture.current() is X86_64
