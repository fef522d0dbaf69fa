"""What a script writes to its stderr, read on the way: the descriptor stays the user's own.

A seccomp filter (seccomp(2)) stops write(2) and writev(2) on descriptor 2 for the tracer, and nothing else; where the
kernel does not take the filter, texts are not known and the rest works.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections import deque

from torchbench_dbg.trace import ptrace
from torchbench_dbg.trace.architecture import Architecture

KEPT = 1 << 18  # bytes: the last ones
_MOST_PIECES = 64  # of a writev
_WRITE, _WRITEV = 1, 20  # x86-64 system call numbers (asm/unistd_64.h)
_AUDIT_ARCH_X86_64 = 0xC000003E
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_TRACE, _ALLOW = 0x7FF00000, 0x7FFF0000
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
# struct seccomp_data: number at 0, architecture at 4, arguments from 16 on.
_PROGRAM = (
    (_LOAD, 0, 0, 4),
    (_JUMP_IF_EQUAL, 0, 5, _AUDIT_ARCH_X86_64),
    (_LOAD, 0, 0, 0),
    (_JUMP_IF_EQUAL, 1, 0, _WRITE),
    (_JUMP_IF_EQUAL, 0, 2, _WRITEV),
    (_LOAD, 0, 0, 16),
    (_JUMP_IF_EQUAL, 1, 0, 2),
    (_RETURN, 0, 0, _ALLOW),
    (_RETURN, 0, 0, _TRACE),
)
_libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_char_p)]


def install_filter() -> None:
    """In the child, before its program starts. Without the right to (CAP_SYS_ADMIN) no_new_privs is set first."""
    program = b"".join(struct.pack("<HBBI", *instruction) for instruction in _PROGRAM)
    wanted = ctypes.byref(_Filter(len(_PROGRAM), program))
    if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, wanted, 0, 0) != 0:
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, wanted, 0, 0)


class WrittenText:
    """The end of what was written to descriptor 2, by all processes together."""

    def __init__(self, architecture: Architecture) -> None:
        self._registers = ptrace.Registers(architecture)
        self._pieces: deque[bytes] = deque()
        self._size = 0

    @property
    def text(self) -> str:
        return b"".join(self._pieces)[-KEPT:].decode(errors="replace")

    def on_write(self, tid: int) -> None:
        """A thread stands before its write."""
        block = self._registers.read(tid)
        try:
            memory = os.open(f"/proc/{tid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            spans = [(block.rsi, block.rdx)]
            if block.orig_rax == _WRITEV:
                vector = os.pread(memory, 16 * min(block.rdx, _MOST_PIECES), block.rsi)
                spans = [struct.unpack_from("<QQ", vector, at) for at in range(0, len(vector) // 16 * 16, 16)]
            for address, length in spans:
                self._keep(os.pread(memory, min(length, KEPT), address))
        except (OSError, OverflowError):
            return  # the write fails as well
        finally:
            os.close(memory)

    def _keep(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        while self._size - len(self._pieces[0]) > KEPT:
            self._size -= len(self._pieces.popleft())
