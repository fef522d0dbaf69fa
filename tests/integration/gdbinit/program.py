"""Makes tensors of every kind, writes down what torch says of each, and hands them to C++.

`program.py FACTS [LIBRARY]`: FACTS gets the JSON. Without the library of values.cpp it only stops itself.
"""

import ctypes
import json
import os
import signal
import sys
import warnings

import torch

warnings.simplefilter("ignore")


def make():
    leaf = torch.arange(6.0).reshape(2, 3).requires_grad_()
    result = (leaf * 2).relu()
    changed = torch.zeros(4)
    changed.add_(1).mul_(3)
    coordinates = torch.tensor([[0, 0, 3.5], [0, 2, 0]])
    with torch.inference_mode():
        inference = torch.ones(2)
    with_grad = torch.ones(3, requires_grad=True)
    with_grad.sum().backward()
    return {
        "leaf": leaf,
        "result": result,
        "parameter": torch.nn.Parameter(torch.ones(2, 2)),
        "with grad": with_grad,
        "plain": torch.arange(24.0).reshape(2, 3, 4),
        "transposed": torch.arange(6).reshape(2, 3).t(),
        "strided": torch.arange(20)[3::4],
        "expanded": torch.arange(3).expand(2, 3),
        "view of a leaf": leaf[1:],
        "detached": leaf.detach(),
        "changed in place": changed,
        "zero size": torch.zeros(0, 3),
        "zero dimensions": torch.tensor(1.25),
        "seven dimensions": torch.arange(128).reshape(2, 2, 2, 2, 2, 2, 2).permute(6, 5, 4, 3, 2, 1, 0),
        "bool": torch.tensor([True, False]),
        "half": torch.tensor([0.1, -65504.0, float("inf")], dtype=torch.half),
        "bfloat16": torch.tensor([0.5, -3.0], dtype=torch.bfloat16),
        "double": torch.tensor([0.1, 1e300, float("nan")], dtype=torch.double),
        "complex64": torch.tensor([1 + 2j, -0.5j]),
        "complex128": torch.tensor([0.1 - 2j], dtype=torch.complex128),
        "conjugate": torch.tensor([1 + 2j]).conj(),
        "uint8": torch.tensor([0, 255], dtype=torch.uint8),
        "int8": torch.tensor([-128, 127], dtype=torch.int8),
        "int16": torch.tensor([-32768], dtype=torch.int16),
        "int32": torch.tensor([-(2**31)], dtype=torch.int32),
        "int64": torch.tensor([-(2**63), 2**63 - 1]),
        "meta": torch.empty(3, 4, device="meta"),
        "sparse coo": coordinates.to_sparse(),
        "coalesced": coordinates.to_sparse().coalesce(),
        "sparse csr": coordinates.to_sparse_csr(),
        "sparse csc": coordinates.to_sparse_csc(),
        "quantised": torch.quantize_per_tensor(torch.tensor([0.0, 0.5, 1.0]), 0.25, 2, torch.quint8),
        "inference": inference,
    }


GRAD_FNS = {}  # torch makes a grad_fn's object anew when none is left


def facts(tensor):
    strided = tensor.layout == torch.strided
    found = {
        "address": tensor._cdata,
        "object": id(tensor),
        "node": id(GRAD_FNS.setdefault(id(tensor), tensor.grad_fn)),
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).replace("torch.", ""),
        "device": str(tensor.device),
        "layout": str(tensor.layout).replace("torch.", ""),
        "requires_grad": tensor.requires_grad,
        "is_leaf": tensor.is_leaf,
        "grad_fn": type(tensor.grad_fn).__name__ if tensor.grad_fn is not None else None,
        "is_view": tensor._is_view(),
        "version": None if tensor.is_inference() else tensor._version,
        "keys": str(torch._C._dispatch_keys(tensor)),
        "strides": list(tensor.stride()) if strided else None,
        "storage_offset": tensor.storage_offset() if strided else None,
    }
    if strided:
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()
        found["data"], found["nbytes"] = storage.data_ptr(), storage.nbytes()
        if tensor.device.type == "cpu":
            stored = tensor.int_repr() if tensor.is_quantized else tensor.conj() if tensor.is_conj() else tensor
            values = stored.detach().flatten()[:8].tolist()
            found["elements"] = [[value.real, value.imag] if isinstance(value, complex) else value for value in values]
            found["numel"] = tensor.numel()
    if tensor.is_quantized:
        found["scale"], found["zero_point"] = tensor.q_scale(), tensor.q_zero_point()
    if tensor.layout == torch.sparse_coo:
        found["nnz"], found["is_coalesced"] = tensor._nnz(), tensor.is_coalesced()
    return found


def key_sets():
    """Raw key sets, and what torch calls them: every key alone, and some together."""
    keys = torch._C.DispatchKeySet
    if hasattr(keys, "from_raw_repr"):
        backends = (1, 1 << 1, 1 << 14, 1 << 15, 0b101)
        raws = {backend | 1 << bit for bit in range(16, 62) for backend in backends} | {0, 0x9400010001}
        return {str(raw): str(keys.from_raw_repr(raw)) for raw in raws}
    names = [name for name in torch._C.DispatchKey.__members__ if not name.startswith(("StartOf", "EndOf"))]
    sets = [keys(getattr(torch._C.DispatchKey, name)) for name in names if name not in ALIASES]
    # Of old versions Python does not tell the number: the object that pybind11 wraps has it.
    read = ctypes.c_uint64.from_address
    return {str(read(read(id(each) + 16).value).value): str(each) for each in sets}


ALIASES = (
    "Undefined Autograd CompositeImplicitAutograd CompositeImplicitAutogradNestedTensor CompositeExplicitAutograd "
    "CompositeExplicitAutogradNonFunctional Dense Quantized Sparse NestedTensor AutogradFunctionality"
).split()


def main():
    tensors = make()
    with open(sys.argv[1], "w") as file:
        found = {name: facts(each) for name, each in tensors.items()}
        json.dump({"version": torch.__version__, "tensors": found, "key_sets": key_sets()}, file)
    if len(sys.argv) > 2:
        torch.ops.load_library(sys.argv[2])
        torch.ops.tdbg_values.look(list(tensors.values()), tensors["plain"], 12, [2, 3], 1.5)
    else:
        os.kill(os.getpid(), signal.SIGSTOP)
        a, b = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
        ((a + b) @ b).relu().sum().backward()
    del tensors


main()
