"""A tensor in one line, from the memory of the process that owns it.

Nothing here imports gdb, nothing is called in the process: memory comes through `read(address, length) -> bytes`, and
the places of the fields through `layout` (torchbench_dbg/inferior/tensor_layout.py measures them). All of it can be
garbage, so every read is capped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

Read = Callable[[int, int], bytes]
MOST_DIMENSIONS = 16
INLINE_DIMENSIONS = 5  # c10/core/impl/SizesAndStrides.h: more are on the heap
SANE_SIZE = 1 << 48

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


class Garbage(Exception):
    """What lies there is no tensor."""


class TensorReader:
    """Describes tensors by the fields of their TensorImpl."""

    def __init__(self, read: Read, layout: dict[str, int]) -> None:
        """`layout`: byte offsets of sizes, dtype, device, keys and autograd_meta in TensorImpl, and of
        requires_grad and grad_fn in AutogradMeta. Empty: a tensor is shown by its address.
        """
        self.read, self.layout = read, layout

    def text(self, implementation: int) -> str:
        """`Tensor(shape=[4, 4], dtype=float32, device=cpu, requires_grad=False)` of the TensorImpl at an address."""
        return "Tensor(%s)" % ", ".join("%s=%s" % fact for fact in self._facts(implementation))

    def _facts(self, implementation: int) -> Iterator[tuple[str, object]]:
        if implementation == 0:
            yield "undefined", True
            return
        if not self.layout:
            yield "at", "%#x" % implementation
            return
        # The one UndefinedTensorImpl has no dispatch keys (c10/core/UndefinedTensorImpl.cpp); every tensor has.
        if self._word(implementation + self.layout["keys"]) == 0:
            yield "undefined", True
            return
        yield "shape", self._sizes(implementation + self.layout["sizes"])
        kind = self.read(implementation + self.layout["dtype"], 1)[0]
        yield "dtype", SCALAR_TYPES.get(kind) or "type %d" % kind
        yield "device", device(self.read(implementation + self.layout["device"], 3))
        yield "requires_grad", self._requires_grad(self._word(implementation + self.layout["autograd_meta"]))

    def _word(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), "little")

    def _sizes(self, address: int) -> list[int]:
        count = self._word(address)
        if count > MOST_DIMENSIONS:
            raise Garbage("%d dimensions" % count)
        begin = address + 8 if count <= INLINE_DIMENSIONS else self._word(address + 8)
        raw = self.read(begin, 8 * count) if count else b""
        found = [int.from_bytes(raw[at : at + 8], "little", signed=True) for at in range(0, len(raw), 8)]
        if any(not 0 <= size < SANE_SIZE for size in found):
            raise Garbage("sizes %s" % found)
        return found

    def _requires_grad(self, meta: int) -> bool:
        """As Python's: the flag, or a grad_fn."""
        if meta == 0:
            return False
        flag = self.read(meta + self.layout["requires_grad"], 1)
        return flag == b"\1" or self._word(meta + self.layout["grad_fn"]) != 0


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
