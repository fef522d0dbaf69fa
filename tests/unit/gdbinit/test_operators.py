"""Operators by their names, in an ELF file that is written here."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import tdbg_operators as operators
from tdbg_operators import Library, Operator

SCHEMAS = (
    b"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\0"
    b"aten::add.Scalar(Tensor self, Scalar other) -> Tensor\0add.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\0"
    b"add.str(str a, str b) -> str\0badd.Other(Tensor self) -> Tensor\0add(sparse, dense) is not supported\0"
    b"mm(Tensor self, Tensor mat2) -> Tensor\0"
)
NAMES = (
    b"\0_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE\0_ZN2at4_ops10add_Scalar4callERKNS_6TensorE\0"
    b"_ZN2at4_ops7add_out4callERKNS_6TensorE\0_ZN2at4_ops2mm4callERKNS_6TensorES4_\0"
)
LOCAL = NAMES + b"_ZN5torch8autogradL15THPVariable_addEP7_objectS2_S2_\0_ZN2at6native12_GLOBAL__N_110add_kernelEv\0"
YAML = """
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  structured_delegate: add.out
  dispatch:
    SparseCPU, SparseCUDA: add_sparse

- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    SparseCPU: add_out_sparse_cpu
    CPU, CUDA: add_out

- func: relu(Tensor self) -> Tensor
"""


def elf(path: Path, sections: dict[bytes, bytes]) -> Path:
    """A file with these sections, and nothing else that a linker would want."""
    names = b"\0" + b"\0".join([*sections, b".shstrtab"]) + b"\0"
    contents, table = b"", [bytes(64)]
    for name, data in {**sections, b".shstrtab": names}.items():
        place = (names.index(b"\0" + name + b"\0") + 1, 64 + len(contents), len(data))
        table.append(struct.pack("<IIQQQQIIQQ", place[0], 3, 0, 0, place[1], place[2], 0, 0, 1, 0))
        contents += data
    header = b"\x7fELF\x02\x01" + bytes(34) + struct.pack("<Q", 64 + len(contents)) + bytes(10)
    header += struct.pack("<HHH", 64, len(table), len(table) - 1)
    path.write_bytes(header + contents + b"".join(table))
    return path


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(
        str(elf(tmp_path / "libtorch.so", {b".rodata": b"\0" + SCHEMAS, b".dynstr": NAMES, b".strtab": LOCAL}))
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("add", [("add", "Scalar"), ("add", "Tensor")]),
        ("aten::add", [("add", "Scalar"), ("add", "Tensor")]),
        ("add.Tensor", [("add", "Tensor")]),
        ("aten::add.out", [("add", "out")]),
        ("add_Tensor", [("add_Tensor", "")]),
        ("mm", [("mm", "")]),
        ("add.str", []),  # of TorchScript only: nothing in at::_ops
        ("dd", []),
        ("at::native::add", []),
        ("", []),
    ],
)
def test_operators(library: Library, text: str, found: list[tuple[str, str]]) -> None:
    assert operators.operators(text, [library]) == [Operator(*each) for each in found]


def test_names_of_an_operator() -> None:
    assert Operator("add", "Tensor").schema_name == "aten::add.Tensor"
    assert Operator("add", "Tensor").unambiguous_name == "add_Tensor"
    assert (Operator("mm", "").schema_name, Operator("mm", "").unambiguous_name) == ("aten::mm", "mm")


def test_mangled_names_by_one_of_their_components(library: Library) -> None:
    assert library.mangled("THPVariable_add") == {"_ZN5torch8autogradL15THPVariable_addEP7_objectS2_S2_"}
    assert library.mangled("add_kernel") == {"_ZN2at6native12_GLOBAL__N_110add_kernelEv"}
    assert library.mangled("kernel") == set()


def test_a_stripped_library_has_what_is_exported(tmp_path: Path) -> None:
    library = Library(str(elf(tmp_path / "libtorch.so", {b".rodata": SCHEMAS, b".dynstr": NAMES})))
    assert library.is_stripped
    assert library.mangled("THPVariable_add") == set()
    assert operators.operators("mm", [library]) == [Operator("mm", "")]


@pytest.mark.parametrize(
    "content", [b"", b"no ELF at all", b"\x7fELF\x02\x01" + bytes(20), b"\x7fELF\x02\x01" + b"\xff" * 80]
)
def test_files_that_are_no_libraries(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "libtorch.so"
    path.write_bytes(content)
    with pytest.raises((ValueError, OSError)):
        Library(str(path))


def test_suggestions(library: Library) -> None:
    assert operators.suggestions("adt", [library]) == ["add"]
    assert operators.suggestions("zzz", [library]) == []


def test_kernels_of_the_dispatch() -> None:
    table = operators.NativeFunctions(YAML)
    assert table.kernels(Operator("add", "Tensor")) == ["add_out"]
    assert table.kernels(Operator("relu", "")) == ["relu"]
    assert table.kernels(Operator("nothing", "")) == []


@pytest.mark.parametrize(
    ("name", "node"), [("add", "AddBackward"), ("add_", "AddBackward"), ("log_softmax", "LogSoftmaxBackward")]
)
def test_nodes(name: str, node: str) -> None:
    assert operators.node_prefix(name) == node
