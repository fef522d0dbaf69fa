"""Which name a function goes by, how names are found, and the cache of indexes."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from torchbench_dbg.trace import symbols
from torchbench_dbg.trace.classify import Category
from torchbench_dbg.trace.symbols import SymbolIndex, load_index

from .test_elf import TEXT, make_elf, no_warning, symbol

Function = tuple[str, int, bool]  # name, address, whether it is global


def library(functions: list[Function], strings: bytes | None = None) -> bytes:
    """A library with these functions, 16 bytes each. `strings`: the string table, if the names overlap in it."""
    table = strings or b"\0" + b"".join(name.encode() + b"\0" for name, _, _ in functions)
    entries = [
        symbol(table.index(name.encode() + b"\0"), address, 16, is_global=is_global)
        for name, address, is_global in functions
    ]
    return make_elf(
        {
            ".text": (1, TEXT, bytes(0x100), 0),
            ".symtab": (2, 0, bytes(24) + b"".join(entries), 3),
            ".strtab": (3, 0, table, 0),
        }
    )


def index_of(directory: Path, functions: list[Function], strings: bytes | None = None) -> SymbolIndex:
    (directory / "lib.so").write_bytes(library(functions, strings))
    return load_index(directory / "lib.so", None, on_warning=no_warning)


@pytest.mark.parametrize(
    ("aliases", "name"),
    [
        (["SGEMM", "mkl_blas__sgemm", "sgemm", "sgemm_"], "sgemm_"),
        (["_ZN1a1bC2Ev", "_ZN1a1bC1Ev"], "_ZN1a1bC1Ev"),
        (["_ZN1a1fEv.localalias", "_ZN1a1fEv"], "_ZN1a1fEv"),
        (["_ZN1a11longer_nameEv", "_ZN1a1fEv"], "_ZN1a1fEv"),
    ],
)
def test_the_most_readable_of_several_names(tmp_path: Path, aliases: list[str], name: str) -> None:
    for order in (aliases, aliases[::-1]):
        index = index_of(tmp_path, [(alias, TEXT, True) for alias in order])
        assert [index.name(number) for number in range(len(index))] == [name]


def test_the_sgemm_that_runs_is_watched_whatever_else_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(symbols, "_SMALL_LIBRARY", 0)  # as in libtorch_cpu, other C names are third parties'
    index = index_of(tmp_path, [("SGEMM", TEXT, True), ("sgemm", TEXT, True), ("sgemm_", TEXT, True)])
    assert list(index.categories) == [Category.BLAS]


def test_a_global_name_is_better_than_a_shorter_local_one(tmp_path: Path) -> None:
    index = index_of(tmp_path, [("_ZN1a1fEv", TEXT, False), ("_ZN1a4longEv", TEXT, True)])
    assert index.name(0) == "_ZN1a4longEv"


def test_a_name_inside_another_finds_both(tmp_path: Path) -> None:
    # Linkers store `THPVariable_add` as the tail of `_wrap_THPVariable_add`.
    functions = [("_wrap_THPVariable_add", TEXT, True), ("THPVariable_add", TEXT + 16, True), ("add", TEXT + 32, True)]
    index = index_of(tmp_path, functions, strings=b"\0_wrap_THPVariable_add\0")
    assert index.candidates("Variable") == [0, 1]
    assert index.candidates("add") == [0, 1, 2]
    assert index.candidates("_wrap") == [0]
    assert index.candidates("") == index.candidates("add\0") == []


def test_a_text_across_two_names_is_in_neither(tmp_path: Path) -> None:
    index = index_of(tmp_path, [("abc", TEXT, True), ("def", TEXT + 16, True)])
    assert index.candidates("cd") == []
    assert index.candidates("abc") == [0]


def test_a_name_that_nothing_ends(tmp_path: Path) -> None:
    content = library([("_ZN1a1fEv", TEXT, True)])
    at = content.index(b"_ZN1a1fEv\0")
    (tmp_path / "lib.so").write_bytes(content[: at + 9] + b"x" * 7 + content[at + 16 :])
    index = load_index(tmp_path / "lib.so", None, on_warning=no_warning)
    assert index.name(0).startswith("_ZN1a1fEv")
    assert index.candidates("a1f") == [0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "lib.so").write_bytes(library([("_ZN1a1fEv", TEXT, True)]))
    return tmp_path / "lib.so"


def test_a_full_disk_costs_one_warning_and_leaves_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    said: list[str] = []
    index = load_index(path, tmp_path / "cache", on_warning=said.append)
    assert index.name(0) == "_ZN1a1fEv"
    assert len(said) == 1
    assert "No space left on device" in said[0]
    assert list((tmp_path / "cache" / "symbols").iterdir()) == []


def test_a_cache_directory_that_is_a_file_costs_one_warning(path: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    said: list[str] = []
    assert len(load_index(path, tmp_path / "cache", on_warning=said.append)) == 1
    assert len(said) == 1


def test_an_empty_cache_file_is_made_anew(path: Path, tmp_path: Path) -> None:
    load_index(path, tmp_path / "cache", on_warning=no_warning)
    (file,) = (tmp_path / "cache" / "symbols").iterdir()
    file.write_bytes(b"")
    said: list[str] = []
    assert len(load_index(path, tmp_path / "cache", on_warning=said.append)) == 1
    assert "is damaged" in said[0]
    load_index(path, tmp_path / "cache", on_warning=no_warning)


def test_other_rules_make_another_index(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_index(path, tmp_path / "cache", on_warning=no_warning)
    monkeypatch.setattr(symbols, "_rules_checksum", lambda: 1)
    load_index(path, tmp_path / "cache", on_warning=no_warning)
    assert len(list((tmp_path / "cache" / "symbols").iterdir())) == 2


def test_several_at_once_share_a_cache(path: Path, tmp_path: Path) -> None:
    said: list[str] = []
    found: list[str] = []

    def load() -> None:
        for _ in range(20):
            for file in (tmp_path / "cache" / "symbols").glob("*.idx"):
                file.unlink(missing_ok=True)
            found.append(load_index(path, tmp_path / "cache", on_warning=said.append).name(0))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["_ZN1a1fEv"] * 80
    assert said == []
