"""Tensors in one line, from memory that is written here."""

from __future__ import annotations

import struct

import pytest
import tdbg_tensors as tensors

LAYOUT = {
    "sizes": 56,
    "dtype": 160,
    "device": 162,
    "keys": 168,
    "autograd_meta": 24,
    "requires_grad": 128,
    "grad_fn": 48,
}
IMPLEMENTATION, META, SIZES = 0x1000, 0x2000, 0x3000


class Fake:
    """A TensorImpl in memory, as torch 2.13 lays it out."""

    def __init__(self, *sizes: int, dtype: int = 6, device: bytes = b"\0\xff\1", keys: int = 1, meta: int = 0) -> None:
        self.pages = {page: bytearray(256) for page in (IMPLEMENTATION, META, SIZES)}
        memory = self.pages[IMPLEMENTATION]
        struct.pack_into("<Q", memory, 24, meta)
        struct.pack_into("<Q", memory, 56, len(sizes))
        if len(sizes) <= 5:
            struct.pack_into(f"<{len(sizes)}q", memory, 64, *sizes)
        else:
            struct.pack_into("<Q", memory, 64, SIZES)
            struct.pack_into(f"<{min(16, len(sizes))}q", self.pages[SIZES], 0, *sizes[:16])
        memory[160] = dtype
        memory[162:165] = device
        struct.pack_into("<Q", memory, 168, keys)

    def read(self, address: int, length: int) -> bytes:
        page = self.pages.get(address & ~0xFF)
        if page is None:
            raise OverflowError(f"no memory at {address:#x}")
        return bytes(page[address & 0xFF :][:length])

    def text(self) -> str:
        return tensors.TensorReader(self.read, LAYOUT).text(IMPLEMENTATION)


def test_a_tensor() -> None:
    assert Fake(4, 4).text() == "Tensor(shape=[4, 4], dtype=float32, device=cpu, requires_grad=False)"


def test_many_dimensions_are_on_the_heap() -> None:
    assert "shape=[1, 2, 3, 4, 5, 6]," in Fake(1, 2, 3, 4, 5, 6).text()
    assert "shape=[1, 2, 3, 4, 5]," in Fake(1, 2, 3, 4, 5).text()
    assert "shape=[]," in Fake().text()


@pytest.mark.parametrize(
    ("number", "name"), [(0, "uint8"), (11, "bool"), (15, "bfloat16"), (24, "float8_e4m3fn"), (99, "type 99")]
)
def test_element_types(number: int, name: str) -> None:
    assert f"dtype={name}," in Fake(2, dtype=number).text()


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"\0\xff\1", "cpu"),
        (b"\1\0\1", "cuda:0"),
        (b"\1\3\1", "cuda:3"),
        (b"\x0e\xff\1", "meta"),
        (b"\x63\0\1", "device type 99:0"),
        (b"\0\0\0", "none"),
        (b"\1\0\xff", "cpu"),  # torch 1.13: the flag comes first
        (b"\1\1\0", "cuda:0"),
        (b"\1\x0e\xff", "meta"),
    ],
)
def test_devices(raw: bytes, name: str) -> None:
    assert tensors.device(raw) == name


def test_requires_grad_is_a_flag_or_a_grad_fn() -> None:
    fake = Fake(3, meta=META)
    assert fake.text().endswith("requires_grad=False)")
    fake.pages[META][128] = 1
    assert fake.text().endswith("requires_grad=True)")
    fake.pages[META][128] = 0
    struct.pack_into("<Q", fake.pages[META], 48, 0x7000)
    assert fake.text().endswith("requires_grad=True)")


def test_undefined_tensors() -> None:
    """UndefinedTensorImpl has no device; it has dispatch keys in torch 2.13, none in older ones."""
    assert Fake(device=b"\0\0\0").text() == "Tensor(undefined=True)"
    assert tensors.TensorReader(Fake().read, LAYOUT).text(0) == "Tensor(undefined=True)"


def test_without_a_layout_only_the_address_is_told() -> None:
    assert tensors.TensorReader(Fake().read, {}).text(0xABC) == "Tensor(at=0xabc)"


@pytest.mark.parametrize("sizes", [(-3, 4), (1 << 50,), (1,) * 17])
def test_garbage_is_said_to_be_garbage(sizes: tuple[int, ...]) -> None:
    with pytest.raises(tensors.Garbage):
        Fake(*sizes).text()


def test_memory_that_is_not_there() -> None:
    fake = Fake(1, 2, 3, 4, 5, 6)
    struct.pack_into("<Q", fake.pages[IMPLEMENTATION], 64, 0xDEAD0000)
    with pytest.raises(OverflowError):
        fake.text()


def test_a_tensor_is_told_from_other_memory_by_fields_that_fit() -> None:
    layout = {**LAYOUT, "header": 16, "numel": 152, "end": 176}
    fake = Fake(2, 3)
    memory, reader = fake.pages[IMPLEMENTATION], tensors.TensorReader(fake.read, layout)
    struct.pack_into("<QQ", memory, 0, 0x7F00, 1 << 32 | 2)  # the vtable; one weak reference, two strong ones
    struct.pack_into("<q", memory, 152, 6)
    assert reader.is_plausible(IMPLEMENTATION)
    assert reader.references(IMPLEMENTATION) == 2
    struct.pack_into("<q", memory, 152, 7)
    assert not reader.is_plausible(IMPLEMENTATION)
    struct.pack_into("<q", memory, 152, 6)
    struct.pack_into("<Q", memory, 8, 0x1234567800000000)  # what malloc writes into freed memory
    assert not reader.is_plausible(IMPLEMENTATION)
    struct.pack_into("<Q", memory, 8, 1)
    struct.pack_into("<Q", memory, 56, 1000)
    assert not reader.is_plausible(IMPLEMENTATION)
