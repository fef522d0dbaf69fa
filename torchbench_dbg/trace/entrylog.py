"""What happens at a probe: the entry is noted, the instruction under the breakpoint executed, the thread goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torchbench_dbg.trace import ptrace
from torchbench_dbg.trace.architecture import Architecture
from torchbench_dbg.trace.dispatch_keys import KeySetReader
from torchbench_dbg.trace.injection import SystemCalls
from torchbench_dbg.trace.livestack import LONGEST_CALL, Entry, Exit, LiveStack, ends_with_call
from torchbench_dbg.trace.probes import ExitProbe, Probe, ProbeSet
from torchbench_dbg.trace.processor import SharedProcessor


@dataclass(slots=True, kw_only=True)
class EntryLog:
    """Function entries and exits in order of time, of all threads.

    The order of Python calls and C++ entries is exact: with each the count of Python events is noted that the
    inferior has written so far (inferior/ring.py).
    """

    probes: ProbeSet
    calls: SystemCalls
    architecture: Architecture
    count_python_events: Callable[[], int]
    key_sets: KeySetReader
    max_stops: int
    max_hits: int  # of one function, after which its probe is taken back
    processor: SharedProcessor
    remove_probes: Callable[[int], None] = lambda _tid: None  # takes all probes back, from a stopped thread

    registers: ptrace.Registers = field(init=False)
    timeline: list[Entry | Exit] = field(default_factory=list)
    stops: int = 0
    cut: bool = False  # max_stops was reached
    busiest: dict[int, int] = field(default_factory=dict)  # address -> hits, of probes taken back
    _stacks: dict[int, LiveStack] = field(default_factory=dict)
    _outermost: dict[int, int] = field(default_factory=dict)  # thread -> order of the entry that Python called last

    def __post_init__(self) -> None:
        self.registers = ptrace.Registers(self.architecture)

    def knows(self, tid: int) -> bool:
        """Whether a thread has entered a function."""
        return tid in self._stacks

    def note(self, tid: int, probe: Probe) -> None:
        """Add an entry. A part of a function that was jumped into is none: its probe is taken back."""
        block, architecture = self.registers.block, self.architecture
        stack_pointer = getattr(block, architecture.stack_pointer)
        if not probe.is_named and not self._was_called(stack_pointer):
            self.probes.disarm(probe)
            return
        stack = self._stacks.get(tid)
        if stack is None:
            stack = self._stacks[tid] = LiveStack(self.probes)
        keys = self.key_sets.read(probe, block)
        entry = stack.enter(
            probe,
            tid=tid,
            order=self.stops,
            stack_pointer=stack_pointer,
            python_events=self.count_python_events(),
            keys=keys,
        )
        self.timeline.append(entry)
        self.probes.await_exit(entry.return_address, tid=tid, stack_pointer=stack_pointer + 8, order=self.stops)
        self.processor.enter_native(tid)
        if entry.parent < 0:
            self._outermost[tid] = entry.order
        self.stops += 1
        probe.hits += 1

    def _was_called(self, stack_pointer: int) -> bool:
        """Whether a return address stands at the stack pointer: one with a call instruction before it."""
        return_address = int.from_bytes(self.probes.read(stack_pointer, 8), "little")
        return ends_with_call(self.probes.read(return_address - LONGEST_CALL, LONGEST_CALL))

    def go_on_from(self, tid: int, probe: Probe) -> None:
        """Execute the instruction under the probe and go on."""
        if probe.hits >= self.max_hits and probe.armed:
            self.probes.disarm(probe)
            self.busiest[probe.address] = probe.hits
        if self.stops >= self.max_stops and not self.cut:
            self.cut = True
            self._rewind(tid, probe)
            self.remove_probes(tid)
            ptrace.resume(tid)
            return
        if probe.armed and self._emulate(tid, probe):
            return
        self._rewind(tid, probe)
        if probe.armed:
            self.probes.lift(probe)
            if self.calls.step(tid):
                self.probes.replant(probe)
            else:
                # A fault at the first instruction: let it happen again, without the probe in its way.
                self.probes.disarm(probe)
        ptrace.resume(tid, self.calls.postponed(tid))

    def _emulate(self, tid: int, probe: Probe) -> bool:
        block, emulate = self.registers.block, self.architecture.emulate
        pushed = emulate(block, probe.original, probe.address) if emulate else None
        if pushed is None:
            return False
        if pushed:
            try:
                self.probes.write(getattr(block, self.architecture.stack_pointer), pushed)
            except OSError:  # the end of the stack: the real instruction must fault
                self.registers.read(tid)
                return False
        self.registers.write(tid)
        ptrace.resume(tid)
        return True

    def _rewind(self, tid: int, probe: Probe) -> None:
        setattr(self.registers.block, self.architecture.program_counter, probe.address)
        self.registers.write(tid)

    def on_return(self, tid: int, probe: ExitProbe) -> None:
        stack_pointer = getattr(self.registers.block, self.architecture.stack_pointer)
        setattr(self.registers.block, self.architecture.program_counter, probe.address)
        self.registers.write(tid)
        order = self.probes.leave(probe, tid=tid, stack_pointer=stack_pointer)
        if order is not None:
            self.timeline.append(Exit(order, tid, self.count_python_events()))
            if self._outermost.get(tid) == order:
                self.processor.leave_native(tid)
        self.probes.lift_exit(probe)
        if probe.waiting:
            self.calls.step(tid)
            self.probes.replant_exit(probe)
        ptrace.resume(tid, self.calls.postponed(tid))
