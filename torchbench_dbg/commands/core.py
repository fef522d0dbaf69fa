"""`tdbg core`: why the process died whose core file that is."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from torchbench_dbg import console, paths, runs
from torchbench_dbg.crash import analysis, views
from torchbench_dbg.crash.core import CoreFile, changed_files, open_core
from torchbench_dbg.crash.record import Crash, CrashRecord
from torchbench_dbg.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreOptions:
    """What the command line said. `executable`: the program (or library) to read instead of one that is not here."""

    file: Path
    executable: Path | None = None
    all_threads: bool = False
    json: bool = False
    output: Path | None = None
    save: bool = True


def run(options: CoreOptions) -> int:
    """0 when the core could be read, whatever it says."""
    core = open_core(options.file)
    if options.executable is not None:
        _use(core, options.executable)
    notes = [*core.notes, *changed_files(core)]
    crash = _examine(core)
    record = CrashRecord(
        reason="core",
        command=(crash.command,),
        exit_code=128 + core.fault.signal if core.fault else 0,
        crashes=(replace(crash, notes=(*crash.notes, *notes)),),
    )
    text = json.dumps(record.to_json(), ensure_ascii=False)
    if options.save:
        runs.save("crash", text, title=str(options.file), status="core")
    if options.output is not None:
        paths.write_result(options.output, text + "\n")
    if options.json:
        console.print_text(text)
        return 0
    for line in views.lines(record, all_threads=options.all_threads):
        console.stdout().print(line)
    return 0


def _examine(core: CoreFile) -> Crash:
    thread = next(thread for thread in core.threads if thread.native_id == core.failing)
    return analysis.analyse(
        core, thread, core.fault, command=core.command, is_script=True, standing="the core of a process that lived on"
    )


def _use(core: CoreFile, executable: Path) -> None:
    """Read names from this file where the core says the process's program was."""
    if not executable.is_file():
        raise UsageError(f"--executable {executable} is no file.")
    program = next(
        (mapping.path for mapping in core.mappings if "x" in mapping.permissions and ".so" not in mapping.path), None
    )
    path = os.path.realpath(executable)
    core.mappings = [replace(each, path=path) if each.path == program else each for each in core.mappings]
