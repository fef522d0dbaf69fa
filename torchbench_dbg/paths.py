"""Where things are: the cache, the state, the configuration, and the code that runs in other processes."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from torchbench_dbg.errors import UsageError


def _directory(variable: str, kind: str) -> Path:
    if chosen := os.environ.get(variable):
        return Path(chosen).expanduser()
    import platformdirs

    directory: Path = getattr(platformdirs, f"user_{kind}_path")("tdbg", appauthor=False)
    return directory


def cache_directory() -> Path:
    """Symbol indexes and what else can be made anew. TDBG_CACHE_DIR overrides."""
    return _directory("TDBG_CACHE_DIR", "cache")


def state_directory() -> Path:
    """Runs and crash reports. TDBG_STATE_DIR overrides."""
    return _directory("TDBG_STATE_DIR", "state")


def config_directory() -> Path:
    """The user's config.toml. TDBG_CONFIG_DIR overrides."""
    return _directory("TDBG_CONFIG_DIR", "config")


def inferior_directory() -> Path:
    """The code that runs inside the target interpreter."""
    return Path(__file__).parent / "inferior"


def gdbinit_directory() -> Path:
    """The code that runs inside gdb: packaged, or beside the package in a checkout."""
    packaged = Path(__file__).parent / "_gdbinit"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "gdbinit"


def import_from_gdbinit(name: str) -> Any:
    """A module of gdbinit/ that does not need gdb: reading of ELF files, unwind tables, Python's structures."""
    directory = str(gdbinit_directory())
    if directory not in sys.path:
        sys.path.append(directory)
    return importlib.import_module(name)


def recipes_directory() -> Path:
    """tdbg's own recipes: packaged, or beside the package in a checkout."""
    packaged = Path(__file__).parent / "_recipes"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "recipes"


def write_atomically(path: Path, text: str) -> None:
    """Replace a file whole or not at all; its directory is made. OSError if it can't be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def write_result(path: Path, text: str) -> None:
    """Write the file that -o names. UsageError if it can't be."""
    try:
        write_atomically(path, text)
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}", hint="choose another file with -o") from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
