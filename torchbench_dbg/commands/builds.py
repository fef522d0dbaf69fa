"""`tdbg builds`: the builds of this machine. `tdbg env`: enter one."""

from __future__ import annotations

import json
import os
import shlex
import time

from torchbench_dbg import console, process
from torchbench_dbg.build import variables
from torchbench_dbg.build.plan import STEPS
from torchbench_dbg.build.registry import KnownBuild, find_build, known_builds


def run(*, as_json: bool) -> int:
    """List them, the one used last first."""
    found = known_builds()
    if as_json:
        console.print_text(json.dumps([each.to_json() for each in found], ensure_ascii=False))
        return 0
    if not found:
        console.message("no builds yet: tdbg build makes one")
        return 0
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    for each in found:
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.used))
        table.add_row(Text(each.identifier, style="cyan"), _status(each), moment, str(each.source))
    console.stdout().print(table)
    return 0


def _status(build: KnownBuild) -> str:
    if build.finished:
        return "finished"
    done = [name for name in STEPS if name in build.steps]
    return f"after {done[-1]}" if done else "begun"


def enter(name: str | None, *, shell: bool) -> int:
    """Print the lines that a shell takes to enter the build's environment, or start a shell in it."""
    build = find_build(name)
    own = variables.for_child([], build.prefix)
    own.pop("NINJA_STATUS")
    if shell:
        program = os.environ.get("SHELL") or "/bin/sh"
        console.message(f"{program} in the environment of {build.identifier}; exit leaves it")
        process.replace([program], env=own, cwd=build.source if build.source.is_dir() else None)
    for variable in ("PATH", "VIRTUAL_ENV", "PYTHONNOUSERSITE"):
        console.print_text(f"export {variable}={shlex.quote(own[variable])}")
    console.print_text("unset PYTHONPATH PYTHONHOME")
    return 0
