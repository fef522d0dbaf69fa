"""Names of C++ functions for people. The mangled ones are from torch 2.13.0's wheel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbench_dbg.trace.names import base_name, demangle, qualified, shorten

ADD = "TypeError_to_NotImplemented_"


@pytest.mark.parametrize(
    ("symbol", "short"),
    [
        ("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE", "at::_ops::add_Tensor::call"),
        ("_ZNK3c104impl13OperatorEntry6lookupENS_14DispatchKeySetE", "c10::impl::OperatorEntry::lookup"),
        ("_ZN2at6native12_GLOBAL__N_110add_kernelERNS_18TensorIteratorBaseERKN3c106ScalarE", "at::native::add_kernel"),
        (
            "_ZN2at6native12_GLOBAL__N_110add_kernelERNS_18TensorIteratorBaseERKN3c106ScalarE.cold",
            "at::native::add_kernel",
        ),
        ("_ZN5torch8autogradL15THPVariable_addEP7_objectS2_S2_", "torch::autograd::THPVariable_add"),
        ("THPEngine_run_backward", "THPEngine_run_backward"),
        ("_ZN2at6TensoraSERKS0_", "at::Tensor::operator="),
        ("_ZNK3c108ArrayRefIlEixEm", "c10::ArrayRef<…>::operator[]"),
    ],
)
def test_shorten(symbol: str, short: str) -> None:
    assert shorten(demangle(symbol)) == short


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            f"_object* torch::autograd::{ADD}<&torch::autograd::THPVariable_add>(_object*)",
            f"torch::autograd::{ADD}<THPVariable_add>",
        ),
        (
            "void c10::function_ref<void (char**, long const*, long, long)>::callback_fn<at::native::AVX2::VectorizedLoop2d"
            "<at::native::(anonymous namespace)::f(int)::{lambda()#1}::operator()() const::{lambda(int)#2}> >(long, char**)",
            "function_ref::callback_fn<AVX2::VectorizedLoop2d>",
        ),
        ("at::native::f(int)::{lambda()#1}::operator()() const", "at::native::f::{lambda#1}::operator()"),
        ("at::native::AVX512::sum<float, (bool)1>(at::Tensor&)", "at::native::AVX512::sum<…>"),
        ("bool operator< <int>(A<int> const&, A<int> const&)", "operator< <…>"),
        ("c10::intrusive_ptr<T>::operator->() const", "c10::intrusive_ptr<…>::operator->"),
        ("std::function<void (int)>::operator()(int) const", "std::function<…>::operator()"),
    ],
)
def test_shorten_demangled(name: str, short: str) -> None:
    assert shorten(name) == short


def test_qualified_and_base_name() -> None:
    name = "void at::native::(anonymous namespace)::add_kernel<float>(at::TensorIteratorBase&, c10::Scalar const&)"
    assert qualified(name) == "at::native::(anonymous namespace)::add_kernel"
    assert base_name(name) == "add_kernel"


def test_what_is_not_mangled_stays() -> None:
    assert demangle("cblas_sgemm") == "cblas_sgemm"
    assert demangle("_Znonsense") == "_Znonsense"


@given(st.text(alphabet="abc:<>(){}[]&*-=#., ~operatlmbdns", max_size=80))
def test_no_text_breaks_the_names(text: str) -> None:
    assert isinstance(shorten(text), str)
    assert isinstance(qualified(text), str)
