"""The layers between a Python line and a kernel, and which function belongs to which.

The rules follow PyTorch's code generation (torchgen) and its directory layout; the first rule that matches the
demangled name decides. This is the only place where layers are named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer: its name in records, and a sentence for people."""

    name: str
    meaning: str


LAYERS: dict[str, Layer] = {
    layer.name: layer
    for layer in (
        Layer(name="python", meaning="Python code"),
        Layer(name="binding", meaning="C++ function that Python calls: parses arguments, releases the GIL"),
        Layer(name="dispatcher", meaning="computes the dispatch key set and looks the kernel up"),
        Layer(name="autograd", meaning="records the operation for backward, then redispatches below autograd"),
        Layer(name="mode", meaning="a dispatch layer between: autocast, functorch, functionalization, tracing, Python"),
        Layer(name="engine", meaning="the autograd engine, which walks the graph"),
        Layer(name="node", meaning="one autograd node, which computes gradients"),
        Layer(name="wrapper", meaning="generated code that allocates the output and calls the native function"),
        Layer(name="native", meaning="the operator's implementation under aten/src/ATen/native"),
        Layer(name="stub", meaning="DispatchStub: chooses the kernel for the device and the CPU's capability"),
        Layer(name="kernel", meaning="the function that computes"),
        Layer(name="loop", meaning="the inner loop over elements"),
        Layer(name="blas", meaning="a BLAS, LAPACK, FFT or oneDNN routine"),
        Layer(name="device", meaning="CUDA runtime and device code"),
        Layer(name="iterator", meaning="shapes, strides and types: meta functions and TensorIterator"),
        Layer(name="memory", meaning="allocation of tensors"),
        Layer(name="extension", meaning="an extension's own code"),
        Layer(name="core", meaning="tensors, storages and other basics"),
        Layer(name="unnamed", meaning="a function of a stripped library, which has no name there"),
    )
}

_RULES: tuple[tuple[str, str], ...] = (
    (
        "dispatcher",
        r"^[^(]*c10::impl::(make_boxed_from_unboxed_functor|wrap_kernel_functor_unboxed_|BoxedKernelWrapper"
        r"|call_functor_with_args_from_stack|detail::WrapFunctionInto)",
    ),
    (
        "loop",
        r"^(void |bool )?at::native::\w*::?(vectorized_loop|vectorized_inner_reduction|vectorized_outer_reduction)",
    ),
    ("loop", r"^(void |bool )?(at::native::)?(\w+::)*(VectorizedLoop2d|vectorized_\w+|basic_loop|loop_2d_from_1d)\b"),
    ("loop", r"^(void |bool )?c10::function_ref<.*>::callback_fn<"),
    ("loop", r"^(void )?at::(internal::invoke_parallel|parallel_for)\b"),
    ("binding", r"TypeError_to_NotImplemented_<|torch::autograd::THPVariable_|^THPVariable_|^_?THP\w+\("),
    ("binding", r"^pybind11::cpp_function::dispatcher|^torch::autograd::\w*::?THP\w+"),
    ("dispatcher", r"^at::_ops::\w+::(call|redispatch)\("),
    (
        "mode",
        r"torch::(impl::dispatch|detail)::.*[pP]ython|pythonFallback|PythonFallBackKernel|pythonTLSSnapshotFallback",
    ),
    ("mode", r"^at::(functorch|autocast)::|at::functionalization::(?!impl::[gs]etFunctionalization)"),
    ("mode", r"^torch::TraceType::|^at::(tracer|jit)::|^torch::jit::tracer"),
    ("mode", r"ConcretePyInterpreterVTable::(python_dispatcher|dispatch)"),
    ("autograd", r"torch::(autograd::VariableType|ADInplaceOrView)::|^torch::autograd::(VariableType|ADInplaceOrView)"),
    ("dispatcher", r"^(\w+ )?c10::(Dispatcher|impl::OperatorEntry|KernelFunction|BoxedKernel|OperatorHandle)\b"),
    ("engine", r"^torch::autograd::(python::PythonEngine|Engine|GraphTask|ReadyQueue|InputBuffer|call_function)\b"),
    ("engine", r"^torch::autograd::(Node::operator\(\)|validate_outputs|AutogradMeta)"),
    ("node", r"^torch::autograd::(generated::)?\w+::(apply|operator\(\)|compiled_args)\("),
    ("node", r"^torch::autograd::(PyNode|CopyBackwards|CppNode|AccumulateGrad|UndefinedGrad|generated::)"),
    ("wrapper", r"^at::\(anonymous namespace\)::(\(anonymous namespace\)::)?(wrapper_|structured_)"),
    (
        "wrapper",
        r"^at::(\(anonymous namespace\)::)+wrapper_|^at::(cpu|cuda|compositeexplicit\w*|compositeimplicit\w*)::",
    ),
    ("stub", r"^(\w+ )?at::native::(\w+::)*DispatchStub"),
    (
        "memory",
        r"^(at::detail::|at::native::)empty_|^at::native::(empty|resize|_empty|set_storage)\w*\(|^c10::alloc_cpu",
    ),
    (
        "memory",
        r"Allocator\b.*::(allocate|raw_alloc)|^c10::(GetDefaultCPUAllocator|GetCPUAllocator|free_cpu)|^at::detail::",
    ),
    (
        "iterator",
        r"^at::(TensorIterator\w*|impl::MetaBase|meta::)|^at::native::make_reduction|^at::(infer_size|native::(update_)?result_type)",
    ),
    ("kernel", r"^[^(]*at::native::(\(anonymous namespace\)::|DEFAULT::|AVX2::|AVX512::|\w+::)*\w*[kK]ernel\w*[<({]"),
    ("kernel", r"^[^(]*at::native::(\(anonymous namespace\)::)?(DEFAULT|AVX2|AVX512|ZVECTOR|VSX|NEON|SVE\w*)::"),
    ("blas", r"^[^(]*at::native::(cpublas|\w*blas)::"),
    ("native", r"^[^(]*at::(native|sparse\w*|vec)::"),
    ("device", r"^(\w+ )?(at|c10)::cuda::|^cuda[A-Z]|^c10::hip::"),
    ("core", r"^([^(<]* )?(at|c10|torch|caffe2|std|pybind11|__gnu_cxx)::|^(non-virtual|virtual) thunk"),
)

_COMPILED = tuple((layer, re.compile(pattern)) for layer, pattern in _RULES)


@lru_cache(maxsize=65536)
def layer_of(name: str, *, blas: bool = False, extension: bool = False) -> str:
    """The layer of a demangled function name.

    `blas`: the symbol index calls it a public BLAS entry; `extension`: it lives in a user's library.
    """
    if blas:
        return "blas"
    for layer, pattern in _COMPILED:
        if pattern.search(name):
            return layer
    return "extension" if extension else "core"


_OPERATOR = re.compile(r"^at::_ops::(\w+)::(call|redispatch)\(")


@lru_cache(maxsize=65536)
def dispatched_operator(name: str) -> tuple[str, bool] | None:
    """(operator as at::_ops names it, whether it is a redispatch) of `at::_ops::NAME::call`, else None."""
    match = _OPERATOR.match(name)
    return (match[1], match[2] == "redispatch") if match else None


_NODE = re.compile(r"^torch::autograd::(?:generated::)?(\w+)::(?:apply|operator\(\))\(")


@lru_cache(maxsize=65536)
def autograd_node(name: str) -> str | None:
    """`AddBackward0` of its `apply`, else None."""
    match = _NODE.match(name)
    return match[1] if match and match[1] != "Node" else None
