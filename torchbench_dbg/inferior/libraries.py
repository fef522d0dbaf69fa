"""Finds the target's torch and its libraries without importing it."""

from __future__ import annotations

import glob
import importlib.util
import os
import re
import sys

# torch_global_deps, torchbind_test and the like hold nothing that an expression runs.
_LIBRARY = re.compile(
    r"^lib(torch|torch_(cpu|python|cuda|cuda_cpp|cuda_cu|cuda_linalg|hip|xpu|mps)|c10|c10_(cuda|hip|xpu))"
    r"\.so(\.[0-9.]+)?$"
)


def torch_directory() -> str | None:
    """Directory of the torch package that `import torch` would find, None if there is none."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return os.path.abspath(next(iter(spec.submodule_search_locations)))


def torch_libraries(directory: str | None) -> list[str]:
    """Real paths of torch's own libraries: as they will appear in /proc/PID/maps.

    The wheel has them in torch/lib; Debian and conda-forge have symbolic links there, or (torch/lib
    missing) keep them where the environment's libraries are.
    """
    if directory is None:
        return []
    found = _in_directory(os.path.join(directory, "lib"))
    if not found:
        found = [
            path for place in (os.path.join(sys.prefix, "lib"), *_system_directories()) for path in _in_directory(place)
        ]
    return found


def _in_directory(directory: str) -> list[str]:
    paths = sorted(glob.glob(os.path.join(glob.escape(directory), "lib*.so*")))
    real = [os.path.realpath(path) for path in paths if _LIBRARY.match(os.path.basename(path))]
    return list(dict.fromkeys(path for path in real if os.path.isfile(path)))


def _system_directories() -> list[str]:
    multiarch = getattr(sys.implementation, "_multiarch", "")
    return ["/usr/lib/" + multiarch, "/usr/lib64"] if multiarch else ["/usr/lib64"]
