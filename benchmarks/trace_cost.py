"""What tracing costs: whole processes, side by side in one run, as ratios to `python -c "import torch"`.

Each pair is one run of the command and one of the baseline, one after the other, so that a machine whose speed
drifts treats both alike. Printed are the medians of the pairs' ratios.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

CONV2D = "F.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3))"
BACKWARD = "(x * w).sum().backward()"
GDB_SCRIPT = ("set pagination off", "set breakpoint pending on", "break THPVariable_add", "run", "bt", "kill")


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """Wall time of one process; its output is thrown away. Raises if it fails."""
    began = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


class Bench:
    """Pairs of a command and the baseline."""

    def __init__(self, python: str, tdbg: list[str], pairs: int, cache: Path) -> None:
        self.baseline = [python, "-c", "import torch"]
        self.python, self.tdbg, self.pairs = python, tdbg, pairs
        self.cache = cache
        self.environment = {**os.environ, "TDBG_CACHE_DIR": str(cache), "TDBG_STATE_DIR": str(cache / "state")}

    def trace(self, expression: str) -> list[str]:
        return [*self.tdbg, "trace", "--python", self.python, expression]

    def ratio(self, command: list[str], *, pairs: int | None = None, before: Callable[[], None] = lambda: None) -> str:
        """Median, smallest and largest ratio of the pairs, and the median seconds of both."""
        ours, theirs = [], []
        for _ in range(pairs or self.pairs):
            before()
            ours.append(seconds(command, self.environment))
            theirs.append(seconds(self.baseline, self.environment))
        ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
        return (
            f"{statistics.median(ratios):5.2f} x   [{min(ratios):.2f} .. {max(ratios):.2f}]   "
            f"{statistics.median(ours):.2f} s against {statistics.median(theirs):.2f} s"
        )

    def forget(self) -> None:
        shutil.rmtree(self.cache / "symbols", ignore_errors=True)

    def gdb_session(self, gdb: str) -> list[str]:
        commands = [part for line in GDB_SCRIPT for part in ("-ex", line)]
        program = "import torch; a = torch.randn(4, 4); a + a"
        return [gdb, "-nx", "-batch", *commands, "--args", self.python, "-c", program]


def gdbs() -> list[str]:
    """The wheel's gdb beside this interpreter, and the system's."""
    wheel = Path(sys.executable).parent / "gdb"
    return [path for path in (str(wheel) if wheel.exists() else "", "/usr/bin/gdb") if path and Path(path).exists()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch")
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    tdbg = [sys.executable, "-m", "torchbench_dbg"]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.python, tdbg, options.pairs, Path(folder))
        bench.ratio(bench.trace("a + b"), pairs=1)  # fills the cache and the disk's
        print(f"ratio to `python -c 'import torch'`, median of {options.pairs} pairs [smallest .. largest]")
        for title, expression in (("a + b", "a + b"), ("conv2d", CONV2D), ("small backward", BACKWARD)):
            print(f"tdbg trace, {title:<28} {bench.ratio(bench.trace(expression))}", flush=True)
        print(
            f"{'tdbg trace, a + b, first ever':<40} {bench.ratio(bench.trace('a + b'), before=bench.forget)}",
            flush=True,
        )
        for gdb in gdbs():
            version = subprocess.run([gdb, "--version"], capture_output=True, text=True).stdout.split("\n")[0]
            print(f"{version[:40]:<40} {bench.ratio(bench.gdb_session(gdb), pairs=min(3, options.pairs))}", flush=True)


if __name__ == "__main__":
    main()
