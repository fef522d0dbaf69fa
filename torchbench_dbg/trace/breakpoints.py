"""From what a person types after --break to functions: C++ names whole or in part, /regex/, Python names, aliases."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from torchbench_dbg.errors import UnknownSymbol, UsageError
from torchbench_dbg.trace.libraries import LoadedLibrary
from torchbench_dbg.trace.names import demangle, qualified
from torchbench_dbg.trace.symbols import Category

ALIASES = {
    # Names that books and older PyTorch use -> the function that does it today.
    "_base_autograd_backward": "THPEngine_run_backward",
    "torch._C._base_autograd_backward": "THPEngine_run_backward",
    "torch._C._EngineBase.run_backward": "THPEngine_run_backward",
    "_C._EngineBase.run_backward": "THPEngine_run_backward",
    "run_backward": "THPEngine_run_backward",
}
_PYTHON_BINDINGS = ("torch.Tensor.", "torch._C.TensorBase.", "torch._C._VariableFunctions.", "torch._C._nn.", "torch.")

Place = tuple[LoadedLibrary, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakpoint:
    """A --break text: the functions that it means, or the Python function that it names."""

    text: str
    places: tuple[Place, ...] = ()
    python: str | None = None
    note: str | None = None


def resolve(text: str, libraries: Sequence[LoadedLibrary]) -> Breakpoint:
    """What a --break text means. UnknownSymbol with suggestions if nothing has that name."""
    wanted, note = text, None
    if text in ALIASES:
        wanted = ALIASES[text]
        note = f"{text} is {wanted} in today's PyTorch"
    if len(wanted) > 2 and wanted.startswith("/") and wanted.endswith("/"):
        places = tuple(_matching(wanted[1:-1], libraries))
    else:
        places = tuple(_named(wanted, libraries))
    if places:
        return Breakpoint(text=text, places=places, note=note)
    if _is_python_name(wanted):
        binding = _binding_of(wanted)
        places = tuple(_named(binding, libraries)) if binding else ()
        note = f"{text} is bound to {binding}" if places else None
        return Breakpoint(text=text, places=places, python=None if places else wanted, note=note)
    raise unknown(text, libraries)


def unknown(text: str, libraries: Sequence[LoadedLibrary]) -> UnknownSymbol:
    """The error for a name that nothing has, with the closest names."""
    close = suggestions(text, libraries)
    hint = f"did you mean {', '.join(close)}?" if close else "a regular expression goes between slashes: --break '/add.*kernel/'"
    return UnknownSymbol(f"no function in torch's libraries is called {text}.", hint=hint)


def _is_python_name(text: str) -> bool:
    return text.startswith("torch.") and all(part.isidentifier() for part in text.split("."))


def _binding_of(name: str) -> str | None:
    """The generated binding's name (python_variable_methods.cpp, python_torch_functions.cpp) of torch.NAME."""
    for prefix in _PYTHON_BINDINGS:
        rest = name.removeprefix(prefix)
        if rest != name and "." not in rest:
            return f"THPVariable_{rest}"
    return None


def _named(text: str, libraries: Iterable[LoadedLibrary]) -> Iterator[Place]:
    path = text.replace("(anonymous namespace)::", "").strip(": ")
    last = path.rpartition("::")[2]
    if not last:
        return
    for library in libraries:
        for symbol in library.index.candidates(last):
            if library.index.categories[symbol] == Category.THIRD_PARTY:
                continue
            name = qualified(demangle(library.index.name(symbol))).replace("(anonymous namespace)::", "")
            if name == path or name.endswith("::" + path):
                yield library, symbol


def _matching(pattern: str, libraries: Iterable[LoadedLibrary]) -> Iterator[Place]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--break /{pattern}/ is not a regular expression: {error}") from error
    literal = max(re.findall(r"[A-Za-z_]\w{3,}", pattern), key=len, default="")
    for library in libraries:
        index = library.index
        # With a plain word in the pattern most names need not be demangled.
        symbols = index.candidates(literal) if literal and not set("|?*{") & set(pattern) else range(len(index))
        for symbol in symbols:
            if index.categories[symbol] != Category.THIRD_PARTY and expression.search(demangle(index.name(symbol))):
                yield library, symbol


def suggestions(text: str, libraries: Iterable[LoadedLibrary], *, count: int = 3) -> list[str]:
    """Names of functions that look like `text`, the closest first."""
    word = text.strip("/").rpartition("::")[2].rpartition(".")[2]
    found: set[str] = set()
    pieces = {word[: max(4, len(word) * 2 // 3)], word[-max(4, len(word) * 2 // 3) :]}
    identifier = re.compile(rb"(?<=\d)[A-Za-z_]\w*")
    for library in libraries:
        for piece in pieces:
            for symbol in library.index.candidates(piece)[:2000]:
                names = identifier.findall(library.index.name(symbol).encode()) or [library.index.name(symbol).encode()]
                found.update(name.decode() for name in names if piece.encode() in name)
    return difflib.get_close_matches(word, found, n=count, cutoff=0.6)
