"""Elements of tensors, from their bytes."""

from __future__ import annotations

import math
import struct

import pytest
import tdbg_elements as elements
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        ("uint8", "ff", "255"),
        ("int8", "ff", "-1"),
        ("int64", "0000000000000080", "-9223372036854775808"),
        ("uint64", "ffffffffffffffff", "18446744073709551615"),
        ("bool", "01", "True"),
        ("bool", "07", "<bool 7>"),
        ("float16", "662e", "0.1"),
        ("float16", "ff7b", "65500.0"),
        ("float16", "007c", "inf"),
        ("bfloat16", "c0bf", "-1.5"),
        ("float32", "cdcccc3d", "0.1"),
        ("float32", "0000c0ff", "nan"),
        ("float64", "9a9999999999b93f", "0.1"),
        ("complex64", "0000803f000000c0", "1.0-2.0j"),
        ("float8_e5m2", "3e", "1.5"),
        ("float8_e4m3fn", "38", "1.0"),
        ("float8_e4m3fn", "7e", "448.0"),
        ("float8_e4m3fn", "7f", "nan"),
        ("float8_e4m3fn", "81", "-0.001953125"),
        ("float8_e4m3fnuz", "7f", "240.0"),
        ("float8_e5m2fnuz", "7f", "57344.0"),
        ("float8_e5m2fnuz", "80", "nan"),
        ("quint4x2", "3f", "0x3f"),
        ("bits16", "3412", "0x1234"),
    ],
)
def test_text(kind: str, raw: str, text: str) -> None:
    data = bytes.fromhex(raw)
    assert elements.size(kind) == len(data)
    assert elements.text(kind, data) == text


@given(st.binary(min_size=4, max_size=4))
def test_the_digits_of_a_float_mean_its_bits(raw: bytes) -> None:
    shown = float(elements.text("float32", raw))
    assert math.isnan(shown) or struct.pack("<f", shown) == raw
