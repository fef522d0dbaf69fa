"""The ELF reader and the symbol index, on files made here byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbench_dbg.trace import elf
from torchbench_dbg.trace.classify import Category
from torchbench_dbg.trace.symbols import load_index

FUNCTION, OBJECT, IFUNC = 2, 1, 10
TEXT = 0x1000


def symbol(
    name: int, value: int, size: int, *, kind: int = FUNCTION, section: int = 1, is_global: bool = True
) -> bytes:
    return struct.pack("<IBBHQQ", name, kind | is_global << 4, 0, section, value, size)


def make_elf(sections: dict[str, tuple[int, int, bytes, int]]) -> bytes:
    """A file with these sections: name -> (type, address, content, link)."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".shstrtab"])
    body, headers, offset = b"", [bytes(64)], 64 + 56
    for name, (kind, address, content, link) in {**sections, ".shstrtab": (3, 0, names, 0)}.items():
        where = names.index(name.encode() + b"\0")
        headers.append(
            struct.pack("<IIQQQQIIQQ", where, kind, 0, address, offset + len(body), len(content), link, 0, 8, 0)
        )
        body += content + bytes(-len(content) % 8)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, TEXT - 0x400, 0, 0x2000, 0x2000, 0x1000)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    table = offset + len(body)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 3, 62, 1, 0, 64, table, 0, 64, 56, 1, 64, len(headers), len(headers) - 1
    )
    return header + segment + body + b"".join(headers)


STRINGS = b"\0_ZN1a1fEv\0_ZN1a1gEv\0_ZN1a1hEv\0_ZN1a4longEv\0data\0"


def at(name: bytes) -> int:
    return STRINGS.index(name)


def library(*, stripped: bool = False) -> bytes:
    symbols = b"".join(
        [
            bytes(24),
            symbol(at(b"_ZN1a1gEv"), TEXT + 0x40, 16),
            symbol(at(b"_ZN1a1fEv"), TEXT, 32),
            symbol(at(b"_ZN1a4longEv"), TEXT, 32, is_global=False),  # an alias: the global name is the better one
            symbol(at(b"_ZN1a1hEv"), 0, 0, section=0),  # not defined here
            symbol(at(b"data"), TEXT + 0x80, 8, kind=OBJECT),
            symbol(at(b"data"), TEXT + 0x90, 8, kind=IFUNC),
        ]
    )
    note = struct.pack("<III", 4, 4, 3) + b"GNU\0" + bytes.fromhex("deadbeef")
    frames = b"\x01\x1b\x03\x3b" + struct.pack("<iI", 0, 2)
    for start in (TEXT, TEXT + 0x20):
        frames += struct.pack("<ii", start - 0x3000, 0)
    return make_elf(
        {
            ".text": (1, TEXT, bytes(0x100), 0),
            ".dynsym" if stripped else ".symtab": (11 if stripped else 2, 0, symbols, 3),
            ".dynstr" if stripped else ".strtab": (3, 0, STRINGS, 0),
            ".note.gnu.build-id": (7, 0, note, 0),
            ".eh_frame_hdr": (1, 0x3000, frames, 0),
            ".dynamic": (6, 0, struct.pack("<QQQQ", 1, 1, 0, 0), 0),
        }
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "libexample.so"
    file.write_bytes(library())
    return file


def test_facts_of_a_file() -> None:
    file = elf.ElfFile(library(stripped=True))
    assert file.build_id == "deadbeef"
    assert not file.has_dwarf
    assert file.needed_libraries == ["_ZN1a1fEv"]
    assert file.executable_segments == [elf.Segment(TEXT - 0x400, 0, 0x2000)]
    assert file.unwind_entries() == [TEXT, TEXT + 0x20]


def test_only_defined_functions_count() -> None:
    table, source = elf.ElfFile(library()).functions()
    assert source == "symtab"
    assert table.addresses == [TEXT + 0x40, TEXT, TEXT]
    assert table.sizes == [16, 32, 32]


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x01\x01" + bytes(60), b"MZ" + bytes(200)])
def test_what_is_no_elf_file(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(elf.ElfError), elf.opened(tmp_path / "file") as file:
        file.functions()


@pytest.mark.parametrize("field", [32, 40])  # where the program headers and the section headers begin
@pytest.mark.parametrize("offset", [1 << 20, (1 << 63) - 1, (1 << 64) - 1])
def test_headers_beyond_the_end(field: int, offset: int) -> None:
    content = bytearray(library())
    struct.pack_into("<Q", content, field, offset)
    with pytest.raises(elf.ElfError, match="damaged"):
        elf.ElfFile(bytes(content))


@pytest.mark.parametrize("field", [54, 58])  # e_phentsize, e_shentsize
def test_headers_of_another_size(field: int) -> None:
    content = bytearray(library())
    struct.pack_into("<H", content, field, 32)
    with pytest.raises(elf.ElfError, match="damaged"):
        elf.ElfFile(bytes(content))


def test_a_build_id_ends_where_its_note_ends() -> None:
    note = struct.pack("<III", 4, 4, 3) + b"GNU\0" + bytes.fromhex("deadbeef")
    assert elf.ElfFile(make_elf({".note.gnu.build-id": (7, 0, note + note, 0)})).build_id == "deadbeef"
    assert elf.ElfFile(make_elf({".note.gnu.build-id": (7, 0, note[:14], 0)})).build_id is None
    assert elf.ElfFile(make_elf({})).build_id is None


def test_where_stripped_debug_information_is() -> None:
    assert elf.ElfFile(make_elf({".gnu_debuglink": (1, 0, b"ab.debug\0\0\0\0crc.", 0)})).debug_link == "ab.debug"
    assert elf.ElfFile(library()).debug_link is None
    assert elf.ElfFile(make_elf({".debug_info": (1, 0, b"x", 0)})).has_dwarf


@pytest.mark.parametrize(
    "encoding", [b"\x02\x1b\x03\x3b", b"\x01\x1c\x03\x3b", b"\x01\x1b\x04\x3b", b"\x01\x1b\x03\x1b"]
)
def test_a_search_table_in_another_encoding_is_not_guessed_at(encoding: bytes) -> None:
    frames = encoding + struct.pack("<iIii", 0, 1, 16, 0)
    assert elf.ElfFile(make_elf({".eh_frame_hdr": (1, 0x3000, frames, 0)})).unwind_entries() == []


def test_a_search_table_that_says_it_is_longer_than_it_is() -> None:
    frames = b"\x01\x1b\x03\x3b" + struct.pack("<iIii", 0, 0xFFFFFFFF, -0x2000, 0)
    assert elf.ElfFile(make_elf({".eh_frame_hdr": (1, 0x3000, frames, 0)})).unwind_entries() == [TEXT]


@given(st.data())
def test_a_damaged_file_raises_nothing_else(data: st.DataObject) -> None:
    content = bytearray(library(stripped=data.draw(st.booleans())))
    for _ in range(data.draw(st.integers(0, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        file = elf.ElfFile(bytes(content[: data.draw(st.integers(0, len(content)))]))
        assert isinstance(file.functions()[0].addresses, list)
        assert isinstance(file.unwind_entries(), list)
        assert isinstance(file.needed_libraries, list)
        assert file.build_id is None or isinstance(file.build_id, str)
    except elf.ElfError:
        pass


def no_warning(text: str) -> None:
    raise AssertionError(text)


def test_the_index_is_sorted_and_found_by_address(path: Path) -> None:
    index = load_index(path, None, on_warning=no_warning)
    assert [(start, index.name(number)) for number, start in enumerate(index.starts)] == [
        (TEXT, "_ZN1a1fEv"),
        (TEXT + 0x40, "_ZN1a1gEv"),
    ]
    assert list(index.categories) == [Category.CORE, Category.CORE]
    assert [index.find(TEXT + offset) for offset in (0, 31, 32, 0x40, 0x4F, 0x50)] == [0, 0, None, 1, 1, None]
    assert list(index.slice(TEXT, TEXT + 0x40)) == [0]
    assert index.candidates("a1g") == [1]
    assert index.candidates("nothing") == []


def test_a_stripped_file_has_unnamed_functions_too(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_bytes(library(stripped=True))
    index = load_index(tmp_path / "lib.so", None, on_warning=no_warning)
    assert index.source == "eh_frame"
    assert [index.name(number) for number in range(3)] == ["_ZN1a1fEv", "", "_ZN1a1gEv"]
    assert [index.is_named(number) for number in range(3)] == [True, False, True]
    assert index.neighbour(1) == "_ZN1a1fEv"
    assert index.find(TEXT + 0x3F) == 1


def test_the_cache_gives_the_same_index(path: Path, tmp_path: Path) -> None:
    made = load_index(path, tmp_path / "cache", on_warning=no_warning)
    (file,) = (tmp_path / "cache" / "symbols").iterdir()
    read = load_index(path, tmp_path / "cache", on_warning=no_warning)
    for table in ("starts", "sizes", "categories", "name_offsets"):
        assert list(getattr(made, table)) == list(getattr(read, table))
    assert (made.segments, made.build_id, read.name(1)) == (read.segments, read.build_id, "_ZN1a1gEv")
    assert file.name.startswith("deadbeef-")


@pytest.mark.parametrize("damage", [lambda data: data[:40], lambda data: data[:-1] + b"\xff", lambda data: b"x" * 100])
def test_a_damaged_cache_is_made_anew(path: Path, tmp_path: Path, damage: object) -> None:
    load_index(path, tmp_path / "cache", on_warning=no_warning)
    (file,) = (tmp_path / "cache" / "symbols").iterdir()
    good = file.read_bytes()
    file.write_bytes(damage(good))  # type: ignore[operator]
    said: list[str] = []
    assert len(load_index(path, tmp_path / "cache", on_warning=said.append)) == 2
    assert "is damaged" in said[0]
    assert file.read_bytes() == good


def test_another_build_of_the_library_has_another_index(path: Path, tmp_path: Path) -> None:
    load_index(path, tmp_path / "cache", on_warning=no_warning)
    path.write_bytes(library() + b"\0")
    load_index(path, tmp_path / "cache", on_warning=no_warning)
    assert len(list((tmp_path / "cache" / "symbols").iterdir())) == 2


def test_a_cache_that_cannot_be_written_costs_a_warning(path: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    said: list[str] = []
    assert len(load_index(path, tmp_path / "cache", on_warning=said.append)) == 2
    assert "TDBG_CACHE_DIR" in said[-1]
