"""Compiles what the user wants to see: the expression, or a script in which one line is marked."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from typing import NamedTuple

from .failures import LineNotReached, register_source

EXPRESSION_FILE = "<expr>"
SETUP_FILE = "<setup>"
RESULT = "__tdbg_result__"
BEGIN, FAILED, END = "__tdbg_begin__", "__tdbg_failed__", "__tdbg_end__"

HOOKS = f"{BEGIN}()\ntry:\n    pass\nexcept:\n    {FAILED}()\n    raise\nfinally:\n    {END}()\n"


class Marked(NamedTuple):
    """A script with its line marked; `result` is the name that holds the value of the statement after
    it, if any does.
    """

    code: types.CodeType
    result: str | None


def compile_expression(text: str) -> types.CodeType:
    """One or more statements; the value of a last expression goes to the name RESULT. Raises SyntaxError
    or ValueError (null bytes).
    """
    register_source(EXPRESSION_FILE, text)
    tree = ast.parse(text, EXPRESSION_FILE)
    if tree.body:
        tree.body[-1] = keep_value(tree.body[-1])
    return compile(tree, EXPRESSION_FILE, "exec", dont_inherit=True)


def compile_setup(text: str) -> types.CodeType:
    """Statements to run before the expression. Raises SyntaxError."""
    register_source(SETUP_FILE, text)
    return compile(text, SETUP_FILE, "exec", dont_inherit=True)


def compile_script(path: str) -> types.CodeType:
    """The whole script. Raises OSError, SyntaxError."""
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def compile_marked_script(path: str, line: int) -> Marked:
    """The script with calls of the hooks BEGIN, FAILED and END around what begins at `line`, all line
    numbers as they were.

    Raises OSError, SyntaxError, LineNotReached.
    """
    with open(path, "rb") as file:
        tree = ast.parse(file.read(), path)
    block, first, last = find_statements(tree, path, line)
    statements = block[first:last]
    result = result_name(statements[-1])
    statements[-1] = keep_value(statements[-1])
    hooks = ast.parse(HOOKS).body
    for hook in hooks:
        for node in ast.walk(hook):
            ast.copy_location(node, block[first])
    guarded = hooks[1]
    assert isinstance(guarded, ast.Try)
    guarded.body = statements
    block[first:last] = hooks
    return Marked(compile(tree, path, "exec", dont_inherit=True), result)


def keep_value(statement: ast.stmt) -> ast.stmt:
    """An expression statement becomes an assignment to RESULT; others stay."""
    if not isinstance(statement, ast.Expr):
        return statement
    target = ast.copy_location(ast.Name(RESULT, ast.Store()), statement)
    return ast.copy_location(ast.Assign([target], statement.value), statement)


def result_name(statement: ast.stmt) -> str | None:
    """The variable in which to find what the statement made."""
    if isinstance(statement, ast.Expr):
        return RESULT
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and isinstance(targets[0], ast.Name):
        return targets[0].id
    return None


def find_statements(tree: ast.Module, path: str, line: int) -> tuple[list[ast.stmt], int, int]:
    """(block, first, last): the statements block[first:last] begin on `line`, or it is inside their only
    one; the outermost if several blocks have one.

    Of a compound statement only the head counts: its body has statements of its own. Raises LineNotReached.
    """
    starts = set()
    for block in _blocks(tree):
        for index, statement in enumerate(block):
            start, end = _extent(statement)
            starts.add(start)
            if start <= line <= end:
                last = index + 1
                while last < len(block) and _extent(block[last])[0] == start:
                    last += 1
                if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                    raise LineNotReached(f"line {line} of {path} is a __future__ import, which runs nothing")
                return block, index, last
    nearest = [
        max((s for s in starts if s < line), default=None),
        min((s for s in starts if s > line), default=None),
    ]
    where = " and ".join(str(number) for number in nearest if number is not None)
    raise LineNotReached(
        f"{path} has no statement on line {line}" + (f"; the nearest lines with one: {where}" if where else "")
    )


def nested_codes(code: types.CodeType) -> list[types.CodeType]:
    """The code object and those of the functions and classes in it."""
    found = [code]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.extend(nested_codes(constant))
    return found


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


def _extent(statement: ast.stmt) -> tuple[int, int]:
    """First and last line; the last line of a compound statement is that of its head."""
    decorators = [decorator.lineno for decorator in getattr(statement, "decorator_list", [])]
    start = min([statement.lineno, *decorators])
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if not isinstance(body, list):
        return start, statement.end_lineno or start
    first = body[0].pattern.lineno if hasattr(body[0], "pattern") else _extent(body[0])[0]
    return start, max(statement.lineno, first - 1)
