"""Names of C functions and of code."""

from __future__ import annotations

import collections
import json
import math
import os
from collections.abc import Iterator
from typing import Any

import pytest

from torchbench_dbg.inferior.names import MethodIndex, NameTable, c_function_name, is_own_file


class Derived(collections.OrderedDict):  # type: ignore[type-arg]
    pass


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (len, "len"),
        (math.sqrt, "math.sqrt"),
        ([].append, "list.append"),
        (list.append, "list.append"),
        (dict.fromkeys, "dict.fromkeys"),
        (collections.OrderedDict.move_to_end, "collections.OrderedDict.move_to_end"),
        (Derived().move_to_end, "collections.OrderedDict.move_to_end"),
        ("".join, "str.join"),
        (type.mro, "type.mro"),
    ],
)
def test_c_functions_are_named_by_where_they_are_defined(function: Any, name: str) -> None:
    assert c_function_name(function, getattr(function, "__self__", None))[0] == name


def test_a_function_without_a_usable_name_is_named_all_the_same() -> None:
    assert c_function_name(object(), None) == ("<unnamed object>", None)


@pytest.fixture
def table() -> Iterator[tuple[NameTable, int]]:
    descriptor = os.memfd_create("names")
    yield NameTable(descriptor), descriptor
    os.close(descriptor)


def written(descriptor: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in os.pread(descriptor, 10**6, 0).splitlines()]


def test_each_name_is_written_once(table: tuple[NameTable, int]) -> None:
    names, descriptor = table
    first: Any = [].append
    second: Any = [].append
    assert names.function_word(first) == names.function_word(second) == 1 << 32
    assert names.function_word(list.append) == 2 << 32
    code = written.__code__
    assert names.add_code(code, globals()) is names.add_code(code, globals())
    assert [record["name"] for record in written(descriptor)] == ["list.append", "list.append", "written"]
    assert written(descriptor)[2]["module"] == __name__


def test_what_is_not_a_c_function_has_no_name(table: tuple[NameTable, int]) -> None:
    assert [table[0].function_word(value) for value in (written, int, object(), Derived)] == [0, 0, 0, 0]


def test_code_of_the_inferior_is_hidden(table: tuple[NameTable, int]) -> None:
    assert is_own_file(NameTable.add_code.__code__.co_filename)
    assert table[0].add_code(NameTable.add_code.__code__, {})[0] == 0
    assert written(table[1]) == []


def test_methods_are_found_through_their_module() -> None:
    source = (
        "import functools\n"
        "def wrap(function):\n    return functools.wraps(function)(lambda *a: function(*a))\n"
        "class Outer:\n    class Inner:\n        @staticmethod\n        def method(): pass\n"
        "    @property\n    def value(self): pass\n    @wrap\n    def wrapped(self): pass\n"
    )
    module: dict[str, Any] = {"__name__": "made"}
    exec(compile(source, "made.py", "exec"), module)
    index, outer = MethodIndex(), module["Outer"]
    codes = [outer.Inner.method.__code__, outer.value.fget.__code__, outer.wrapped.__wrapped__.__code__]
    found = [index.qualified_name(code, module) for code in codes]
    assert found == ["Outer.Inner.method", "Outer.value", "Outer.wrapped"]
