"""Where functions of torch and of its extensions are in a running process: by tdbg's indexes, not by gdb's reading."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torchbench_dbg.debugger.answers import Place, Stop
from torchbench_dbg.errors import UnknownSymbol
from torchbench_dbg.paths import cache_directory
from torchbench_dbg.trace.breakpoints import resolve
from torchbench_dbg.trace.libraries import WatchedLibraries
from torchbench_dbg.trace.names import demangle, shorten
from torchbench_dbg.trace.probes import read_mappings, regions_of

_BACKEND = r"(cpu|python|cuda|cuda_cpp|cuda_cu|cuda_linalg|hip|xpu|mps)"
_TORCH = re.compile(rf"/lib(torch|torch_{_BACKEND}|c10|c10_\w+)\.so[.\d]*$")
MOST_PLACES = 64  # for one name


class Places:
    """The functions of one process as it is mapped now."""

    def __init__(self, pid: int, warn: Callable[[str], None]) -> None:
        mappings = read_mappings(pid)
        paths = sorted({each.path for each in mappings if "x" in each.permissions and _TORCH.search(each.path)})
        libraries = WatchedLibraries.load(map(Path, paths), cache_directory(), warn)
        libraries.add_extensions(pid, os.path.dirname(paths[0]) if paths else None, cache_directory(), warn)
        self._libraries = libraries.loaded
        self._bias = {each.library: each.bias for each in regions_of(mappings, libraries.by_path)}
        self.has_torch = bool(paths)

    def find(self, text: str) -> list[Place]:
        """The functions of that name: a C++ name whole or its end, or /regex/. UnknownSymbol with suggestions."""
        if not self.has_torch:
            raise UnknownSymbol(
                f"torch is not loaded yet, so there is no {text}.", hint="go on past `import torch` in pdb (next)"
            )
        found = resolve(text, self._libraries).places
        if len(found) > MOST_PLACES:
            raise UnknownSymbol(
                f"{len(found)} functions are called {text}: a breakpoint at each would be too many.",
                hint="give more of the name, or a narrower /regex/",
            )
        return [
            Place(
                name=shorten(demangle(library.index.name(symbol))),
                address=library.index.starts[symbol] + self._bias[library.number],
            )
            for library, symbol in found
            if library.number in self._bias and not library.index.name(symbol).endswith(".cold")  # nothing calls it
        ]

    def find_known(self, texts: Iterable[str]) -> list[Place]:
        """Of several names those that are known."""
        found: list[Place] = []
        for text in texts:
            try:
                found += self.find(text)
            except UnknownSymbol:
                continue
        return unique(found)


def unique(places: Iterable[Place]) -> list[Place]:
    """Each address once."""
    return list({place.address: place for place in places}.values())


def wanted_stop(wish: Mapping[str, Any], breaks: Sequence[str] | None, pid: int, warn: Callable[[str], None]) -> Stop:
    """Where gdb is to stop: at the function that the person names, at those that the script does (`breaks`), else at
    what the current line runs.

    `wish`: what pdb's command `gdb` says (inferior/debugged.py). UnknownSymbol for a name that nothing has.
    """
    asked = [wish["function"]] if wish["function"] else breaks
    reasons: list[tuple[tuple[Place, ...], str]] = []
    if asked:
        places = Places(pid, warn)
        reasons = [(tuple(places.find(name)), name) for name in asked]
    elif asked is None and wish["lines"]:
        places = Places(pid, warn)
        found = ((tuple(places.find_known(line["functions"])), line["text"]) for line in wish["lines"])
        reasons = [each for each in found if each[0]]
    return Stop(place=wish["place"], text=wish["text"], reasons=tuple(reasons), asked=asked is not None)
