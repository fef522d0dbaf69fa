"""Where the fields of PyTorch's C++ objects lie, by version: for a process whose libraries don't say it themselves.

The numbers are byte offsets as GCC laid them out for x86-64 from the headers of each release from 1.13 to 2.13. Where
there is debug information, or where tdbg measured in the process, that is believed instead. Nothing here imports gdb.
"""

from __future__ import annotations

from typing import Optional

OLDEST, NEWEST = (1, 13), (2, 13)

# What changed with which version. `header`: of c10::intrusive_ptr_target, with the pointer to the vtable. `sizes`: in
# TensorImpl. `requires_grad`, `is_view`, `backward_view` (whether it has a value): in AutogradMeta and in the
# DifferentiableViewMeta derived from it. `next_edges`, `edge` (bytes of one): in Node. `variable`: in AccumulateGrad.
CHANGES = (
    ((1, 13), {"header": 24, "sizes": 72, "requires_grad": 136, "is_view": 152, "backward_view": 200}),
    ((1, 13), {"next_edges": 96, "edge": 24, "variable": 392}),
    ((2, 0), {"is_view": 138, "backward_view": 184, "variable": 472}),
    ((2, 1), {"requires_grad": 144, "is_view": 146, "backward_view": 192}),
    ((2, 2), {"backward_view": 232}),
    ((2, 3), {"header": 16, "sizes": 64, "backward_view": 240}),
    ((2, 10), {"backward_view": 248}),
    ((2, 13), {"sizes": 56, "requires_grad": 128, "is_view": 130, "backward_view": 232}),
    ((2, 13), {"next_edges": 88, "edge": 16, "variable": 464}),
)
# Behind the end of TensorImpl: ATen/SparseTensorImpl.h, ATen/SparseCsrTensorImpl.h, ATen/quantized/QTensorImpl.h.
SUBCLASSES = {
    "SparseTensorImpl": {"sparse_dim": 0, "dense_dim": 8, "indices": 16, "values": 24, "coalesced": 32},
    "SparseCsrTensorImpl": {"crow_indices": 0, "col_indices": 8, "values": 16, "layout": 24},
    "QTensorImpl": {"quantizer": 0},
}


def layout_of(version: Optional[tuple]) -> dict[str, int]:
    """The offsets in a version (major, minor); the nearest known one's for another, none if it is None."""
    if version is None:
        return {}
    version = max(version, OLDEST)
    found: dict[str, int] = {}
    for first, changes in CHANGES:
        if version >= first:
            found.update(changes)
    header, sizes = found["header"], found["sizes"]
    return {
        **found,
        # c10/core/TensorImpl.h. Sizes and strides are eleven words: the count, then five of each.
        **{"storage": header, "autograd_meta": header + 8, "version_counter": header + 24},
        **{"storage_offset": sizes + 88, "numel": sizes + 96, "dtype": sizes + 104, "device": sizes + 106},
        **{"keys": sizes + 112, "end": sizes + 120},
        # c10/core/StorageImpl.h: the DataPtr is three words and a device.
        **{"data": header, "nbytes": header + 32},
        # torch/csrc/autograd/variable.h: a pointer to the vtable and `name_`, a string, stand first.
        **{"grad": 40, "grad_fn": 48},
    }


def is_known(version: Optional[tuple]) -> bool:
    """Whether the offsets were compared with this version's headers."""
    return version is not None and OLDEST <= version <= NEWEST
