"""What driving a build costs: ninja as `tdbg build` runs it, side by side with ninja alone, on the same files.

Each pair compiles the same generated project twice from nothing, without a compiler cache. Printed is the median of the
pairs' ratios, and whether the log has all of the output.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from torchbench_dbg.build.progress import TalkingWatcher
from torchbench_dbg.build.shell import Command, Shell
from torchbench_dbg.build.variables import for_child

FILES = 16
SOURCE = """\
#include <map>
#include <string>
#warning said
std::map<std::string, int> f{n}() {{ return {{{{"{n}", {n}}}}}; }}
"""


def make_project(folder: Path) -> None:
    """A ninja file and as many C++ files, of a second or two each, every one with a warning."""
    lines = ["rule cxx", "  command = c++ -g -c $in -o $out", "  description = CXX $out"]
    for number in range(FILES):
        (folder / f"file{number}.cpp").write_text(SOURCE.format(n=number))
        lines.append(f"build file{number}.o: cxx file{number}.cpp")
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")


def clean(folder: Path) -> None:
    for path in [*folder.glob("*.o"), folder / ".ninja_log", folder / ".ninja_deps"]:
        path.unlink(missing_ok=True)


def alone(folder: Path, jobs: str) -> float:
    clean(folder)
    began = time.perf_counter()
    with (folder / "alone.log").open("wb") as log:
        subprocess.run(["ninja", "-j", jobs], cwd=folder, check=True, stdout=log, stderr=subprocess.STDOUT)
    return time.perf_counter() - began


def driven(folder: Path, jobs: str) -> float:
    clean(folder)
    began = time.perf_counter()
    with (folder / "driven.log").open("wb", buffering=0) as log:
        shell = Shell(variables=for_child([], folder / "env"), log=log, watcher=TalkingWatcher(folder / ".ninja_log"))
        shell.run(Command(["ninja", "-j", jobs], folder))
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--jobs", default=str(len(os.sched_getaffinity(0))))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        make_project(folder)
        alone(folder, options.jobs)  # the compiler and the headers come from the disk
        pairs = [(driven(folder, options.jobs), alone(folder, options.jobs)) for _ in range(options.pairs)]
        ratios = sorted(ours / theirs for ours, theirs in pairs)
        warnings = [(folder / name).read_text().count("#warning said") for name in ("driven.log", "alone.log")]
        print(
            f"tdbg build against ninja, {FILES} files: {statistics.median(ratios):.3f} x "
            f"[{ratios[0]:.3f} .. {ratios[-1]:.3f}], {statistics.median(theirs for _, theirs in pairs):.1f} s a build; "
            f"warnings in the logs: {warnings[0]} and {warnings[1]}"
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
