"""What an expression costs in `tdbg shell` after the first, as a ratio to `tdbg trace` of the same expression.

Each pair is one expression typed into a shell that is running, until its footer is read, and one whole `tdbg trace`,
one after the other, so that a machine whose speed drifts treats both alike. Printed are the medians of the pairs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXPRESSIONS = (
    ("a + b", "a + b"),
    ("F.relu(a)", "F.relu(a)"),
    ("a @ b", "a @ b"),
    ("conv2d", "F.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3))"),
    ("small backward", "(x * w).sum().backward()"),
)
FOOTER = b" libraries \xc2\xb7 "  # in the last line of every view


class Shell:
    """`tdbg shell` fed through a pipe."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def seconds(self, expression: str) -> float:
        """From the line that is sent to the last line that comes. Raises if the shell ends."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        began = time.perf_counter()
        self._process.stdin.write(expression.encode() + b"\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if FOOTER in line:
                return time.perf_counter() - began
        raise RuntimeError("the shell ended")

    def close(self) -> None:
        self._process.communicate()


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """Wall time of one process; its output is thrown away. Raises if it fails."""
    began = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch")
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    tdbg = [sys.executable, "-m", "torchbench_dbg"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TDBG_CACHE_DIR": folder, "TDBG_STATE_DIR": str(Path(folder) / "state")}
        shell = Shell([*tdbg, "shell", "--python", options.python], environment)
        shell.seconds("a + b")  # the first pays for the import, and fills the cache
        print(f"ratio to `tdbg trace` of the same expression, median of {options.pairs} pairs [smallest .. largest]")
        for title, expression in EXPRESSIONS:
            ours, theirs = [], []
            for _ in range(options.pairs):
                ours.append(shell.seconds(expression))
                theirs.append(seconds([*tdbg, "trace", "--python", options.python, expression], environment))
            ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
            print(
                f"tdbg shell, {title:<16} {statistics.median(ratios):6.3f} x   "
                f"[{min(ratios):.3f} .. {max(ratios):.3f}]   {statistics.median(ours) * 1000:4.0f} ms against "
                f"{statistics.median(theirs) * 1000:5.0f} ms",
                flush=True,
            )
        shell.close()


if __name__ == "__main__":
    main()
