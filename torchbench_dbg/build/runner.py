"""Runs a plan: each step once, whatever interrupts it in between; then the record of what happened."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
import shlex
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from torchbench_dbg import __version__, process, records
from torchbench_dbg.build import memory, ninja, tools
from torchbench_dbg.build.ccache import read_statistics
from torchbench_dbg.build.first_error import first_error
from torchbench_dbg.build.lock import locked
from torchbench_dbg.build.plan import STEPS, BuildPlan
from torchbench_dbg.build.record import (
    BuildRecord,
    Failure,
    Proof,
    SlowFile,
    Status,
    StepRecord,
    ToolRecord,
    VariableRecord,
)
from torchbench_dbg.build.shell import CommandFailed, Shell, Watcher
from torchbench_dbg.build.state import BuildState, builds_directory, fingerprint
from torchbench_dbg.build.steps import BY_NAME
from torchbench_dbg.errors import BuildError
from torchbench_dbg.paths import write_atomically

_TOOLS = ("cmake", "ninja", "ccache", "git")


@dataclass(slots=True, kw_only=True)
class Runner:
    """One run of a plan. `watcher` is told how it goes on."""

    plan: BuildPlan
    watcher: Watcher
    _steps: list[StepRecord] = field(default_factory=list)
    _began: float = field(default_factory=time.time)

    def run(self) -> BuildRecord:
        """All steps that are not done. BuildError if the tree is being built already; a step's failure is in the
        record."""
        with locked(self.plan.folder), _asked_to_end(), self._open_log() as log:
            (self.plan.folder / "ccache.stats").unlink(missing_ok=True)
            state = BuildState(self.plan.folder)
            self._start_from(state)
            shell = Shell(variables=self.plan.child_variables(), log=log, watcher=self.watcher, is_sign=memory.is_sign)
            failure, status = None, self._status_when_through()
            step = ""
            try:
                for step in self.plan.steps:
                    self._step(step, state, shell)
            except BuildError as error:
                failure, status = self._failure(step, error), "failed"
            except KeyboardInterrupt:
                status = "interrupted"
            record = self._record(status, failure)
            if status == "finished":
                write_atomically(builds_directory() / f"{self.plan.identifier}.json", json.dumps(record.to_json()))
            return record

    def _status_when_through(self) -> Status:
        return "finished" if self.plan.steps[-1] == list(STEPS)[-1] else "stopped"

    @contextlib.contextmanager
    def _open_log(self) -> Iterator[BinaryIO]:
        self.plan.folder.mkdir(parents=True, exist_ok=True)
        # Line by line: what a killed tdbg had seen is in it.
        with self.log_path.open("wb", buffering=0) as log:
            yield log

    @property
    def log_path(self) -> Path:
        moment = datetime.datetime.fromtimestamp(self._began).strftime("%Y%m%d-%H%M%S")
        return self.plan.folder / f"build-{moment}.log"

    def _start_from(self, state: BuildState) -> None:
        if self.plan.request.start_from:
            later = list(STEPS)[list(STEPS).index(self.plan.request.start_from) :]
            state.forget(*later)

    def _step(self, name: str, state: BuildState, shell: Shell) -> None:
        module = BY_NAME[name]
        depends_on = fingerprint(module.fingerprint(self.plan))
        self.watcher.step_begins(STEPS[name])
        is_done = getattr(module, "is_done", None)
        skipped = is_done is not None and state.is_done(name, depends_on) and is_done(self.plan)
        began = time.monotonic()
        if not skipped:
            state.forget(name)
            self._with_memory(module, shell)
            # The world may have changed what the step depends on: a clone gives a commit.
            state.mark(name, fingerprint(module.fingerprint(self.plan)), time.monotonic() - began)
        self._steps.append(StepRecord(name=name, seconds=state.seconds(name), skipped=skipped))
        self.watcher.step_ends(skipped=skipped)

    def _with_memory(self, module: ModuleType, shell: Shell) -> None:
        """Run a step; where it runs out of memory, again with half the compilers. ninja keeps what is done."""
        while True:
            kills_before = memory.kills()
            try:
                module.run(self.plan, shell)
                return
            except CommandFailed as failure:
                if self.plan.jobs == 1 or not memory.ran_out(failure, kills_before):
                    raise
                jobs = self.plan.jobs // 2
                self.watcher.note(f"out of memory with {self.plan.jobs} compilers at a time: going on with {jobs}")
                self.plan = self.plan.with_jobs(jobs, "less memory than needed")
                shell.variables = self.plan.child_variables()

    def _failure(self, step: str, error: BuildError) -> Failure:
        with self.log_path.open(encoding="utf-8", errors="replace") as log:
            found = first_error(log)
        command = isinstance(error, CommandFailed)
        return Failure(
            step=step,
            command=shlex.join(error.argv) if isinstance(error, CommandFailed) else "",
            code=error.code if isinstance(error, CommandFailed) else 0,
            error=found.text if command and found else error.message,
            log_line=found.line if command and found else 0,
            tail=error.tail if isinstance(error, CommandFailed) else ((error.hint,) if error.hint else ()),
        )

    def _record(self, status: Status, failure: Failure | None) -> BuildRecord:
        plan = self.plan
        history = ninja.read_log(plan.source / "build" / ".ninja_log")
        return BuildRecord(
            tdbg=__version__,
            created=datetime.datetime.fromtimestamp(self._began, datetime.timezone.utc).isoformat(timespec="seconds"),
            identifier=plan.identifier,
            status=status,
            source=str(plan.source),
            python=str(plan.python),
            profile=plan.profile.name,
            commit=_commit(plan.source),
            target=plan.request.target,
            jobs=plan.jobs,
            machine=f"{platform.machine()} · {platform.platform()} · {os.cpu_count()} processors",
            steps=tuple(self._steps),
            variables=tuple(VariableRecord(name=v.name, value=v.value, origin=v.origin) for v in plan.variables),
            tools=tuple(_tools(plan)),
            log=str(self.log_path),
            failure=failure,
            proof=_proof(plan) if status == "finished" else None,
            slowest=tuple(SlowFile(output=e.output, seconds=e.seconds) for e in ninja.slowest(history)),
            cache=read_statistics(plan.folder / "ccache.stats"),
        )


@contextlib.contextmanager
def _asked_to_end() -> Iterator[None]:
    """A polite end (SIGTERM, a closed terminal) is taken as Ctrl-C is: the step's processes end with it."""

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _commit(source: Path) -> str | None:
    if not (source / ".git").exists():
        return None
    return process.run(["git", "-C", str(source), "rev-parse", "HEAD"], timeout=30).stdout.strip() or None


def _tools(plan: BuildPlan) -> Iterator[ToolRecord]:
    own = plan.child_variables()
    found = [*tools.compilers(own), *(tools.find_tool(name, own) for name in _TOOLS)]
    for tool in found:
        if tool is not None:
            yield ToolRecord(name=tool.name, path=tool.path, version=".".join(map(str, tool.version)))


def _proof(plan: BuildPlan) -> Proof:
    data = json.loads((plan.folder / "proof.json").read_text(encoding="utf-8"))
    return records.build(Proof, data)
