"""Dispatch key sets in names. A set is one word, and what its bits mean differs between versions of torch.

c10/core/DispatchKeySet.h: the lowest bits are the backends, the functionalities come behind them. A functionality
that is there once for each backend has its key named after both: Dense and CPU make CPU, AutogradFunctionality and
CPU make AutogradCPU. The highest functionality wins, and of its backends the highest.

Nothing here imports gdb.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tdbg_layouts import NEWEST, OLDEST

Version = tuple  # (major, minor)

# In the order of their bits, of c10/core/DispatchKey.h; `name@FIRST` and `name<END` say in which versions.
BACKENDS = (
    "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy Meta<2.1 MTIA@2.0 MAIA@2.8 PrivateUse1 PrivateUse2 PrivateUse3 Meta@2.1"
)
FUNCTIONALITIES = (
    "Dense FPGA ORT<2.4 MAIA@2.4<2.8 Vulkan Metal Quantized CustomRNGKeyId MkldnnCPU Sparse SparseCsrCPU<2.3 "
    "SparseCsrCUDA<2.3 SparseCsr@2.3 NestedTensor BackendSelect Fake@2.13 Python Fake<2.13 "
    "FuncTorchDynamicLayerBackMode Functionalize Named<2.13 Conjugate Negative ZeroTensor ADInplaceOrView "
    "AutogradOther AutogradFunctionality AutogradNestedTensor Tracer AutocastCPU AutocastMTIA@2.7 AutocastMAIA@2.8 "
    "AutocastXPU AutocastIPU@2.1 AutocastHPU@2.0 AutocastXLA@2.1 AutocastMPS@2.5 AutocastCUDA "
    "AutocastPrivateUse1@2.1 FuncTorchBatched BatchedNestedTensor@2.2 FuncTorchVmapMode Batched VmapMode "
    "FuncTorchGradWrapper DeferredInit PythonTLSSnapshot FuncTorchDynamicLayerFrontMode TESTING_ONLY_GenericWrapper "
    "TESTING_ONLY_GenericMode PreDispatch@2.1 PythonDispatcher"
)
# C10_FORALL_FUNCTIONALITY_KEYS: what their keys are called in front of the backend.
PER_BACKEND = "Dense Quantized Sparse SparseCsr@2.3 NestedTensor AutogradFunctionality"
PREFIXES = {"Dense": "", "AutogradFunctionality": "Autograd"}


class KeyTable(NamedTuple):
    """What the bits mean: backends from bit 0 on, functionalities behind; `prefixes` of those with backends."""

    backends: Sequence[str]
    functionalities: Sequence[str]
    prefixes: dict

    def names(self, raw: int) -> list[str]:
        """The keys in a set, the weakest first; the last one wins. Bits without a name are told as numbers."""
        count = len(self.backends)
        backends = [name for bit, name in enumerate(self.backends) if raw >> bit & 1]
        found = []
        for bit in range(count, 64):
            if raw >> bit & 1:
                found.extend(self._keys(bit - count, backends))
        return found or ["%sBit" % name for name in backends]  # which are no keys by themselves

    def _keys(self, place: int, backends: list[str]) -> list[str]:
        if place >= len(self.functionalities):
            return ["bit %d" % (place + len(self.backends))]
        name = self.functionalities[place]
        if name not in self.prefixes:
            return [name]
        return [self.prefixes[name] + backend for backend in backends] or [name]

    def has(self, raw: int, functionality: str) -> bool:
        """Whether a functionality is in a set."""
        return functionality in self.functionalities and bool(
            raw >> (len(self.backends) + self.functionalities.index(functionality)) & 1
        )


def table_of(version: Version) -> KeyTable:
    """The table of a version; of one that is not known, the nearest known one's."""
    version = min(max(version, OLDEST), NEWEST)
    prefixes = {name: PREFIXES.get(name, name) for name in _of_version(PER_BACKEND, version)}
    return KeyTable(_of_version(BACKENDS, version), _of_version(FUNCTIONALITIES, version), prefixes)


def table_of_enumerations(backends: Sequence[str], keys: Sequence[str]) -> KeyTable:
    """The table by the names in c10::BackendComponent and c10::DispatchKey, as debug information has them."""
    names = list(keys)
    functionalities = names[1 : names.index("EndOfFunctionalityKeys")]
    functionalities = [name for name in functionalities if name not in ("CatchAll", "Undefined")]
    per_backend = [name for name in functionalities if "StartOf%sBackends" % name in names]
    ends = ("InvalidBit", "EndOfBackendKeys")
    bits = [name[: -len("Bit")] for name in backends if name.endswith("Bit") and name not in ends]
    return KeyTable(bits, functionalities, {name: PREFIXES.get(name, name) for name in per_backend})


def _of_version(table: str, version: Version) -> list[str]:
    found = []
    for entry in table.split():
        entry, _, end = entry.partition("<")
        name, _, first = entry.partition("@")
        if (not first or version >= _version(first)) and (not end or version < _version(end)):
            found.append(name)
    return found


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)
