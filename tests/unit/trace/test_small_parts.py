"""Small parts: registers, key sets, categories, names of nodes, places in a source tree."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torchbench_dbg.trace.architecture import X86_64
from torchbench_dbg.trace.autograd_nodes import forward_operators, node_name
from torchbench_dbg.trace.classify import Category, categorize
from torchbench_dbg.trace.dispatch_keys import KeySetReader, takes_key_set
from torchbench_dbg.trace.livestack import ends_with_call
from torchbench_dbg.trace.probes import Mapping
from torchbench_dbg.trace.record import Function
from torchbench_dbg.trace.source import located

STACK, HEAP = 0x7FFC_0000_1000, 0x5555_0000_1000


@pytest.mark.parametrize(
    ("code", "pushed", "length"),
    [
        (b"\x55\x48\x89\xe5", 5, 1),  # push %rbp
        (b"\x53\x90\x90\x90", 3, 1),  # push %rbx
        (b"\x41\x57\x41\x56", 15, 2),  # push %r15
        (b"\xf3\x0f\x1e\xfa", None, 4),  # endbr64
    ],
)
def test_the_first_instruction_is_done_on_the_registers(code: bytes, pushed: int | None, length: int) -> None:
    block: Any = X86_64.registers()
    for number, name in enumerate("rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()):
        setattr(block, name, number)
    block.rsp = 0x1000
    assert X86_64.emulate is not None
    written = X86_64.emulate(block, code, 0x400)
    assert written == (b"" if pushed is None else pushed.to_bytes(8, "little"))
    assert block.rip == 0x400 + length
    assert block.rsp == (0x1000 if pushed is None else 0xFF8)


@pytest.mark.parametrize("code", [b"\x48\x83\xec\x08", b"\xc3\x90\x90\x90", b"\x41\x89\xc0\x90"])
def test_other_instructions_are_stepped(code: bytes) -> None:
    block: Any = X86_64.registers()
    assert X86_64.emulate is not None
    assert X86_64.emulate(block, code, 0x400) is None
    assert block.rip == 0


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (b"\x90\x90\xe8\x01\x02\x03\x04", True),  # call rel32
        (b"\x90\x90\x90\x90\x90\xff\xd0", True),  # call *%rax
        (b"\x90\x90\x90\x90\xff\x50\x18", True),  # call *0x18(%rax)
        (b"\x90\x90\x90\x90\x90\xff\xe0", False),  # jmp *%rax
        (b"\x90" * 7, False),
        (b"\xe8\x01", False),
    ],
)
def test_a_return_address_has_a_call_before_it(code: bytes, expected: bool) -> None:
    assert ends_with_call(code) is expected


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("_ZNK3c104impl13OperatorEntry6lookupENS_14DispatchKeySetE", True),
        ("_ZN2at4_ops10add_Tensor10redispatchEN3c1014DispatchKeySetERKNS_6TensorES6_RKNS2_6ScalarE", True),
        ("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE", False),
        ("_ZN5torch8autograd12VariableType12_GLOBAL__N_110add_TensorEN3c1014DispatchKeySetERKN2at6TensorE", True),
    ],
)
def test_functions_that_take_a_key_set(symbol: str, expected: bool) -> None:
    assert takes_key_set(symbol) is expected


@pytest.mark.parametrize(
    ("registers", "with_kernel", "keys"),
    [
        ({"rdi": STACK, "rsi": 0x10001, "rdx": 0}, False, 0x10001),  # hidden result, then the set
        ({"rdi": 0x1000010001, "rsi": HEAP, "rdx": 0}, False, 0x1000010001),
        ({"rdi": HEAP, "rsi": 0, "rdx": 0}, False, 0),  # an empty set
        ({"rdi": 0, "rsi": 0x1000010001, "rdx": 0}, True, 0x1000010001),  # a functor without state
        ({"rdi": STACK, "rsi": HEAP, "rdx": 0x10001}, True, 0x10001),
        ({"rdi": 0x900010, "rsi": 0x10001, "rdx": 0}, False, 0x10001),  # a heap at low addresses
    ],
)
def test_the_key_set_is_the_first_word_that_is_no_pointer(
    registers: dict[str, int], with_kernel: bool, keys: int
) -> None:
    low = Mapping(start=0x900000, end=0xA00000, permissions="rw-p", offset=0, path="[heap]")
    probe: Any = SimpleNamespace(takes_keys=True, takes_kernel=with_kernel)
    block = SimpleNamespace(rcx=0, **registers)
    assert KeySetReader(X86_64, [low]).read(probe, block) == keys


@pytest.mark.parametrize(
    ("symbol", "category"),
    [
        (b"_ZN2at6native12_GLOBAL__N_110add_kernelERNS_18TensorIteratorBaseERKN3c106ScalarE", Category.CORE),
        (
            b"_ZN2at6native12_GLOBAL__N_110add_kernelERNS_18TensorIteratorBaseERKN3c106ScalarE.cold",
            Category.THIRD_PARTY,
        ),
        (b"THPEngine_run_backward", Category.CORE),
        (b"cblas_sgemm", Category.BLAS),
        (b"sgemm_", Category.BLAS),
        (b"dnnl_primitive_execute", Category.BLAS),
        (b"_ZN4dnnl4impl3cpu3x6413jit_generator8postambleEv", Category.THIRD_PARTY),
        (b"_ZN6google8protobuf7Message5ClearEv", Category.THIRD_PARTY),
        (b"_ZNSt6vectorIiSaIiEE9push_backERKi", Category.NOISE),
        (b"_ZN3c1010TensorImplD1Ev", Category.NOISE),
        (b"mkl_blas_mc3_xscopy", Category.THIRD_PARTY),
        (b"_GLOBAL__sub_I_add.cpp", Category.THIRD_PARTY),
    ],
)
def test_which_functions_are_watched(symbol: bytes, category: Category) -> None:
    assert categorize(symbol, plain_names_are_core=False) == category


def test_plain_names_are_an_extensions_own() -> None:
    assert categorize(b"my_kernel", plain_names_are_core=True) == Category.CORE
    assert categorize(b"my_kernel", plain_names_are_core=False) == Category.THIRD_PARTY


def test_nodes_are_named_and_numbered_as_torchgen_does() -> None:
    assert node_name("mul.Tensor") == "MulBackward"
    assert node_name("nll_loss_forward") == "NllLossBackward"
    operators = forward_operators("- name: add.Tensor(Tensor a)\n  self: grad\n\n- name: add.Scalar(Tensor a)\n")
    assert (operators["AddBackward0"], operators["AddBackward1"]) == ("aten::add.Tensor", "aten::add.Scalar")
    assert operators["AccumulateGrad"] == "a leaf that requires grad"


def function(name: str, layer: str) -> Function:
    return Function(library=0, offset=0, symbol="_Z1x", name=name, layer=layer)


def test_functions_are_found_in_a_source_tree(tmp_path: Path) -> None:
    native = tmp_path / "aten/src/ATen/native"
    (native / "cpu").mkdir(parents=True)
    (native / "cuda").mkdir()
    (native / "BinaryOps.cpp").write_text(
        "Tensor mul_kernel(int);\n\nTORCH_IMPL_FUNC(mul_out) (\n  const Tensor& self) {}\n"
    )
    (native / "cpu" / "Kernels.cpp").write_text("// mul_kernel\nvoid mul_kernel(int a) {\n  mul_kernel(a);\n}\n")
    (native / "cuda" / "A.cu").write_text("void mul_kernel(int a) {\n")
    places = [
        (Path(each.file or "").name, each.line)
        for each in located(
            [
                function("at::native::structured_mul_out::impl(at::Tensor const&)", "native"),
                function("at::native::(anonymous namespace)::mul_kernel(int)", "kernel"),
                function("at::_ops::mul_Tensor::call(int)", "dispatcher"),
                function("at::native::elsewhere(int)", "native"),
            ],
            tmp_path,
        )
    ]
    assert places == [("BinaryOps.cpp", 3), ("Kernels.cpp", 2), ("", None), ("", None)]
