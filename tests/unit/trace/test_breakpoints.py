"""What a person types after --break, and the functions that it means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchbench_dbg.errors import UnknownSymbol, UsageError
from torchbench_dbg.trace.breakpoints import python_names, resolve
from torchbench_dbg.trace.libraries import LoadedLibrary

from .test_elf import TEXT
from .test_symbols import index_of

ADD = "_ZN2at6native12_GLOBAL__N_110add_kernelERNS_18TensorIteratorBaseE"
OTHER_ADD = "_ZN2at6native4AVX210add_kernelERNS_18TensorIteratorBaseE"
NAMES = {
    ADD: "at::native::(anonymous namespace)::add_kernel",
    OTHER_ADD: "at::native::AVX2::add_kernel",
    "_ZN2at6native14sub_add_kernelEv": "at::native::sub_add_kernel",
    "_ZN4dnnl10add_kernelEv": "another project's",
    "THPEngine_run_backward": "THPEngine_run_backward",
    "_ZN5torch8autogradL15THPVariable_addEP7_object": "torch::autograd::THPVariable_add",
}


@pytest.fixture
def libraries(tmp_path: Path) -> list[LoadedLibrary]:
    index = index_of(tmp_path, [(symbol, TEXT + 16 * number, True) for number, symbol in enumerate(NAMES)])
    return [LoadedLibrary(number=0, path=tmp_path / "libtorch_cpu.so", index=index, extension=False)]


def found(text: str, libraries: list[LoadedLibrary], told: dict[str, Any] | None = None) -> set[str]:
    return {library.index.name(symbol) for library, symbol in resolve(text, libraries, told).places}


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("add_kernel", {ADD, OTHER_ADD}),
        ("AVX2::add_kernel", {OTHER_ADD}),
        ("at::native::add_kernel", {ADD}),
        ("at::native::(anonymous namespace)::add_kernel", {ADD}),
        ("/sub_.*kernel/", {"_ZN2at6native14sub_add_kernelEv"}),
        ("/native::(sub|xyz)/", {"_ZN2at6native14sub_add_kernelEv"}),
        ("run_backward", {"THPEngine_run_backward"}),
        ("torch._C._EngineBase.run_backward", {"THPEngine_run_backward"}),
    ],
)
def test_names(libraries: list[LoadedLibrary], text: str, symbols: set[str]) -> None:
    assert found(text, libraries) == symbols


def test_a_name_of_older_versions_is_explained(libraries: list[LoadedLibrary]) -> None:
    assert resolve("_base_autograd_backward", libraries).note == (
        "_base_autograd_backward is THPEngine_run_backward in today's PyTorch"
    )


def test_only_what_can_be_a_python_name_is_asked_of_the_target() -> None:
    assert python_names(
        ["torch.add", "at::add", "add", "run_backward", "a.b-c", "torch._C._EngineBase.run_backward"]
    ) == ["torch.add"]


def test_what_the_target_says_of_a_python_name(libraries: list[LoadedLibrary]) -> None:
    assert found("torch.f", libraries, {"kind": "python"}) == set()
    bound = resolve("torch.add", libraries, {"kind": "c", "name": "add"})
    assert {library.index.name(symbol) for library, symbol in bound.places} == {
        "_ZN5torch8autogradL15THPVariable_addEP7_object"
    }
    assert bound.note == "torch.add is bound to THPVariable_add"


@pytest.mark.parametrize(
    ("text", "told", "hint"),
    [
        ("add_kernle", None, "did you mean add_kernel"),
        ("zzzzzz", None, "between slashes"),
        ("torch.ad", {"kind": "none", "close": ["torch.add"]}, "did you mean torch.add?"),
        ("torch.odd", {"kind": "c", "name": "odd"}, "--tree shows"),
        ("::", None, "between slashes"),
    ],
)
def test_unknown_names(libraries: list[LoadedLibrary], text: str, told: dict[str, Any] | None, hint: str) -> None:
    with pytest.raises(UnknownSymbol) as caught:
        resolve(text, libraries, told)
    assert hint in (caught.value.hint or "")


def test_a_wrong_regular_expression(libraries: list[LoadedLibrary]) -> None:
    with pytest.raises(UsageError, match="not a regular expression"):
        resolve("/add(/", libraries)
