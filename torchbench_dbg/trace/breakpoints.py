"""From what a person types after --break to functions: C++ names whole or in part, /regex/, Python names, aliases."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

Place = tuple[LoadedLibrary, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakpoint:
    """A --break text and the C++ functions that it means; none if it names a Python function."""

    text: str
    places: tuple[Place, ...] = ()
    note: str | None = None


def python_names(texts: Sequence[str]) -> list[str]:
    """The --break texts that may be Python names: only the target can tell what they are."""
    return [
        text for text in texts if text not in ALIASES and "." in text and all(map(str.isidentifier, text.split(".")))
    ]


def resolve(text: str, libraries: Sequence[LoadedLibrary], told: Mapping[str, Any] | None = None) -> Breakpoint:
    """What a --break text means; `told`: what the target says of it as a Python name.

    UnknownSymbol with suggestions if nothing has that name.
    """
    wanted, note = text, None
    if text in ALIASES:
        wanted = ALIASES[text]
        note = f"{text} is {wanted} in today's PyTorch"
    if told is not None and told["kind"] == "python":
        return Breakpoint(text=text)  # the inferior watches for its calls
    if told is not None and told["kind"] == "c":
        # python_variable_methods.cpp and its siblings: the binding of `add` is THPVariable_add.
        wanted = f"THPVariable_{told['name']}"
        note = f"{text} is bound to {wanted}"
    if len(wanted) > 2 and wanted.startswith("/") and wanted.endswith("/"):
        places = tuple(_matching(wanted[1:-1], libraries))
    else:
        places = tuple(_named(wanted, libraries))
    if not places:
        raise unknown(text, libraries, told)
    return Breakpoint(text=text, places=places, note=note)


def unknown(text: str, libraries: Sequence[LoadedLibrary], told: Mapping[str, Any] | None) -> UnknownSymbol:
    """The error for a name that nothing has, with the closest names."""
    if told is not None and told["kind"] == "c":
        return UnknownSymbol(
            f"{text} is a C function whose binding is not known by name.",
            hint="tdbg trace EXPR --tree shows its C++ name; --break takes that",
        )
    close = list(told["close"]) if told is not None else suggestions(text, libraries)
    hint = (
        f"did you mean {', '.join(close)}?"
        if close
        else "a regular expression goes between slashes: --break '/add.*kernel/'"
    )
    what = "in the target's Python" if told is not None else "in torch's libraries"
    return UnknownSymbol(f"no function {what} is called {text}.", hint=hint)


def _named(text: str, libraries: Iterable[LoadedLibrary]) -> Iterator[Place]:
    path = text.replace("(anonymous namespace)::", "").strip(": ")
    parts = path.split("::")
    rarest = max(parts[-2:], key=len)  # half of all functions are called `call` or `apply`
    if not parts[-1]:
        return
    for library in libraries:
        for symbol in library.index.candidates(rarest):
            mangled = library.index.name(symbol)
            if library.index.categories[symbol] == Category.THIRD_PARTY or not all(part in mangled for part in parts):
                continue
            name = qualified(demangle(mangled)).replace("(anonymous namespace)::", "")
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
    for dropped in range(1, max(2, len(word) // 2)):
        found: set[str] = set()
        for piece in {word[:-dropped], word[dropped:]}:
            for library in libraries:
                for symbol in library.index.candidates(piece)[:500]:
                    found.update(name for name in _identifiers(library.index.name(symbol)) if piece in name)
        if close := difflib.get_close_matches(word, found, n=count, cutoff=0.7):
            return close
    return []


def _identifiers(symbol: str) -> Iterator[str]:
    """The source names in a mangled name: each is preceded by its length."""
    if not symbol.startswith("_Z"):
        yield symbol
        return
    position = 0
    while found := _LENGTH.search(symbol, position):
        position = found.end() + int(found.group())
        yield symbol[found.end() : position]


_LENGTH = re.compile(r"\d{1,4}(?=[A-Za-z_])")
