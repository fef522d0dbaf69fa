"""System calls made inside a stopped thread of the inferior."""

from __future__ import annotations

import os
import signal

from torchbench_dbg.trace import ptrace
from torchbench_dbg.trace.architecture import Architecture
from torchbench_dbg.trace.probes import Mapping

_NOT_IN_A_SYSTEM_CALL = (1 << 64) - 1


class SystemCalls:
    """Runs system calls in threads that are stopped outside of one.

    The instruction is borrowed from the vdso (or any executable mapping that has one): nothing is written into
    the process. Signals that arrive meanwhile are kept until `postponed` is asked for them.
    """

    def __init__(self, architecture: Architecture, mappings: list[Mapping], pid: int) -> None:
        self._architecture = architecture
        self._registers = ptrace.Registers(architecture)
        self._instruction = _find_instruction(architecture, mappings, pid)
        self._postponed: list[tuple[int, int]] = []

    def call(self, tid: int, number: int, *arguments: int) -> int:
        """The system call's result (negative: -errno). The registers are as before afterwards."""
        architecture, registers = self._architecture, self._registers
        block = registers.read(tid)
        saved = registers.copy()
        setattr(block, architecture.program_counter, self._instruction)
        setattr(block, architecture.system_call_number, number)
        if hasattr(block, "orig_rax"):
            block.orig_rax = _NOT_IN_A_SYSTEM_CALL  # keep the kernel from restarting an interrupted call
        for name, value in zip(architecture.system_call_arguments, arguments, strict=False):
            setattr(block, name, value)
        registers.write(tid)
        self.step(tid)
        block = registers.read(tid)
        result = int(getattr(block, architecture.system_call_result))
        registers.restore(tid, saved)
        return result - (1 << 64) if result >> 63 else result

    def protect(self, tid: int, start: int, length: int, protection: int) -> None:
        """mprotect in that thread; OSError if the kernel refuses."""
        result = self.call(tid, self._architecture.mprotect, start, length, protection)
        if result < 0:
            raise OSError(-result, f"mprotect in thread {tid}: {os.strerror(-result)}")

    def step(self, tid: int) -> bool:
        """Execute one instruction of a stopped thread; False if it faulted instead (nothing was executed).

        TraceeGone if the thread dies of it.
        """
        while True:
            ptrace.step(tid)
            _, status = os.waitpid(tid, ptrace.WAIT_ALL)
            if not os.WIFSTOPPED(status):
                raise ptrace.TraceeGone(tid)
            number = os.WSTOPSIG(status)
            if status >> 16:
                continue  # an event, such as a group-stop, came first: nothing was executed
            if number == signal.SIGTRAP:
                return True
            if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE):
                return False
            self._postponed.append((tid, number))

    def postponed(self, tid: int) -> int:
        """A signal that came to the thread during a step and is still to be delivered, 0 if none."""
        for position, (waiting, number) in enumerate(self._postponed):
            if waiting == tid:
                del self._postponed[position]
                return number
        return 0


def _find_instruction(architecture: Architecture, mappings: list[Mapping], pid: int) -> int:
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        for mapping in sorted(mappings, key=lambda mapping: mapping.path != "[vdso]"):
            if "x" not in mapping.permissions or mapping.path == "[vsyscall]":
                continue
            if mapping.path != "[vdso]" and "libc" not in mapping.path:
                continue
            text = os.pread(memory, min(mapping.end - mapping.start, 1 << 22), mapping.start)
            if (offset := text.find(architecture.system_call)) >= 0:
                return mapping.start + offset
    finally:
        os.close(memory)
    raise OSError("no system call instruction found in the process")
