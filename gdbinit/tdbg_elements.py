"""Elements of tensors as text, from their bytes. Nothing here imports gdb.

Element types are named as Python does without `torch.`; those that hold several numbers in a byte, or that this
does not know, are shown as bytes.
"""

from __future__ import annotations

import math
import struct

# Type -> bytes of an element, and how the struct module calls it.
_PLAIN = {
    "uint8": "B",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "qint8": "b",
    "quint8": "B",
    "qint32": "i",
}
_FLOATS = {"float16": "e", "float32": "f", "float64": "d"}
_COMPLEX = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
# Exponent bits, fraction bits, bias, of those without infinities (c10/util/Float8_*.h).
_EIGHT_BITS = {"float8_e4m3fn": (4, 3, 7), "float8_e4m3fnuz": (4, 3, 8), "float8_e5m2fnuz": (5, 2, 16)}
_ODD_SIZES = {"bits16": 2, "bfloat16": 2}


def size(kind: str) -> int:
    """Bytes of one element."""
    if kind in _COMPLEX:
        return 2 * size(_COMPLEX[kind])
    letter = _PLAIN.get(kind) or _FLOATS.get(kind)
    return struct.calcsize(letter) if letter else _ODD_SIZES.get(kind, 1)


def text(kind: str, raw: bytes) -> str:
    """One element; quantised ones as the integers that are stored."""
    if kind == "bool":
        return {b"\0": "False", b"\1": "True"}.get(raw, "<bool %d>" % raw[0])
    if kind in _PLAIN:
        return "%d" % struct.unpack("<" + _PLAIN[kind], raw)
    if kind in _FLOATS:
        return _shortest(_FLOATS[kind], raw)
    if kind in _COMPLEX:
        half = len(raw) // 2
        real, imaginary = (text(_COMPLEX[kind], part) for part in (raw[:half], raw[half:]))
        return "%s%s%sj" % (real, "" if imaginary.startswith("-") else "+", imaginary)
    if kind == "bfloat16":
        return repr(float("%.4g" % struct.unpack("<f", b"\0\0" + raw)))
    if kind == "float8_e5m2":  # the upper half of a float16
        return repr(float("%.4g" % struct.unpack("<e", b"\0" + raw)))
    if kind in _EIGHT_BITS:
        return repr(_of_eight_bits(kind, raw[0]))
    return "0x" + raw[::-1].hex()


def _shortest(letter: str, raw: bytes) -> str:
    """The fewest digits that mean these very bits."""
    (number,) = struct.unpack("<" + letter, raw)
    if not math.isfinite(number):
        return "%g" % number
    for digits in range(1, 17):
        shorter = float("%.*g" % (digits, number))
        try:
            if struct.pack("<" + letter, shorter) == raw:
                return repr(shorter)
        except OverflowError:  # rounded up beyond the largest
            continue
    return repr(number)


def _of_eight_bits(kind: str, byte: int) -> float:
    exponent_bits, fraction_bits, bias = _EIGHT_BITS[kind]
    if kind.endswith("uz"):
        if byte == 0x80:
            return math.nan
    elif byte & 0x7F == 0x7F:
        return math.nan
    exponent = byte >> fraction_bits & (1 << exponent_bits) - 1
    fraction = (byte & (1 << fraction_bits) - 1) / (1 << fraction_bits)
    value = math.ldexp(fraction + (exponent > 0), max(exponent, 1) - bias)
    return -value if byte & 0x80 else value
