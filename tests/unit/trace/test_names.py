"""Names of C++ functions for people. The mangled ones are from torch 2.13.0's wheel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbench_dbg.trace import names
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
        (
            "_ZN2at4_ops10add_Tensor10redispatchEN3c1014DispatchKeySetERKNS_6TensorES6_RKNS2_6ScalarE",
            "at::_ops::add_Tensor::redispatch",
        ),
        (
            "_ZN2at12_GLOBAL__N_122wrapper_CPU_add_TensorERKNS_6TensorES3_RKN3c106ScalarE",
            "at::wrapper_CPU_add_Tensor",
        ),
        (
            "_ZN5torch8autogradL28TypeError_to_NotImplemented_IXadL_ZNS0_L15THPVariable_addEP7_objectS3_S3_EEEES3_S3_S3_S3_",
            f"torch::autograd::{ADD}<THPVariable_add>",
        ),
        ("_ZN2at6native7cpublas4copyElPKdlPdl", "at::native::cpublas::copy"),
        ("_ZN2at6native7cpublas12_GLOBAL__N_16scale_IiiEEvllT0_PT_l", "at::native::cpublas::scale_<…>"),
        (
            "_ZN2at6native7DEFAULT36serial_vec_log_softmax_lastdim_rangeIN3c108BFloat16EEEvPKT_PS5_llll",
            "at::native::DEFAULT::serial_vec_log_softmax_lastdim_range<…>",
        ),
        (
            "_ZN3c1012function_refIFvPPcPKlllEE11callback_fnIN2at6native4AVX216VectorizedLoop2dIRFddERFNS8_3vec4AVX210"
            "VectorizedIdEESH_EEEEEvlS2_S4_ll",
            "function_ref::callback_fn<AVX2::VectorizedLoop2d>",
        ),
        (
            "_ZN3c104impl28wrap_kernel_functor_unboxed_INS0_6detail24WrapFunctionIntoFunctor_INS_26CompileTimeFunction"
            "PointerIFN2at6TensorENS_14DispatchKeySetERKS6_NS_8ArrayRefIlEESB_SB_bbSt8optionalIlEEXadL_ZN5torch8autograd"
            "12VariableType12_GLOBAL__N_110avg_pool3dES7_S9_SB_SB_SB_bbSD_EEEES6_NS_4guts8typelist8typelistIJS7_S9_SB_SB_"
            "SB_bbSD_EEEEESE_E4callEPNS_14OperatorKernelES7_S9_SB_SB_SB_bbSD_",
            "c10::impl::wrap_kernel_functor_unboxed_<avg_pool3d>::call",
        ),
        (
            "_ZN3c104impl28wrap_kernel_functor_unboxed_INS0_6detail31WrapFunctionIntoRuntimeFunctor_IPFbvEbNS_4guts8"
            "typelist8typelistIJEEEEES4_E4callEPNS_14OperatorKernelENS_14DispatchKeySetE",
            "c10::impl::wrap_kernel_functor_unboxed_<…>::call",
        ),
        ("_ZN4c10d10toFunctionIfLi0EEEPFvPvPKvS3_mERKNS_8ReduceOpE.isra.0", "c10d::toFunction<…>"),
        (
            "_ZSt12construct_atIN5torch8inductor17ParameterMetadataEJS2_EEDTgsnwcvPvLi0E_T_pispcl7declvalIT0_EEEEPS4_"
            "DpOS5_.isra.0",
            "std::construct_at<…>",
        ),
        (
            "_ZN2at8internal15invoke_parallelIZNS_12parallel_forISt8functionIFvllEEEEvlllRKT_EUlllE_EEvlllS8_._omp_fn.0",
            "at::internal::invoke_parallel<…>",
        ),
        (
            "_ZNSt17_Function_handlerIFmPKvmEPS2_E9_M_invokeERKSt9_Any_dataOS1_Om",
            "std::_Function_handler<…>::_M_invoke",
        ),
        ("_ZN3c10eqERKNS_4TypeES2_", "c10::operator=="),
        ("_ZNK10THPPointerI6_frameEcvbEv", "THPPointer<…>::operator bool"),
        ("_ZZ25dynamo__custom_eval_frameENKUlvE_clEv", "dynamo__custom_eval_frame::{lambda#1}::operator()"),
        (
            "_ZZN5torch3jit12_GLOBAL__N_116ProcessSliceNodeEPNS0_4NodeEiENKUlT_E_clImEEDaS4_.isra.0",
            "torch::jit::ProcessSliceNode::{lambda#1}::operator()<…>",
        ),
        ("_ZNK4c10d5Store8listKeysB5cxx11Ev", "c10d::Store::listKeys"),
        ("_ZN8pybind1112cpp_function10dispatcherEP7_objectPKS2_mS2_", "pybind11::cpp_function::dispatcher"),
        ("_ZL22THPEngine_run_backwardP7_objectS0_S0_", "THPEngine_run_backward"),
        ("_ZN5torch6dynamo12_GLOBAL__N_113GuardAccessorD2Ev", "torch::dynamo::GuardAccessor::~GuardAccessor"),
        ("_ZNK3c106Scalar4typeEv.isra.0", "c10::Scalar::type"),
        (
            "_ZThn200_NK5torch4lazy7SizeAdd14getStaticValueEv",
            "non-virtual thunk to torch::lazy::SizeAdd::getStaticValue",
        ),
        ("sgemm_", "sgemm_"),
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
        (
            "at::Tensor c10::impl::make_boxed_from_unboxed_functor<c10::F<at::Tensor (at::Tensor), "
            "&(at::Tensor at::native::(anonymous namespace)::qcat_out<true>(at::Tensor))>, false>::call(int)",
            "c10::impl::make_boxed_from_unboxed_functor<qcat_out>::call",
        ),
        ("void f<int>(Wrapper<&g>)", "f<…>"),  # what a parameter wraps is not what the function wraps
        ("bool is_operator<int>(int)", "is_operator<…>"),
        ("std::enable_if<((sizeof (int))<(8)), int>::type at::f<((1)>(0))>(int)", "at::f<…>"),
        ("decltype ((declval<A>)()->f()) at::g<A>(A)", "at::g<…>"),
        ("decltype(auto) std::__do_visit<int>(int)", "std::__do_visit<…>"),
        ("A::operator std::vector<int>() const", "A::operator std::vector<…>"),
        ("operator new[](unsigned long)", "operator new[]"),
        ("f(int)::{unnamed type#2}::g()", "f::{unnamed type#2}::g"),
        ("c10::f(int) [clone .isra.0]", "c10::f"),
        ("int (*A<int>::pointer(long))(char)", "A<…>::pointer"),
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
    assert demangle("_Z\udc80") == "_Z\udc80"


def test_without_a_cpp_runtime_names_stay_mangled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_demangler", lambda: None)
    assert demangle.__wrapped__("_ZN1a1fEv.isra.0") == "_ZN1a1fEv"


@pytest.mark.parametrize("tag", ["[abi:cxx11]", "[clone .part.0]"])
def test_a_tag_is_no_part_of_the_name_that_a_breakpoint_is_set_by(tag: str) -> None:
    assert qualified(f"c10d::Store::listKeys{tag}() const") == "c10d::Store::listKeys"


@given(st.text(alphabet="abc:<>(){}[]&*-=#., ~operatlmbdns", max_size=80))
def test_no_text_breaks_the_names(text: str) -> None:
    assert isinstance(shorten(text), str)
    assert isinstance(qualified(text), str)


@given(st.text(max_size=80))
def test_nor_does_any_text_at_all(text: str) -> None:
    assert isinstance(shorten(text), str)
    assert isinstance(base_name(demangle(text)), str)


PLAIN = st.sampled_from(["a", "at::f", "::", "{lambda(int)#1}", "&", " ", "*", ", ", "#1", "(anonymous namespace)::"])
WORDS = ["callback_fn", "operator()", "operator->", "operator<< ", "&g", "decltype", "make_boxed_from_unboxed_functor"]
BALANCED = st.recursive(
    PLAIN | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=4).map("".join)
        | st.tuples(st.sampled_from(["<>", "()", "[]", "{}"]), inner).map(lambda it: it[0][0] + it[1] + it[0][1])
    ),
    max_leaves=25,
)


def is_balanced(text: str) -> bool:
    for operator in ("operator()", "operator->", "operator<<"):
        text = text.replace(operator, "")
    expected: list[str] = []
    for character in text:
        if character in "<([{":
            expected.append(">)]}"["<([{".index(character)])
        elif character in ">)]}" and (not expected or expected.pop() != character):
            return False
    return not expected


@given(BALANCED.filter(is_balanced))
def test_brackets_that_match_still_match_when_shortened(text: str) -> None:
    assert is_balanced(shorten(text))
    assert is_balanced(qualified(text))
