"""What a recipe needs of the machine, and whether it is there."""

from __future__ import annotations

from pathlib import Path

from torchbench_dbg import process
from torchbench_dbg.recipes.format import NEEDS

_HAS_GPU = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)"


def lacking(names: tuple[str, ...], python: Path) -> str | None:
    """The first of the needs that is not met, for people."""
    return next((NEEDS[name] for name in names if not _IS_MET[name](python)), None)


def _has_gpu(python: Path) -> bool:
    """Whether torch can use a GPU; asked only where a driver has made a device, as it takes an import of torch."""
    devices = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
    if not any(Path(device).exists() for device in devices):
        return False
    return process.run([str(python), "-c", _HAS_GPU], timeout=120).returncode == 0


_IS_MET = {"gpu": _has_gpu}
