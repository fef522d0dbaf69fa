"""What the tracer must know about a processor, in one small table.

x86-64 is what torch wheels are traced on today. A new processor needs one more `Architecture`: the register
block of PTRACE_GETREGS, the breakpoint instruction, where a function's return address is at its entry, and how
a system call is made.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torchbench_dbg.errors import TargetError


class X8664Registers(ctypes.Structure):
    """`struct user_regs_struct` of x86-64 Linux (sys/user.h)."""

    _fields_ = [
        (name, ctypes.c_ulonglong)
        for name in [
            "r15",
            "r14",
            "r13",
            "r12",
            "rbp",
            "rbx",
            "r11",
            "r10",
            "r9",
            "r8",
            "rax",
            "rcx",
            "rdx",
            "rsi",
            "rdi",
            "orig_rax",
            "rip",
            "cs",
            "eflags",
            "rsp",
            "ss",
            "fs_base",
            "gs_base",
            "ds",
            "es",
            "fs",
            "gs",
        ]
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Registers, instructions and numbers of one processor (System V calling convention)."""

    name: str
    registers: type[ctypes.Structure]
    breakpoint: bytes
    program_counter: str
    stack_pointer: str
    arguments: tuple[str, ...]  # integer argument registers, in order
    system_call: bytes  # the instruction that enters the kernel
    system_call_number: str
    system_call_result: str
    system_call_arguments: tuple[str, ...]
    mprotect: int  # number of mprotect(2)
    emulate: Callable[[Any, bytes, int], bytes | None] | None


_PUSHED = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15")
_ENDBR64 = b"\xf3\x0f\x1e\xfa"


def _emulate_x86_64(block: Any, code: bytes, address: int) -> bytes | None:
    """Do a function's first instruction on the register block, if it is a push or an endbr64 (most are).

    Returns the bytes to write at the new stack pointer (b"": nothing), or None where the instruction must really
    be stepped. Saves a single step, and no thread can slip past a breakpoint that is out for the moment.
    """
    if code.startswith(_ENDBR64):
        block.rip = address + 4
        return b""
    prefixed = code[:1] == b"\x41"
    opcode = code[1] if prefixed and len(code) > 1 else code[0]
    if not 0x50 <= opcode <= 0x57:
        return None
    value: int = getattr(block, _PUSHED[opcode - 0x50 + (8 if prefixed else 0)])
    block.rsp -= 8
    block.rip = address + (2 if prefixed else 1)
    return value.to_bytes(8, "little")


X86_64 = Architecture(
    name="x86_64",
    registers=X8664Registers,
    breakpoint=b"\xcc",
    program_counter="rip",
    stack_pointer="rsp",
    arguments=("rdi", "rsi", "rdx", "rcx", "r8", "r9"),
    system_call=b"\x0f\x05",
    system_call_number="rax",
    system_call_result="rax",
    system_call_arguments=("rdi", "rsi", "rdx", "r10", "r8", "r9"),
    mprotect=10,
    emulate=_emulate_x86_64,
)


def current() -> Architecture:
    """The architecture of this machine; TargetError where tracing is not possible."""
    machine = platform.machine()
    if platform.system() != "Linux" or machine not in ("x86_64", "amd64", "AMD64"):
        raise TargetError(
            f"tdbg traces on Linux x86-64; this is {platform.system()} {machine}.",
            hint="Saved traces can be read anywhere: tdbg show FILE.json",
        )
    return X86_64
