"""`tdbg attach`: the stacks of a running process, Python and C++ in one."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
from pathlib import Path

from torchbench_dbg import console, paths, runs
from torchbench_dbg.attach import views
from torchbench_dbg.attach.engine import attach
from torchbench_dbg.errors import TargetError, UsageError
from torchbench_dbg.trace import procfs

_SHOWN = 8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AttachOptions:
    """What the command line said. `process`: a number, or the name of a script or program."""

    process: str
    thread: int | None = None
    everything: bool = False
    json: bool = False
    output: Path | None = None
    save: bool = True


def run(options: AttachOptions) -> int:
    """Look once, and show."""
    record = attach(_find(options.process), everything=options.everything)
    if options.thread is not None:
        chosen = tuple(thread for thread in record.threads if thread.native_id == options.thread)
        if not chosen:
            known = ", ".join(str(thread.native_id) for thread in record.threads)
            raise UsageError(f"process {record.pid} has no thread {options.thread}.", hint=f"it has {known}")
        record = dataclasses.replace(record, threads=chosen)
    text = json.dumps(record.to_json(), ensure_ascii=False)
    if options.json:
        console.print_text(text)
    else:
        for line in views.lines(record, colours=console.stdout().color_system is not None):
            console.stdout().print(line)
    if options.save:
        runs.save("stacks", text, title=f"{record.pid}: {record.command}", status="finished")
    if options.output is not None:
        paths.write_result(options.output, text + "\n")
    return 0


def _find(text: str) -> int:
    """The process of a number, or the only one whose command has the text. TargetError with those that there are."""
    running = _python_processes()
    if text.isdigit():
        if not Path(f"/proc/{text}").is_dir():
            raise TargetError(f"there is no process {text}.", hint=_listed(running))
        return int(text)
    matching = [pid for pid, command in running.items() if text in command]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise TargetError(
            f"{text} is in the commands of several processes.", hint=_listed({p: running[p] for p in matching})
        )
    names = {Path(word).name: pid for pid, command in running.items() for word in command.split()}
    close = difflib.get_close_matches(text, names, n=1)
    hint = f"did you mean {close[0]} ({names[close[0]]})?" if close else _listed(running)
    raise TargetError(f"no Python process has {text} in its command.", hint=hint)


def _listed(processes: dict[int, str]) -> str:
    if not processes:
        return "no Python process is running that you may see"
    shown = [f"{pid} ({command[:60]})" for pid, command in list(processes.items())[:_SHOWN]]
    return "Python processes: " + ", ".join(shown)


def _python_processes() -> dict[int, str]:
    """Number -> command of the processes that run a Python, this one left out."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            command = procfs.command_line(int(entry))
            if "python" in Path(command.partition(" ")[0]).name:
                found[int(entry)] = command
    return found
