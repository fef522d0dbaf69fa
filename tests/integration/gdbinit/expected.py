"""What gdb must show of a tensor, from what Python says of it."""

from __future__ import annotations

import math
import re
import struct
from typing import Any

SHOWN = 8


def check(told: dict[str, str], facts: dict[str, Any], name: str) -> None:
    """Compare every line of tdbg-tensor with the facts of the same tensor."""
    for key in ("shape", "dtype", "device", "layout", "requires_grad", "is_leaf", "is_view"):
        assert told[key] == str(facts[key]), (name, key)
    assert re.fullmatch(rf"0x[0-9a-f]+  {re.escape(facts['keys'][len('DispatchKeySet(') : -1])}", told["keys"]), name
    assert told["version"] == ("none, as of inference tensors" if facts["version"] is None else str(facts["version"]))
    if facts["grad_fn"] is None:
        assert told["grad_fn"] == "None", name
    else:
        assert re.fullmatch(rf"torch::autograd::\S*{facts['grad_fn']} at 0x[0-9a-f]+", told["grad_fn"]), name
    if facts["strides"] is not None:
        assert told["strides"] == str(facts["strides"]), name
        assert told["storage_offset"] == str(facts["storage_offset"]), name
        assert f"data {facts['data']:#x}, {facts['nbytes']} bytes" in told["storage"], name
    else:
        assert "strides" not in told, name
    if "elements" in facts and facts["data"]:
        _check_elements(told["elements"], facts, name)
    if "scale" in facts:
        expected = f"PerTensorAffineQuantizer scale={facts['scale']} zero_point={facts['zero_point']}"
        assert told["quantizer"] == expected
    if "nnz" in facts:
        assert told["values"].startswith(f"Tensor(shape=[{facts['nnz']}],")
        assert told["is_coalesced"] == str(facts["is_coalesced"])


def outline(facts: dict[str, Any]) -> str:
    """The one line that the printers show."""
    names = ("shape", "dtype", "device", "requires_grad")
    return f"Tensor({', '.join(f'{name}={facts[name]}' for name in names)})"


def _check_elements(text: str, facts: dict[str, Any], name: str) -> None:
    shown = text[1 : text.index("]")].split(", ")
    if facts["numel"] > SHOWN:
        assert shown.pop() == "…", name
    assert len(shown) == len(facts["elements"]), name
    for word, value in zip(shown, facts["elements"], strict=True):
        assert _number(word, facts["dtype"]) == _nan_as_text(value), (name, word, value)


def _number(word: str, dtype: str) -> Any:
    """What was shown, in the precision of the element type: the digits must mean the same bits."""
    if dtype == "bool":
        return word == "True"
    if dtype.startswith("complex"):
        number = complex(word)
        return [_rounded(number.real, dtype), _rounded(number.imag, dtype)]
    return _nan_as_text(_rounded(float(word), dtype) if "float" in dtype else int(word))


def _rounded(number: float, dtype: str) -> float:
    letter = {"float16": "e", "float32": "f", "complex64": "f"}.get(dtype, "d")
    return float(struct.unpack(letter, struct.pack(letter, number))[0])


def _nan_as_text(value: Any) -> Any:
    return "nan" if isinstance(value, float) and math.isnan(value) else value
