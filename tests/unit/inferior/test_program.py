"""Which statements a line of a script means, and what the marked script does."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from torchbench_dbg.inferior.failures import LineNotReached
from torchbench_dbg.inferior.program import (
    BEGIN,
    END,
    FAILED,
    RESULT,
    compile_expression,
    compile_marked_script,
    find_statements,
    nested_codes,
)

SCRIPT = """\
@staticmethod
def f(
    x,
):
    if x: y = 1
    elif x > 2:
        y = 2
    else:
        y = 3
    with open(
        x
    ) as z:
        z.read(
            4
        )
    a = 1; b = 2
    match x:
        case 1:
            pass

try:
    f(1)
except ValueError:
    pass
finally:
    pass
"""


@pytest.mark.parametrize(
    ("line", "first", "count"),
    [
        (1, "@staticmethod", 1),
        (3, "@staticmethod", 1),
        (5, "if x:", 1),
        (6, "if x > 2:", 1),
        (7, "y = 2", 1),
        (9, "y = 3", 1),
        (11, "with open(x) as z:", 1),
        (14, "z.read(4)", 1),
        (16, "a = 1", 2),
        (17, "match x:", 1),
        (19, "pass", 1),
        (21, "try:", 1),
        (22, "f(1)", 1),
        (24, "pass", 1),
        (26, "pass", 1),
    ],
)
def test_the_statements_of_a_line(line: int, first: str, count: int) -> None:
    block, start, end = find_statements(ast.parse(SCRIPT), "s.py", line)
    assert ast.unparse(block[start]).splitlines()[0] == first
    assert end - start == count


@pytest.mark.parametrize("line", [0, 8, 20, 25, 27])
def test_a_line_without_statements_is_refused(line: int) -> None:
    with pytest.raises(LineNotReached, match=f"no statement on line {line}"):
        find_statements(ast.parse(SCRIPT), "s.py", line)


def test_a_future_import_can_t_be_traced() -> None:
    with pytest.raises(LineNotReached, match="__future__"):
        find_statements(ast.parse("from __future__ import annotations"), "s.py", 1)


@pytest.mark.parametrize(
    ("text", "value"), [("1 + 1", 2), ("x = 1\nx + 2", 3), ("x = 1", None), ("", None), ("if 1:\n  5", None)]
)
def test_the_value_of_a_last_expression_is_kept(text: str, value: object) -> None:
    names: dict[str, Any] = {}
    exec(compile_expression(text), names)
    assert names.get(RESULT) == value


def test_functions_inside_are_found() -> None:
    codes = nested_codes(compile_expression("def f():\n    return lambda: [i for i in ()]\nclass C: pass"))
    assert {code.co_name for code in codes} >= {"<module>", "f", "<lambda>", "C"}


def mark(tmp_path: Path, source: str, line: int) -> tuple[list[str], dict[str, Any]]:
    """(hooks called, names after the run)."""
    path = tmp_path / "s.py"
    path.write_text(source)
    called: list[str] = []
    names: dict[str, Any] = {hook: (lambda hook=hook: called.append(hook)) for hook in (BEGIN, FAILED, END)}
    marked = compile_marked_script(str(path), line)
    try:
        exec(marked.code, names)
    except ZeroDivisionError as error:
        trace = error.__traceback__
        assert trace is not None
        names["raised at"] = trace.tb_next.tb_lineno if trace.tb_next else None
    names["result name"] = marked.result
    return called, names


def test_hooks_surround_the_line_and_lines_stay(tmp_path: Path) -> None:
    called, names = mark(tmp_path, "x = 1\n\ny = x + 1\nz = 1/0\n", 3)
    assert called == [BEGIN, END]
    assert (names["y"], names["result name"], names["raised at"]) == (2, "y", 4)


def test_an_exception_of_the_line_is_told(tmp_path: Path) -> None:
    called, names = mark(tmp_path, "\n1/0\n", 2)
    assert called == [BEGIN, FAILED, END]
    assert (names["result name"], names["raised at"]) == (RESULT, 2)


def test_return_break_and_continue_work_inside(tmp_path: Path) -> None:
    source = "def f():\n    for i in range(3):\n        if i == 1: continue\n        return i\nr = f()\n"
    assert mark(tmp_path, source, 3)[0] == [BEGIN, END]
    called, names = mark(tmp_path, source, 4)
    assert (called, names["r"]) == ([BEGIN, END], 0)
