"""`tdbg crash`: run a script as it is; if it dies, say why."""

from __future__ import annotations

import json
import os
import resource
import signal
from dataclasses import dataclass, replace
from pathlib import Path

from torchbench_dbg import console, errors, paths, process, runs, settings, target
from torchbench_dbg.crash import memory_limit, views
from torchbench_dbg.crash.examiner import Examiner
from torchbench_dbg.crash.record import Crash, CrashRecord, Reason
from torchbench_dbg.crash.stderr import WrittenText, install_filter
from torchbench_dbg.crash.watcher import Ending, Watcher
from torchbench_dbg.debugger.gdb import Gdb, find_gdb
from torchbench_dbg.diagnosis import catalogue
from torchbench_dbg.diagnosis.evidence import Evidence
from torchbench_dbg.diagnosis.matcher import diagnose
from torchbench_dbg.errors import UsageError
from torchbench_dbg.trace import architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashOptions:
    """What the command line said. `arguments`: of the script; `timeout` in seconds."""

    script: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False
    python: str | None = None
    gdb: str | None = None
    timeout: float | None = None
    cuda_sync: bool = False
    all_threads: bool = False
    json: bool = False
    output: Path | None = None
    save: bool = True


def run(options: CrashOptions) -> int:
    """The script's exit code, 128 + its signal if it died of one."""
    loaded = settings.load(warn=console.warn)
    options = replace(options, python=options.python or loaded["python"], gdb=options.gdb or loaded["gdb"])
    _check(options)
    record = _watch(options)
    if record.reason != "exit" or record.diagnoses or record.crashes:
        _tell(options, record)
    return record.exit_code


def _check(options: CrashOptions) -> None:
    if not options.script:
        raise UsageError("there is no script to run.", hint="tdbg crash -- train.py --epochs 1")
    if not options.is_module and not Path(options.script).exists():
        raise UsageError(f"there is no script {options.script}.", hint="tdbg crash -m MODULE runs a module")
    if options.timeout is not None and not 0 < options.timeout < 1e8:
        raise UsageError(f"--timeout {options.timeout:g}: a number of seconds above 0 is expected.")


def _watch(options: CrashOptions) -> CrashRecord:
    python = target.find_target(options.python).python
    gdb = _gdb(options.gdb)
    command = [str(python), *(["-m"] if options.is_module else []), options.script, *options.arguments]
    machine, kills = architecture.current(), memory_limit.kills()
    child = process.hold(command, env=_environment(options), prepare=_prepare)
    written = WrittenText(machine)
    watcher = Watcher(architecture=machine, written=written)
    examiner = Examiner(
        script=child.pid,
        architecture=machine,
        written=written,
        show=lambda crash: _show(options, crash),
        untraced=watcher.untraced,
        gdb=gdb,
    )
    watcher.on_death = examiner.on_death
    ending = watcher.follow(child, timeout=options.timeout)
    record = CrashRecord(
        reason=_reason(ending, examiner.crashes),
        command=tuple(command),
        exit_code=_exit_code(ending),
        python=str(python),
        seconds=round(ending.seconds, 2),
        crashes=tuple(examiner.crashes),
    )
    return record if examiner.crashes else _explained(record, ending, written.text, kills)


def _gdb(explicit: str | None) -> Gdb | None:
    """For lines and variables, which not everybody needs: only a gdb that was asked for must be there."""
    try:
        return find_gdb(explicit)
    except errors.DebuggerError as error:
        if explicit:
            raise
        console.detail(error.message)
        return None


def _environment(options: CrashOptions) -> dict[str, str]:
    if not options.cuda_sync:
        return dict(os.environ)
    console.message(
        "CUDA_LAUNCH_BLOCKING=1: each kernel is waited for where it is launched, so an error shows in the line that "
        "made it, not later. It is slower, and the first error is the one that counts."
    )
    return {**os.environ, "CUDA_LAUNCH_BLOCKING": "1"}


def _prepare() -> None:
    """In the child: no core file beside the script, and its stderr is read on the way."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    install_filter()


def _reason(ending: Ending, crashes: list[Crash]) -> Reason:
    if ending.status is None:
        return "timeout"
    if crashes:
        return "crash"
    return "killed" if ending.status and os.WIFSIGNALED(ending.status) else "exit"


def _exit_code(ending: Ending) -> int:
    if ending.status is None:
        return errors.InferiorTimeout.exit_code
    if os.WIFSIGNALED(ending.status):
        return 128 + os.WTERMSIG(ending.status)
    return os.WEXITSTATUS(ending.status)


def _explained(record: CrashRecord, ending: Ending, written: str, kills: int | None) -> CrashRecord:
    """What is known of an ending that could not be looked at: an exception of Python, SIGKILL."""
    if record.exit_code == 0:
        return record
    machine, notes = [], []
    signal_name = "exit"
    if record.reason == "killed":
        signal_name = signal.Signals(record.exit_code - 128).name
        if signal_name != "SIGKILL":
            return replace(record, reason="exit")  # Ctrl-C, SIGTERM: somebody wanted it so
        now = memory_limit.kills()
        if kills is not None and now is not None and now > kills:
            machine = [f"the memory cgroup counts {now - kills} more killed for want of memory than before"]
        notes = [f"the script had used up to {ending.peak_memory / (1 << 20):,.0f} MiB of memory."]
    evidence = Evidence(signal=(signal_name,), text=(written,) if written else (), machine=tuple(machine))
    return replace(record, diagnoses=diagnose(catalogue.load("crash"), evidence), notes=tuple(notes))


def _show(options: CrashOptions, crash: Crash) -> None:
    if not options.json:
        for line in views.crash_lines(crash, all_threads=options.all_threads):
            console.stderr().print(line)


def _tell(options: CrashOptions, record: CrashRecord) -> None:
    text = json.dumps(record.to_json(), ensure_ascii=False)
    if options.save:
        runs.save("crash", text, title=" ".join(record.command[1:]), status=record.reason)
    if options.output is not None:
        paths.write_result(options.output, text + "\n")
    if options.json:
        console.stderr().file.write(text + "\n")
        return
    for line in views.lines(replace(record, crashes=())):
        console.stderr().print(line)
