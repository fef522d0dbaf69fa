"""Dispatch key sets, read from the argument registers at a function's entry.

A `c10::DispatchKeySet` is one 64-bit word and travels in a register, after the hidden pointer to the result, the
`this` pointer or the `OperatorKernel*`, where there is one (System V ABI; c10/core/DispatchKeySet.h).
"""

from __future__ import annotations

import bisect
from functools import lru_cache
from typing import Any

from torchbench_dbg.trace.architecture import Architecture
from torchbench_dbg.trace.probes import Mapping, Probe

_KEY_SET_FIRST = (
    "EN3c1014DispatchKeySetE",
    "ENS_14DispatchKeySetE",  # members of c10 itself
    "EPN3c1014OperatorKernelENS",
    "EPNS_14OperatorKernelENS",
)
_CANDIDATES = 4  # registers that can hold it
_HIGH_BYTES_OF_POINTERS = frozenset({0x55, 0x56, 0x7E, 0x7F})  # executables and stacks of 64-bit Linux


@lru_cache(maxsize=65536)
def takes_key_set(symbol: str) -> bool:
    """Whether a mangled function's first parameter (after an OperatorKernel*) is a DispatchKeySet."""
    return "DispatchKeySetE" in symbol and any(
        spelling in symbol and "DispatchKeySetE" in symbol[symbol.index(spelling) :] for spelling in _KEY_SET_FIRST
    )


class KeySetReader:
    """Picks the key set out of the argument registers: the first word that can be no pointer."""

    def __init__(self, architecture: Architecture, mappings: list[Mapping]) -> None:
        self._registers = architecture.arguments[:_CANDIDATES]
        self._starts = [mapping.start for mapping in mappings]
        self._ends = [mapping.end for mapping in mappings]

    def read(self, probe: Probe, block: Any) -> int | None:
        """The raw key set at the entry of a probed function, None if it takes none."""
        if probe.takes_keys is None:
            symbol = probe.region.index.name(probe.symbol)
            probe.takes_keys, probe.takes_kernel = takes_key_set(symbol), "OperatorKernel" in symbol
        if not probe.takes_keys:
            return None
        # A functor without state has a null OperatorKernel.
        registers = self._registers[1:] if probe.takes_kernel else self._registers
        for register in registers:
            value: int = getattr(block, register)
            if not self._is_pointer(value):
                return value
        return None

    def _is_pointer(self, value: int) -> bool:
        if value >> 40 in _HIGH_BYTES_OF_POINTERS:
            return True
        position = bisect.bisect_right(self._starts, value) - 1
        return position >= 0 and value < self._ends[position]
