"""Where the fields of c10::TensorImpl are in this torch: measured on tensors whose contents are known.

The layout changes between versions, and an extension's debug information does not have it (GCC describes a class
with virtual functions only where they are defined). A debugger that knows the places can print any tensor by
reading memory alone.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

READ_BYTES = 256  # of a TensorImpl and of an AutogradMeta; both are larger
SIZES, STRIDES, OFFSET = (3, 5, 7), (70, 14, 2), 11


def measure(torch: Any) -> dict[str, int] | None:
    """Byte offsets: sizes (the count, then the sizes inline), numel, dtype, device, keys, autograd_meta, and in
    AutogradMeta requires_grad and grad_fn. None where torch is laid out in a way that this does not understand.
    """
    try:
        return _measure(torch)
    except Exception:
        return None


def _measure(torch: Any) -> dict[str, int]:
    with torch.no_grad():
        storage = torch.empty(400, dtype=torch.int16)
        plain = torch.as_strided(storage, SIZES, STRIDES, OFFSET)
        wide = torch.as_strided(torch.empty(400, dtype=torch.float64), SIZES, STRIDES, OFFSET)
    memory = _memory(plain._cdata)
    words = struct.unpack(f"<{READ_BYTES // 8}Q", memory)
    sizes = next(
        at for at in range(len(words) - 9) if words[at : at + 4] == (3, *SIZES) and words[at + 6 : at + 9] == STRIDES
    )
    after = words[sizes + 9 :]
    numel = sizes + 9 + after.index(3 * 5 * 7)
    # data_type_ follows numel_: int16 is scalar type 2, float64 is 7 (c10/core/ScalarType.h).
    dtype = numel * 8 + 8
    if (memory[dtype], _memory(wide._cdata)[dtype]) != (2, 7):
        raise ValueError("data_type_ is elsewhere")
    keys = dtype + 8  # after device_opt_ and the bit fields
    raw = getattr(torch._C._dispatch_keys(plain), "raw_repr", lambda: words[keys // 8])()  # torch 1.13 has none
    if words[keys // 8] != raw:
        raise ValueError("key_set_ is elsewhere")
    layout = {"sizes": sizes * 8, "numel": numel * 8, "dtype": dtype, "device": dtype + 2, "keys": keys}
    return {**layout, **_measure_autograd(torch)}


def _measure_autograd(torch: Any) -> dict[str, int]:
    with torch.enable_grad():
        plain = torch.zeros(3)
        leaf = torch.zeros(3, requires_grad=True)
        result = leaf * 2
    without, with_meta = (struct.unpack(f"<{READ_BYTES // 8}Q", _memory(tensor._cdata)) for tensor in (plain, leaf))
    meta = next(at for at in range(2, len(without)) if without[at] == 0 and with_meta[at] > 1 << 16)
    before = _memory(with_meta[meta])
    leaf.requires_grad_(False)
    after = _memory(with_meta[meta])
    flag = next(at for at in range(8, READ_BYTES) if (before[at], after[at]) == (1, 0))
    of_result = struct.unpack(f"<{READ_BYTES // 8}Q", _memory(_word(result._cdata + meta * 8)))
    of_leaf = struct.unpack(f"<{READ_BYTES // 8}Q", before)
    # name_ comes first: its pointer differs too, but is set in both.
    grad_fn = next(at for at in range(1, len(of_leaf)) if of_leaf[at] == 0 and of_result[at] > 1 << 16)
    return {"autograd_meta": meta * 8, "requires_grad": flag, "grad_fn": grad_fn * 8}


def _memory(address: int) -> bytes:
    return ctypes.string_at(address, READ_BYTES)


def _word(address: int) -> int:
    return int(ctypes.c_uint64.from_address(address).value)
