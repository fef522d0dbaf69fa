"""The libraries whose functions are watched: torch's own, and every extension that is linked to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from torchbench_dbg.trace import elf
from torchbench_dbg.trace.probes import read_mappings
from torchbench_dbg.trace.symbols import SymbolIndex, load_index

_TORCH_LIBRARIES = ("libtorch", "libc10")  # what an extension of torch is linked to (DT_NEEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLibrary:
    """A library with its number in the record."""

    number: int
    path: Path
    index: SymbolIndex
    extension: bool


@dataclass(slots=True)
class WatchedLibraries:
    """The loaded libraries, numbered in the order in which they were found."""

    loaded: list[LoadedLibrary] = field(default_factory=list)
    _others: set[str] = field(default_factory=set)  # paths that are known not to be linked to torch

    @classmethod
    def load(cls, paths: Iterable[Path], cache: Path | None, warn: Callable[[str], None]) -> WatchedLibraries:
        """Indexes of torch's libraries; one that is no readable ELF file is left out with a warning."""
        libraries = cls()
        for path in paths:
            libraries._add(path, cache, warn, extension=False)
        return libraries

    def copy(self) -> WatchedLibraries:
        """For another process, which may load other extensions: what is known here need not be read again."""
        return WatchedLibraries(list(self.loaded), self._others)

    @property
    def by_path(self) -> dict[str, tuple[int, SymbolIndex]]:
        return {str(library.path): (library.number, library.index) for library in self.loaded}

    def add_extensions(
        self, pid: int, torch_directory: str | None, cache: Path | None, warn: Callable[[str], None]
    ) -> None:
        """Add what the process has mapped that is linked to torch and is not torch's own."""
        known = {str(library.path) for library in self.loaded} | self._others
        own = {library.path.parent for library in self.loaded} | {Path(torch_directory or "/")}
        for path in sorted({mapping.path for mapping in read_mappings(pid) if "x" in mapping.permissions}):
            if path in known or not path.startswith("/") or ".so" not in path or Path(path).parent in own:
                continue
            try:
                needed = elf.needed_libraries(Path(path))
            except (OSError, elf.ElfError):
                continue
            if any(name.startswith(_TORCH_LIBRARIES) for name in needed):
                self._add(Path(path), cache, warn, extension=True)
            else:
                self._others.add(path)

    def _add(self, path: Path, cache: Path | None, warn: Callable[[str], None], *, extension: bool) -> None:
        try:
            index = load_index(path, cache, on_warning=warn)
        except (OSError, elf.ElfError) as error:
            warn(f"{path} can't be read, its functions stay unseen: {error}")
            return
        self.loaded.append(LoadedLibrary(number=len(self.loaded), path=path, index=index, extension=extension))
