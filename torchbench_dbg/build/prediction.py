"""What a change costs before it is built: ninja is asked, and runs nothing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torchbench_dbg import process
from torchbench_dbg.build import ninja
from torchbench_dbg.errors import BuildError

_TIMEOUT = 600.0  # seconds; PyTorch's whole graph is read in about one


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """`steps`: how many commands ninja would run; `seconds`: what they took the last time, all of them known or None.
    `changed`: the files that are newer than what was made of them."""

    steps: int
    seconds: float | None
    changed: tuple[str, ...]


def predict(build: Path, jobs: int, environment: Mapping[str, str]) -> Prediction:
    """What `ninja install` would do in a build directory. BuildError if ninja can't say."""
    told = process.run(
        ["ninja", "-C", str(build), "-n", "-v", "-d", "explain", "install"],
        timeout=_TIMEOUT,
        env={**environment, "NINJA_STATUS": "\x1e"},
    )
    if told.returncode:
        last = ((told.stdout + told.stderr).strip().splitlines() or [""])[-1]
        raise BuildError(f"ninja can't say what is to be built: {last}", hint="tdbg build --from configure")
    # Not splitlines: for it that character ends a line.
    commands = [line[1:] for line in told.stdout.split("\n") if line.startswith("\x1e")]
    # The installation itself is done every time, and copies only what is new.
    commands = [command for command in commands if "cmake_install.cmake" not in command]
    changed = dict.fromkeys(re.findall(r"most recent input (\S+) ", told.stdout + told.stderr))
    known = ninja.read_log(build / ".ninja_log")
    outputs = [found[1] for command in commands if (found := re.search(r" -o (\S+)", command))]
    seconds = [known[output].seconds for output in outputs if output in known]
    return Prediction(
        steps=len(commands),
        seconds=sum(seconds) / max(1, jobs) if outputs and len(seconds) == len(outputs) else None,
        changed=tuple(changed),
    )


def check_files(build: Path, files: list[Path], environment: Mapping[str, str]) -> None:
    """BuildError for a file that no command of the build reads, with the closest ones that some do."""
    told = process.run(["ninja", "-C", str(build), "-t", "compdb", "-x"], timeout=_TIMEOUT, env=environment)
    sources = set(re.findall(r'"file": "([^"]+)"', told.stdout))
    known = {str((build / source).resolve()) for source in sources}
    for file in files:
        if str(file.resolve()) not in known and file.suffix not in (".h", ".hpp", ".cuh", ".yaml", ".py"):
            names = {Path(source).name: source for source in sources}
            close = difflib.get_close_matches(file.name, names, n=3)
            hint = f"did you mean {', '.join(names[name] for name in close)}?" if close else None
            raise BuildError(f"nothing in this build is compiled from {file}.", hint=hint)
