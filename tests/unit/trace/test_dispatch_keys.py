"""Key sets in registers: names as torch 2.13.0's libraries have them, registers made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from torchbench_dbg.trace.architecture import X86_64
from torchbench_dbg.trace.dispatch_keys import KeySetReader, takes_key_set
from torchbench_dbg.trace.probes import Mapping

UNBOXED = (
    "_ZN3c104impl28wrap_kernel_functor_unboxed_INS0_6detail24WrapFunctionIntoFunctor_INS_26CompileTimeFunctionPointer"
    "IFN2at6TensorENS_14DispatchKeySetERKS6_S9_RKNS_6ScalarEEXadL_ZN5torch8autograd12VariableType12_GLOBAL__N_1"
    "10add_TensorES7_S9_S9_SC_EEEES6_NS_4guts8typelist8typelistIJS7_S9_S9_SC_EEEEESD_E4callEPNS_14OperatorKernelES7_S9_S9_SC_"
)
BOXED = (
    "_ZN3c1011BoxedKernel19make_boxed_functionIXadL_ZN12_GLOBAL__N_125pythonTLSSnapshotFallbackERKNS_14OperatorHandleENS_"
    "14DispatchKeySetEPSt6vectorINS_6IValueESaIS8_EEEEEEvPNS_14OperatorKernelES5_S6_SB_"
)
REDISPATCH = "_ZN2at4_ops10add_Tensor10redispatchEN3c1014DispatchKeySetERKNS_6TensorES6_RKNS2_6ScalarE"
CALL = "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE"
STACK, HEAP, KEYS = 0x7FFD_1234_5000, 0x5566_0000_0040, 0x0000_0010_0001_0001


@pytest.mark.parametrize("symbol", [UNBOXED, BOXED, REDISPATCH])
def test_takes_a_key_set(symbol: str) -> None:
    assert takes_key_set(symbol)


@pytest.mark.parametrize(
    "symbol",
    [
        CALL,
        "",
        "_ZN3c1014DispatchKeySet8iteratorC1EPKmhh",
        "_ZNK3c1014DispatchKeySet21highestPriorityTypeIdEv.isra.0",
        "_ZN2at6detail9empty_cpuEN3c108ArrayRefIlEENS1_10ScalarTypeEbSt8optionalINS1_12MemoryFormatEE",
    ],
)
def test_takes_none(symbol: str) -> None:
    assert not takes_key_set(symbol)


def probe_of(symbol: str) -> Any:
    index = SimpleNamespace(name={7: symbol}.__getitem__)
    return SimpleNamespace(takes_keys=None, takes_kernel=None, symbol=7, region=SimpleNamespace(index=index))


def registers(rdi: int, rsi: int, rdx: int, rcx: int = 1, r8: int = 2) -> SimpleNamespace:
    return SimpleNamespace(rdi=rdi, rsi=rsi, rdx=rdx, rcx=rcx, r8=r8)


@pytest.mark.parametrize(
    ("symbol", "block", "keys"),
    [
        (REDISPATCH, registers(STACK, KEYS, 5), KEYS),  # after the hidden pointer to the result
        (REDISPATCH, registers(KEYS, 5, 6), KEYS),  # a result that fits in registers
        (REDISPATCH, registers(STACK, HEAP, STACK, KEYS), KEYS),
        (REDISPATCH, registers(STACK, HEAP, STACK, HEAP, KEYS), None),  # the fifth register is not looked at
        (UNBOXED, registers(0, KEYS, 5), KEYS),  # a null OperatorKernel is no empty key set
        (UNBOXED, registers(STACK, HEAP, KEYS), KEYS),
        (UNBOXED, registers(STACK, 0, KEYS), 0),  # an empty set
        (CALL, registers(KEYS, KEYS, KEYS), None),
    ],
)
def test_the_register_is_chosen(symbol: str, block: SimpleNamespace, keys: int | None) -> None:
    assert KeySetReader(X86_64, []).read(probe_of(symbol), block) == keys


def test_what_the_name_says_is_kept_with_the_probe() -> None:
    probe = probe_of(UNBOXED)
    KeySetReader(X86_64, []).read(probe, registers(0, KEYS, 5))
    assert (probe.takes_keys, probe.takes_kernel) == (True, True)
    probe.region = None  # not asked a second time
    assert KeySetReader(X86_64, []).read(probe, registers(0, KEYS, 5)) == KEYS


@pytest.mark.parametrize(
    ("value", "is_pointer"), [(0x3FFF, False), (0x4000, True), (0x4FFF, True), (0x5000, False), (0x8000, True)]
)
def test_mappings_hold_their_start_and_not_their_end(value: int, is_pointer: bool) -> None:
    mappings = [
        Mapping(start=start, end=start + 0x1000, permissions="rw-p", offset=0, path="") for start in (0x4000, 0x8000)
    ]
    read = KeySetReader(X86_64, mappings).read(probe_of(REDISPATCH), registers(value, 3, 4))
    assert read == (3 if is_pointer else value)
