"""The variables of a build: what a person may say, and who wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbench_dbg.build.variables import Variable, for_child, from_environment, merged, parse_settings
from torchbench_dbg.errors import UsageError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("USE_MKLDNN", "VARIABLE=VALUE is expected"),
        ("=1", "VARIABLE=VALUE is expected"),
        ("USE-X=1", "VARIABLE=VALUE is expected"),
        ("USE_MKLDNN=maybe", "switched on or off"),
        ("DEBUG=2", "switched on or off"),
        ("MAX_JOBS=0", "above 0"),
        ("MAX_JOBS=four", "above 0"),
    ],
)
def test_what_a_variable_can_not_be(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_settings([text])


def test_settings() -> None:
    texts = ["USE_CUDA=OFF", "USE_CUSTOM_DEBINFO=a.cpp;b.cpp", "CFLAGS=-O1 -g", "EMPTY=", "MAX_JOBS=3"]
    assert parse_settings(texts) == {
        "USE_CUDA": "OFF",
        "USE_CUSTOM_DEBINFO": "a.cpp;b.cpp",
        "CFLAGS": "-O1 -g",
        "EMPTY": "",
        "MAX_JOBS": "3",
    }


def test_only_what_the_build_reads_is_shown_of_the_environment() -> None:
    found = from_environment({"USE_CUDA": "1", "HOME": "/h", "CXX": "clang++", "MY_USE_X": "1", "CXXFILT": "x"})
    assert [(each.name, each.value) for each in found] == [("CXX", "clang++"), ("USE_CUDA", "1")]


def test_later_layers_win() -> None:
    first = [Variable(name="A", value="1", origin="x"), Variable(name="B", value="1", origin="x")]
    second = [Variable(name="A", value="2", origin="y")]
    assert [(each.name, each.value, each.origin) for each in merged(first, second)] == [
        ("A", "2", "y"),
        ("B", "1", "x"),
    ]


def test_the_build_sees_no_other_python() -> None:
    environment = {"PYTHONPATH": "/other", "PYTHONHOME": "/x", "PATH": "/usr/bin", "KEPT": "1"}
    own = for_child([Variable(name="DEBUG", value="1", origin="x")], Path("/env"), environment=environment)
    assert own["PATH"] == "/env/bin:/usr/bin"
    assert (own["KEPT"], own["DEBUG"], own["VIRTUAL_ENV"]) == ("1", "1", "/env")
    assert not {"PYTHONPATH", "PYTHONHOME"} & set(own)
