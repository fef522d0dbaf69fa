"""Which of torch's operators a line of Python will run, as far as its text tells."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Optional

BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.MatMult: "matmul",
    ast.Pow: "pow",
    ast.Mod: "remainder",
    ast.FloorDiv: "floor_divide",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "__lshift__",
    ast.RShift: "__rshift__",
}
UNARY = {ast.USub: "neg", ast.Invert: "bitwise_not"}
COMPARISONS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
# What is no operator, and has a function of its own in C++: torch/csrc/autograd/python_engine.cpp,
# torch/csrc/autograd/python_variable_indexing.cpp.
FUNCTIONS = {
    "backward": ("THPEngine_run_backward", "torch::autograd::Engine::execute"),
    "grad": ("THPEngine_run_backward", "torch::autograd::Engine::execute"),
    "getitem": ("THPVariable_getitem",),
    "setitem": ("THPVariable_setitem",),
}
MOST_OVERLOADS = 8


def operators_at(source: Sequence[str], line: int) -> list[dict[str, Any]]:
    """[{"name": "add", "text": "a + b"}, ...] of the statement at a line (from 1), in the order of evaluation.

    Nothing for what is no valid Python. A compound statement (`for`, `with`) counts with its first line alone.
    """
    statement = statement_at("".join(source), line)
    if statement is None:
        return []
    text = "".join(source)
    found: dict[str, str] = {}
    for name, node in operations(statement):
        found.setdefault(name, " ".join((ast.get_source_segment(text, node) or name).split())[:60])
    return [{"name": name, "text": piece} for name, piece in found.items()]


def statement_at(text: str, line: int) -> Optional[ast.stmt]:
    """The innermost statement that has the line."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(reversed(around), key=lambda node: node.lineno, default=None)  # of those on one line the inner one


def operations(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """(name, where) of the operations in a statement; what it has in its body is left out."""
    for field, value in ast.iter_fields(node):
        if isinstance(node, ast.stmt) and field in ("body", "orelse", "finalbody", "handlers", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from operations(child)
    for name in _names(node):
        yield name, node


def _names(node: ast.AST) -> Iterator[str]:
    """What the node itself does."""
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        yield BINARY[type(node.op)]
    elif isinstance(node, ast.AugAssign) and type(node.op) in BINARY:
        yield BINARY[type(node.op)].rstrip("_") + "_"
    elif isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        yield UNARY[type(node.op)]
    elif isinstance(node, ast.Compare):
        yield from (COMPARISONS[type(each)] for each in node.ops if type(each) in COMPARISONS)
    elif isinstance(node, ast.Subscript):
        yield "getitem" if isinstance(node.ctx, ast.Load) else "setitem"
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield node.func.attr
        elif isinstance(node.func, ast.Name):
            yield node.func.id


def functions_of(operations_found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """[{"functions": [C++ names], "text"}, ...] of those that are operators of the torch that is loaded.

    Of an operator the binding that Python calls and its entries in the dispatcher, one for each overload that has no
    `out`. Names that torch does not have are left out.
    """
    found = []
    for each in operations_found:
        name = each["name"]
        functions = list(FUNCTIONS.get(name, ())) or [
            *(f"at::_ops::{name}{'_' + overload if overload else ''}::call" for overload in overloads(name)),
        ]
        if functions and name not in FUNCTIONS:
            functions.insert(0, "THPVariable_" + name)
        if functions:
            found.append({"functions": functions, "text": each["text"]})
    return found


def overloads(name: str) -> list[str]:
    """The overloads of an aten operator, "" for the one without a name; [] for what is none."""
    torch: Any = sys.modules.get("torch")
    try:
        schemas = torch._C._jit_get_schemas_for_operator("aten::" + name)
    except (AttributeError, RuntimeError):
        return []
    named = [schema.overload_name for schema in schemas]
    # TorchScript's own overloads (add.int, add.str) have no tensor.
    tensors = [
        schema.overload_name
        for schema in schemas
        if any(str(argument.type) in ("Tensor", "List[Tensor]") for argument in schema.arguments)
    ]
    return [each for each in named if each in tensors and not each.endswith("out")][:MOST_OVERLOADS]
