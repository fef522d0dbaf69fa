"""A tensor, from the memory of the process that owns it: in one line, or all that is known of it.

Nothing here imports gdb, nothing is called in the process: memory comes through `read(address, length) -> bytes`, and
the places of the fields through `layout` (torchbench_dbg/inferior/tensor_layout.py measures some, tdbg_layouts knows
them by version). All of it can be garbage, so every read is capped.
"""

from __future__ import annotations

import itertools
import operator
import struct
from collections.abc import Callable, Iterator
from typing import Optional

import tdbg_elements
from tdbg_keys import KeyTable
from tdbg_layouts import SUBCLASSES

Read = Callable[[int, int], bytes]
Fact = tuple  # (name, text)
MOST_DIMENSIONS = 16
MOST_VALUES = 8
INLINE_DIMENSIONS = 5  # c10/core/impl/SizesAndStrides.h: more are on the heap
SANE_SIZE = 1 << 48
SANE_COUNT = 1 << 28  # references to one object

# c10/core/ScalarType.h, AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS and what was added behind it
SCALAR_TYPES = dict(
    enumerate(
        (
            "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 "
            "qint32 bfloat16 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2 float8_e4m3fn "
            "float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64 uint1 uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 "
            "int3 int4 int5 int6 int7 float8_e8m0fnu float4_e2m1fn_x2"
        ).split()
    )
)
# c10/core/DeviceType.h
DEVICES = dict(
    enumerate(
        "cpu cuda mkldnn opengl opencl ideep hip fpga maia xla vulkan metal xpu mps meta hpu ve lazy ipu mtia "
        "privateuseone".split()
    )
)
# c10/core/Layout.h
LAYOUTS = dict(enumerate("strided sparse_coo sparse_csr _mkldnn sparse_csc sparse_bsr sparse_bsc jagged".split()))


class Garbage(Exception):
    """What lies there is no tensor."""


class TensorReader:
    """Describes tensors by the fields of their TensorImpl."""

    def __init__(
        self,
        read: Read,
        layout: dict[str, int],
        keys: Optional[KeyTable] = None,
        class_at: Callable[[int], Optional[str]] = lambda _: None,
    ) -> None:
        """`layout`: byte offsets in TensorImpl, AutogradMeta, StorageImpl, by the names in tdbg_layouts. Empty: a
        tensor is shown by its address. `keys`: what the bits of a key set mean. `class_at`: the class of an object
        by its vtable.
        """
        self.read, self.layout, self.keys, self.class_at = read, layout, keys, class_at

    def text(self, implementation: int) -> str:
        """`Tensor(shape=[4, 4], dtype=float32, device=cpu, requires_grad=False)` of the TensorImpl at an address."""
        return "Tensor(%s)" % ", ".join("%s=%s" % fact for fact in self._outline(implementation))

    def facts(self, implementation: int) -> Iterator[Fact]:
        """(name, text) of everything that is known of the tensor, as Python calls it."""
        if "end" not in self.layout or self.is_undefined(implementation):
            yield from self._outline(implementation)
            return
        shape = self._sizes(implementation + self.layout["sizes"])
        kind, raw_keys = self._kind(implementation), self._field(implementation, "keys")
        layout = self._layout(implementation, raw_keys)
        yield "shape", shape
        if layout == "strided":
            yield "strides", self._strides(implementation, len(shape))
            yield "storage_offset", self._field(implementation, "storage_offset")
        yield "dtype", kind
        yield "device", self._device(implementation)
        yield "layout", layout
        if self.keys is not None:
            yield "keys", "%#x  %s" % (raw_keys, ", ".join(self.keys.names(raw_keys)))
        yield from self._autograd(implementation)
        yield from self._version(implementation)
        yield "references", self.references(implementation)
        yield from self._subclass(implementation, layout)
        storage = self._field(implementation, "storage")
        if storage:
            yield from self._storage(implementation, storage, shape, kind)

    def is_undefined(self, implementation: int) -> bool:
        """Whether it is no pointer, or the one UndefinedTensorImpl, which has no device: every tensor has."""
        return implementation == 0 or (bool(self.layout) and self._device(implementation) == "none")

    def is_plausible(self, implementation: int) -> bool:
        """Whether the fields fit each other as in a live tensor: how a tensor is told from other memory."""
        if "end" not in self.layout:
            return True  # nothing to tell it by
        try:
            if not 0 < self.references(implementation) < SANE_COUNT:
                return False
            sizes = self._sizes(implementation + self.layout["sizes"])
        except Garbage:
            return False
        numel = 1
        for each in sizes:
            numel *= each
        return self._field(implementation, "numel") == numel or self.is_undefined(implementation)

    def references(self, target: int) -> int:
        """Of an intrusive_ptr_target: one word each of strong and weak ones, half a word since 2.3."""
        return self._word(target + 8) & (0xFFFFFFFF if self.layout["header"] == 16 else -1)

    def sizes(self, implementation: int) -> list[int]:
        """The shape."""
        return self._sizes(implementation + self.layout["sizes"])

    def grad_fn(self, implementation: int) -> int:
        """The address of the node that made the tensor, 0 if none did."""
        meta = self._field(implementation, "autograd_meta")
        return self._word(meta + self.layout["grad_fn"]) if meta else 0

    def _outline(self, implementation: int) -> Iterator[Fact]:
        if implementation == 0:
            yield "undefined", True
            return
        if not self.layout:
            yield "at", "%#x" % implementation
            return
        if self.is_undefined(implementation):
            yield "undefined", True
            return
        yield "shape", self._sizes(implementation + self.layout["sizes"])
        yield "dtype", self._kind(implementation)
        yield "device", self._device(implementation)
        yield "requires_grad", self._requires_grad(self._field(implementation, "autograd_meta"))

    def _word(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), "little")

    def _field(self, implementation: int, name: str) -> int:
        return self._word(implementation + self.layout[name])

    def _device(self, implementation: int) -> str:
        return device(self.read(implementation + self.layout["device"], 3))

    def _kind(self, implementation: int) -> str:
        kind = self.read(implementation + self.layout["dtype"], 1)[0]
        return SCALAR_TYPES.get(kind) or "type %d" % kind

    def _sizes(self, address: int) -> list[int]:
        count = self._word(address)
        if count > MOST_DIMENSIONS:
            raise Garbage("%d dimensions" % count)
        begin = address + 8 if count <= INLINE_DIMENSIONS else self._word(address + 8)
        found = self._signed(begin, count)
        if any(not 0 <= size < SANE_SIZE for size in found):
            raise Garbage("sizes %s" % found)
        return found

    def _strides(self, implementation: int, count: int) -> list[int]:
        address = implementation + self.layout["sizes"]
        if count <= INLINE_DIMENSIONS:
            return self._signed(address + 8 * (1 + INLINE_DIMENSIONS), count)
        return self._signed(self._word(address + 8) + 8 * count, count)

    def _signed(self, address: int, count: int) -> list[int]:
        return list(struct.unpack("<%dq" % count, self.read(address, 8 * count))) if count else []

    def _requires_grad(self, meta: int) -> bool:
        """As Python's: the flag, or a grad_fn."""
        if meta == 0:
            return False
        flag = self.read(meta + self.layout["requires_grad"], 1)
        return flag == b"\1" or self._word(meta + self.layout["grad_fn"]) != 0

    def _layout(self, implementation: int, raw_keys: int) -> str:
        if self.keys is None:
            return "unknown"
        if any(self.keys.has(raw_keys, name) for name in ("SparseCsr", "SparseCsrCPU", "SparseCsrCUDA")):
            field = implementation + self.layout["end"] + SUBCLASSES["SparseCsrTensorImpl"]["layout"]
            return LAYOUTS.get(self.read(field, 1)[0], "unknown")
        if self.keys.has(raw_keys, "Sparse"):
            return "sparse_coo"
        return "_mkldnn" if self.keys.has(raw_keys, "MkldnnCPU") else "strided"

    def _autograd(self, implementation: int) -> Iterator[Fact]:
        meta = self._field(implementation, "autograd_meta")
        grad_fn = self.grad_fn(implementation)
        yield "requires_grad", self._requires_grad(meta)
        yield "is_leaf", grad_fn == 0
        yield "grad_fn", "%s at %#x" % (self.class_at(grad_fn), grad_fn) if grad_fn else None
        if meta:
            # Without a history for backward it is a view for forward-mode differentiation only: `detach` makes such.
            is_view = self.read(meta + self.layout["is_view"], 1) == b"\1"
            yield "is_view", is_view and self.read(meta + self.layout["backward_view"], 1) == b"\1"
            grad = self._word(meta + self.layout["grad"])
            yield "grad", None if self.is_undefined(grad) else self.text(grad)
        else:
            yield "is_view", False

    def _version(self, implementation: int) -> Iterator[Fact]:
        counter = self._field(implementation, "version_counter")
        if counter:
            yield "version", int.from_bytes(self.read(counter + self.layout["header"], 4), "little")
        else:
            yield "version", "none, as of inference tensors"

    def _subclass(self, implementation: int, layout: str) -> Iterator[Fact]:
        end = implementation + self.layout["end"]
        if layout == "sparse_coo":
            places = SUBCLASSES["SparseTensorImpl"]
            yield "sparse_dim", self._word(end + places["sparse_dim"])
            yield "dense_dim", self._word(end + places["dense_dim"])
            yield "is_coalesced", self.read(end + places["coalesced"], 1) == b"\1"
            members = ["indices", "values"]
        elif layout.startswith("sparse"):
            places, members = SUBCLASSES["SparseCsrTensorImpl"], ["crow_indices", "col_indices", "values"]
        else:
            members = []
        for name in members:
            yield name, self.text(self._word(end + places[name]))
        if (self.class_at(implementation) or "").endswith("QTensorImpl"):
            yield "quantizer", self._quantizer(self._word(end))

    def _quantizer(self, quantizer: int) -> str:
        name = str(self.class_at(quantizer)).rpartition("::")[2]
        if name != "PerTensorAffineQuantizer":
            return name
        # ATen/quantized/Quantizer.h: the type stands in the word before.
        scale, zero_point = struct.unpack("<dq", self.read(quantizer + self.layout["header"] + 8, 16))
        return "%s scale=%r zero_point=%d" % (name, scale, zero_point)

    def _storage(self, implementation: int, storage: int, shape: list[int], kind: str) -> Iterator[Fact]:
        data, nbytes = self._field(storage, "data"), self._field(storage, "nbytes")
        references = self.references(storage)
        yield "storage", "%#x  data %#x, %d bytes, %d references" % (storage, data, nbytes, references)
        if self._device(implementation) != "cpu" or not data:
            return
        yield "elements", self._elements(implementation, data, nbytes, shape, kind) + self._pending(implementation)

    def _elements(self, implementation: int, data: int, nbytes: int, shape: list[int], kind: str) -> str:
        """The first ones, in the order of the indices."""
        width, strides = tdbg_elements.size(kind), self._strides(implementation, len(shape))
        start, found = self._field(implementation, "storage_offset"), []
        for index in itertools.product(*(range(min(size, MOST_VALUES + 1)) for size in shape)):
            if len(found) == MOST_VALUES:
                found.append("…")
                break
            place = width * (start + sum(map(operator.mul, strides, index)))
            if not 0 <= place <= nbytes - width:
                found.append("<outside of the storage>")
                break
            found.append(tdbg_elements.text(kind, self.read(data + place, width)))
        return "[%s]" % ", ".join(found)

    def _pending(self, implementation: int) -> str:
        """What is to be done with the stored elements when they are used: `conj()` and the like only set a key."""
        if self.keys is None:
            return ""
        raw = self._field(implementation, "keys")
        names = {"Conjugate": "to be conjugated", "Negative": "to be negated"}
        pending = [text for name, text in names.items() if self.keys.has(raw, name)]
        return " as stored, " + " and ".join(pending) if pending else ""


def device(raw: bytes) -> str:
    """std::optional<c10::Device>, whose bytes are type, index and whether it is set.

    Older torch (1.13) has c10::optional, where that byte comes first. Index 255 is none.
    """
    kind, index, is_set = raw
    if is_set != 1 and kind == 1:
        is_set, kind, index = raw
    if is_set != 1:
        return "none"
    name = DEVICES.get(kind) or "device type %d" % kind
    return name if index == 255 else "%s:%d" % (name, index)
