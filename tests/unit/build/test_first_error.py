"""The first real error of a log, not what follows from it."""

from __future__ import annotations

import pytest

from torchbench_dbg.build.first_error import first_error


@pytest.mark.parametrize(
    ("log", "text"),
    [
        (
            "[1/2] Building\nFAILED: a.o\n/src/a.cpp:3:7: error: 'x' was not declared\nninja: build stopped: subcommand failed.",
            "/src/a.cpp:3:7: error: 'x' was not declared",
        ),
        ("-- Looking for error.h - found\nCMake Error at CMakeLists.txt:3 (find_package):\n  no X", "CMake Error at"),
        (
            "g++: fatal error: Killed signal terminated program cc1plus\nninja: build stopped",
            "g++: fatal error: Killed",
        ),
        (
            "ld: a.o: undefined reference to `f'\ncollect2: error: ld returned 1 exit status",
            "ld: a.o: undefined reference",
        ),
        (
            "Traceback (most recent call last):\n  File \"x.py\", line 1\n    import yaml\nModuleNotFoundError: No module named 'yaml'\n",
            "ModuleNotFoundError: No module named 'yaml'",
        ),
        ("ERROR: Could not find a version that satisfies the requirement x\n", "ERROR: Could not find"),
        ("FAILED: a.o\nninja: build stopped: subcommand failed.", "FAILED: a.o"),
    ],
)
def test_the_first_error(log: str, text: str) -> None:
    found = first_error(log.splitlines())
    assert found is not None
    assert found.text.startswith(text)


def test_its_place() -> None:
    found = first_error(["ok", "/src/a.cpp:3:7: error: no"])
    assert found is not None
    assert (found.line, found.place) == (2, "/src/a.cpp:3:7")


@pytest.mark.parametrize(
    "line",
    [
        "-- Performing Test COMPILER_SUPPORTS_error - Failed",
        "c++ -Werror=return-type -c a.cpp",
        "[3/9] Building CXX object error_handling.cpp.o",
        "a.cpp:3: warning: an error: maybe",
    ],
)
def test_healthy_lines(line: str) -> None:
    assert first_error([line]) is None
