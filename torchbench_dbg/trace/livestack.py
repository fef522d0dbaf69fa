"""Which entries are still open when a thread enters a function: the shadow stack, kept honest by the real one.

Only entries stop the program, exits do not. What has returned is found out at the next entry: a frame whose
stack pointer is lower than the new one is gone, and so is one whose return address no longer stands in its
slot (a call that is not probed took its place).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from torchbench_dbg.trace.probes import Probe, ProbeSet

_FARTHEST = 1 << 16  # bytes of stack that are read at an entry; frames beyond are taken for live
_LONGEST_SCAN = 1 << 16  # bytes of a function searched for tail calls


@dataclass(slots=True)
class Entry:
    """One function entry."""

    order: int
    tid: int
    probe: Probe
    stack_pointer: int
    return_address: int
    parent: int  # order of the innermost open entry of that thread, -1 if none
    tail_call: bool  # entered by a jump from the parent, so their return address is one
    python_events: int  # Python events written before this entry
    keys: int | None  # raw DispatchKeySet argument


@dataclass(frozen=True, slots=True)
class Exit:
    """A function that was called from outside the probed libraries returned there."""

    order: int  # of its entry
    tid: int
    python_events: int


class LiveStack:
    """The open entries of one thread."""

    def __init__(self, probes: ProbeSet) -> None:
        self._probes = probes
        self._frames: list[Entry] = []
        self._tail_calls: dict[tuple[int, int], bool] = {}

    def enter(
        self,
        probe: Probe,
        *,
        tid: int,
        order: int,
        stack_pointer: int,
        python_events: int,
        keys: int | None,
    ) -> Entry:
        """Note an entry; its parent is the innermost entry that is still open."""
        memory = self._discard_returned(stack_pointer)
        return_address = struct.unpack_from("<Q", memory)[0] if len(memory) >= 8 else 0
        frames = self._frames
        tail_call = self._is_tail_call(probe, stack_pointer, return_address)
        if not tail_call:
            while frames and frames[-1].stack_pointer == stack_pointer:
                frames.pop()
            self._discard_above_caller(return_address)
        entry = Entry(
            order=order,
            tid=tid,
            probe=probe,
            stack_pointer=stack_pointer,
            return_address=return_address,
            parent=frames[-1].order if frames else -1,
            tail_call=tail_call,
            python_events=python_events,
            keys=keys,
        )
        frames.append(entry)
        return entry

    def _is_tail_call(self, probe: Probe, stack_pointer: int, return_address: int) -> bool:
        frames = self._frames
        while frames and frames[-1].stack_pointer == stack_pointer and frames[-1].return_address == return_address:
            if self._may_tail_call(frames[-1].probe, probe):
                return True
            frames.pop()
        return False

    def _discard_above_caller(self, return_address: int) -> None:
        """If the function that makes this call is among the open ones, what is above it has returned.

        An old return address can survive in the padding of a newer frame, so its slot alone proves little.
        """
        caller = self._probes.function_around(return_address - 1)
        for position in range(len(self._frames) - 1, -1, -1):
            if self._frames[position].probe.address == caller:
                del self._frames[position + 1 :]
                return

    def _discard_returned(self, stack_pointer: int) -> bytes:
        """Drop closed frames; the stack memory from `stack_pointer` on."""
        frames = self._frames
        while frames and frames[-1].stack_pointer < stack_pointer:
            frames.pop()
        reach = frames[0].stack_pointer - stack_pointer + 8 if frames else 8
        memory = self._probes.read(stack_pointer, min(reach, _FARTHEST))
        for position, frame in enumerate(frames):
            offset = frame.stack_pointer - stack_pointer
            if offset + 8 > len(memory):
                continue
            if struct.unpack_from("<Q", memory, offset)[0] != frame.return_address:
                del frames[position:]
                break
        return memory

    def _may_tail_call(self, caller: Probe, callee: Probe) -> bool:
        """Whether the caller's code can leave by a jump to the callee.

        Otherwise two entries with one return address are two calls from one place, such as the loop that
        calls each autograd node.
        """
        pair = (caller.address, callee.address)
        if pair not in self._tail_calls:
            size = min(caller.region.index.sizes[caller.symbol], _LONGEST_SCAN)
            code = self._probes.read(caller.address, size)
            self._tail_calls[pair] = can_jump_to(code, caller.address, callee.address)
        return self._tail_calls[pair]


_INDIRECT_JUMPS = tuple(
    bytes((0xFF, modrm)) for modrm in (*range(0xE0, 0xE8), *range(0x60, 0x68), *range(0xA0, 0xA8), 0x25)
)


def can_jump_to(code: bytes, address: int, target: int) -> bool:
    """Whether x86-64 code at `address` has a direct jump to `target`, or an indirect jump."""
    if any(jump in code for jump in _INDIRECT_JUMPS):
        return True
    position = code.find(b"\xe9")
    while position >= 0:
        if position + 5 <= len(code):
            displacement = struct.unpack_from("<i", code, position + 1)[0]
            if address + position + 5 + displacement == target:
                return True
        position = code.find(b"\xe9", position + 1)
    return False


LONGEST_CALL = 7  # bytes of an x86-64 call instruction without prefixes


def ends_with_call(code: bytes) -> bool:
    """Whether x86-64 code (the `LONGEST_CALL` bytes before an address) can end with a call instruction."""
    if len(code) < LONGEST_CALL:
        return False
    if code[-5] == 0xE8:
        return True
    # call r/m64 is FF /2, with two to seven bytes.
    return any(code[-length] == 0xFF and code[-length + 1] >> 3 & 7 == 2 for length in range(2, LONGEST_CALL + 1))
