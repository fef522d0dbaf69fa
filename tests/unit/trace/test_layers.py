"""Which layer a function belongs to: names as torch 2.13.0's libraries have them."""

from __future__ import annotations

import pytest

from torchbench_dbg.trace.layers import LAYERS, autograd_node, dispatched_operator, layer_of


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        (
            "_object* torch::autograd::TypeError_to_NotImplemented_<&torch::autograd::THPVariable_add>(_object*)",
            "binding",
        ),
        ("torch::autograd::THPVariable_add(_object*, _object*, _object*)", "binding"),
        ("THPEngine_run_backward(_object*, _object*, _object*)", "binding"),
        ("pybind11::cpp_function::dispatcher(_object*, _object*, _object*)", "binding"),
        ("at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&, c10::Scalar const&)", "dispatcher"),
        ("at::_ops::add_Tensor::redispatch(c10::DispatchKeySet, at::Tensor const&)", "dispatcher"),
        ("c10::impl::OperatorEntry::lookup(c10::DispatchKeySet) const", "dispatcher"),
        ("c10::impl::wrap_kernel_functor_unboxed_<X<&torch::autograd::VariableType::f> >::call(int)", "dispatcher"),
        ("torch::autograd::VariableType::(anonymous namespace)::add_Tensor(c10::DispatchKeySet)", "autograd"),
        ("torch::ADInplaceOrView::(anonymous namespace)::add__Tensor(c10::DispatchKeySet)", "autograd"),
        ("at::autocast::WrapFunction_<int>::call(at::Tensor const&)", "mode"),
        ("at::functorch::functorchFallback(c10::OperatorHandle const&)", "mode"),
        ("torch::autograd::Engine::execute(std::vector<int>)", "engine"),
        ("torch::autograd::python::PythonEngine::execute(std::vector<int>)", "engine"),
        ("torch::autograd::generated::MulBackward0::apply(std::vector<at::Tensor>&&)", "node"),
        ("torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)", "node"),
        ("at::(anonymous namespace)::wrapper_CPU_add_Tensor(at::Tensor const&)", "wrapper"),
        ("at::(anonymous namespace)::structured_ufunc_add_CPU_functional::set_output_raw_strided(long)", "wrapper"),
        ("at::meta::structured_add_Tensor::meta(at::Tensor const&)", "iterator"),
        ("at::TensorIteratorBase::build(at::TensorIteratorConfig&)", "iterator"),
        ("at::native::structured_ufunc_add_CPU::impl(at::Tensor const&)", "native"),
        ("at::native::DispatchStubImpl::get_call_ptr(c10::DeviceType, void*)", "stub"),
        ("at::native::(anonymous namespace)::add_kernel(at::TensorIteratorBase&, c10::Scalar const&)", "kernel"),
        ("at::native::(anonymous namespace)::LayerNormKernelImpl(at::Tensor const&)", "kernel"),
        ("at::native::AVX512::copy_kernel(at::TensorIterator&, bool)", "kernel"),
        ("void c10::function_ref<void (char**)>::callback_fn<at::native::AVX2::VectorizedLoop2d<int> >(long)", "loop"),
        ("void at::native::AVX2::vectorized_loop<int>(char**, long)", "loop"),
        ("void at::native::cpublas::gemm(at::native::TransposeType, long)", "blas"),
        ("at::detail::empty_cpu(c10::ArrayRef<long>)", "memory"),
        ("c10::alloc_cpu(unsigned long)", "memory"),
        ("c10::TensorImpl::device() const", "core"),
        ("at::functionalization::impl::getFunctionalizationReapplyViewsTLS()", "core"),
    ],
)
def test_layer(name: str, layer: str) -> None:
    assert layer_of(name) == layer
    assert layer in LAYERS


def test_blas_and_extensions_are_known_by_where_they_are() -> None:
    assert layer_of("dnnl_primitive_execute", blas=True) == "blas"
    assert layer_of("mine::kernel_cpu(at::Tensor const&)", extension=True) == "extension"
    assert layer_of("at::Tensor::contiguous() const", extension=True) == "core"


def test_operators_and_nodes_are_recognised() -> None:
    assert dispatched_operator("at::_ops::add_Tensor::call(at::Tensor const&)") == ("add_Tensor", False)
    assert dispatched_operator("at::_ops::add_Tensor::redispatch(c10::DispatchKeySet)") == ("add_Tensor", True)
    assert dispatched_operator("at::add(at::Tensor const&)") is None
    assert autograd_node("torch::autograd::generated::MulBackward0::apply(std::vector<at::Tensor>&&)") == "MulBackward0"
    assert autograd_node("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)") is None
