"""Builds that ran out of memory, by what they print and how they end."""

from __future__ import annotations

import pytest

from torchbench_dbg.build import memory
from torchbench_dbg.build.shell import CommandFailed


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("c++: fatal error: Killed signal terminated program cc1plus", True),
        ("g++: internal compiler error: Killed (program cc1plus)", True),
        ("cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes", True),
        ("collect2: fatal error: ld terminated with signal 9 [Killed]", True),
        ("Killed", True),
        ("/src/a.cpp:3:7: error: 'Killed' was not declared", False),
        ("-- Looking for bad_alloc.h", False),
    ],
)
def test_signs(line: str, expected: bool) -> None:
    assert memory.is_sign(line) is expected


def test_who_was_killed_needs_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "kills", lambda: 3)
    assert memory.ran_out(CommandFailed(("ninja",), -9, ()), 3)
    assert memory.ran_out(CommandFailed(("sh",), 137, ()), 3)
    assert memory.ran_out(CommandFailed(("ninja",), 1, ()), 2)
    assert not memory.ran_out(CommandFailed(("ninja",), 1, ("error: no",)), 3)
    assert memory.ran_out(CommandFailed(("ninja",), 1, (), ("Killed",)), 3)
