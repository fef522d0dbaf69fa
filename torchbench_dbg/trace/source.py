"""Where functions are defined in a PyTorch source tree: found by name, as a wheel has no line numbers.

The tree should be a checkout of the commit that `torch.version.git_version` names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from torchbench_dbg.trace.names import qualified
from torchbench_dbg.trace.record import Function

_LONGEST_HEAD = 40  # lines of a function's head
_DIRECTORIES = ("aten/src/ATen", "c10", "torch/csrc")
_SUFFIXES = frozenset({".cpp", ".h", ".cu", ".cuh"})
_LAYERS = frozenset(
    {"binding", "autograd", "native", "kernel", "stub", "engine", "node", "blas", "dispatcher", "extension"}
)
# Not kept: what is generated at build time is in no checkout.
_GENERATED = re.compile(r"^at::_ops::|::wrapper_|VariableType|ADInplaceOrView|autograd::generated::")

Place = tuple[str, int]  # file, below the tree, and line


def located(functions: Iterable[Function], tree: Path) -> tuple[Function, ...]:
    """The functions, with file and line where a definition of their name is found in the tree."""
    functions = tuple(functions)
    wanted = {key for function in functions if (key := _key(function))}
    places = _definitions(tree, wanted) if wanted else {}
    return tuple(_placed(function, places, tree) for function in functions)


def _key(function: Function) -> str | None:
    """The identifier to look for: `add_kernel`, or `TORCH_IMPL_FUNC(mul_out)`'s `mul_out` for structured kernels."""
    if function.layer not in _LAYERS or not function.symbol or _GENERATED.search(function.name):
        return None
    parts = qualified(function.name).split("::")
    if parts[-1] == "impl" and len(parts) > 1 and parts[-2].startswith("structured_"):
        return parts[-2].removeprefix("structured_")
    named = [part for part in parts if re.fullmatch(r"[A-Za-z_]\w*", part)]
    return named[-1] if named else None


def _placed(function: Function, places: dict[str, list[Place]], tree: Path) -> Function:
    found = places.get(_key(function) or "", [])
    if not found:
        return function
    file, line = min(found, key=lambda place: (not _fits(place[0], function), len(place[0])))
    return replace(function, file=str(tree / file), line=line)


def _fits(file: str, function: Function) -> bool:
    """Whether a file is where a function of that layer is expected; CUDA sources are not, for a CPU library."""
    if file.endswith((".cu", ".cuh")) or "/cuda/" in file or "/mps/" in file:
        return False
    return ("/cpu/" in file) == (function.layer == "kernel")


def _definitions(tree: Path, wanted: set[str]) -> dict[str, list[Place]]:
    names = "|".join(map(re.escape, sorted(wanted)))
    pattern = re.compile(rf"^(?:TORCH_IMPL_FUNC\((?P<structured>{names})\)|[\w:<>,&*\[\] ]*?\b(?P<plain>{names})\s*\()")
    places: dict[str, list[Place]] = {}
    for path in _sources(tree):
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            if line[:1] in " \t/#}" or not (match := pattern.match(line)) or _is_declaration(lines, number - 1):
                continue
            name = match["structured"] or match["plain"]
            places.setdefault(name, []).append((str(path.relative_to(tree)), number))
    return places


def _is_declaration(lines: list[str], start: int) -> bool:
    """Whether a `;` comes before any `{`."""
    for line in lines[start : start + _LONGEST_HEAD]:
        ends = [at for at in (line.find("{"), line.find(";")) if at >= 0]
        if ends:
            return line[min(ends)] == ";"
    return False


def _sources(tree: Path) -> Iterator[Path]:
    for directory in _DIRECTORIES:
        for path in sorted((tree / directory).rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file() and path.stat().st_size < 2 << 20:
                yield path
