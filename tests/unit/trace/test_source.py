"""Places of definitions, in a source tree of a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbench_dbg.trace.record import Function
from torchbench_dbg.trace.source import located

FILES = {
    "aten/src/ATen/native/BinaryOps.cpp": (
        '#include "x.h"\n\nTensor mul(const Tensor& a);\n\nTORCH_IMPL_FUNC(mul_out) (\n  const Tensor& a) {\n}\n'
        "Tensor mul(const Tensor& a) {\n  return mul(a, 1);\n}\n"
    ),
    "aten/src/ATen/native/BinaryOps.h": "Tensor mul(const Tensor& a);\ninline bool is_fast(int a) { return a; }\n",
    "aten/src/ATen/native/cpu/BinaryOpsKernel.cpp": "\n// mul_kernel(\nvoid mul_kernel(TensorIteratorBase& iter) {\n}\n",
    "aten/src/ATen/native/cuda/Mul.cu": "void mul_kernel(int a) {\nvoid only_cuda_kernel(int a) {\n",
    "aten/src/ATen/native/mps/M.cpp": "Tensor mul(int a) {\n",
    "c10/core/Notes.md": "Tensor missing(int a) {\n",
    "elsewhere/Other.cpp": "Tensor missing(int a) {\n",
    "torch/csrc/autograd/engine.cpp": (
        "auto Engine::execute(int a)\n    -> int {\nstatic PyObject* THPVariable_mul(PyObject* self) {\n"
    ),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def place(tree: Path, name: str, layer: str, *, symbol: str = "_Z1f") -> tuple[str, int | None] | None:
    (found,) = located([Function(library=0, offset=0, symbol=symbol, name=name, layer=layer)], tree)
    return (str(Path(found.file).relative_to(tree)), found.line) if found.file else None


NATIVE = "aten/src/ATen/native"


@pytest.mark.parametrize(
    ("name", "layer", "expected"),
    [
        ("at::native::structured_mul_out::impl(at::Tensor const&)", "native", (f"{NATIVE}/BinaryOps.cpp", 5)),
        ("at::native::mul(at::Tensor const&)", "native", (f"{NATIVE}/BinaryOps.cpp", 8)),
        ("at::native::is_fast(int)", "native", (f"{NATIVE}/BinaryOps.h", 2)),
        (
            "at::native::(anonymous namespace)::mul_kernel(at::TensorIteratorBase&)",
            "kernel",
            (f"{NATIVE}/cpu/BinaryOpsKernel.cpp", 3),
        ),
        ("torch::autograd::Engine::execute(int)", "engine", ("torch/csrc/autograd/engine.cpp", 1)),
        ("torch::autograd::THPVariable_mul(_object*)", "binding", ("torch/csrc/autograd/engine.cpp", 3)),
        # The only definition there is, though a CUDA one.
        ("at::native::only_cuda_kernel(int)", "kernel", (f"{NATIVE}/cuda/Mul.cu", 2)),
    ],
)
def test_the_definition_is_found(tree: Path, name: str, layer: str, expected: tuple[str, int]) -> None:
    assert place(tree, name, layer) == expected


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("missing(int)", "native"),  # only in directories and files that are no sources of torch
        ("at::native::mul(at::Tensor const&)", "memory"),  # not a layer that is looked up
        ("at::(anonymous namespace)::wrapper_CPU_mul(at::Tensor const&)", "native"),  # generated
        ("torch::autograd::VariableType::mul(at::Tensor const&)", "autograd"),  # generated
    ],
)
def test_what_has_no_place_in_the_tree(tree: Path, name: str, layer: str) -> None:
    assert place(tree, name, layer) is None


def test_unnamed_functions_have_no_place(tree: Path) -> None:
    assert place(tree, "at::native::mul(at::Tensor const&)", "native", symbol="") is None


def test_a_tree_that_is_none_gives_the_functions_as_they_are(tmp_path: Path) -> None:
    functions = (Function(library=0, offset=0, symbol="_Z1f", name="at::native::mul(int)", layer="native"),)
    assert located(functions, tmp_path / "nowhere") == functions
