"""From a process that stands still at its end to a record of why."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from torchbench_dbg.crash import exceptions, faults, instructions, stacks
from torchbench_dbg.crash.record import Crash, ThreadStack
from torchbench_dbg.crash.snapshot import AddressMap, Snapshot, ThreadState, Unreadable
from torchbench_dbg.crash.watcher import Fault
from torchbench_dbg.diagnosis import catalogue
from torchbench_dbg.diagnosis.evidence import Evidence
from torchbench_dbg.diagnosis.matcher import diagnose
from torchbench_dbg.trace.record import Frame

_CODE_BYTES = 16
_SHARED = ("/dev/shm/", "/torch_", "/SYSV")


def analyse(
    snapshot: Snapshot,
    thread: ThreadState,
    fault: Fault | None,
    *,
    command: str,
    is_script: bool,
    written: str = "",
    process_facts: Sequence[str] = (),
    details: stacks.Details = MappingProxyType({}),
    at_fault: Mapping[str, int] | None = None,
    standing: str = "the time was over",
) -> Crash:
    """`standing`: why the process is looked at, where no signal has ended it. `written`: what was written to stderr.

    `at_fault`: the registers when the signal was raised first, where a handler has run since. `details`: lines and
    variables, of a debugger.
    """
    where = AddressMap(snapshot.mappings)
    thread = dataclasses.replace(thread, registers=at_fault) if at_fault else thread
    registers = thread.registers
    number = fault.signal if fault else 0
    facts = _facts(fault, registers, where, standing)
    merged, notes = stacks.stacks_of(snapshot, thread, details=details)
    frames = merged[0][1] if merged else []
    failing = stacks.responsible(frames) or (frames[0] if frames else None)
    code = _code(snapshot, registers["rip"]) if number == signal.SIGILL else b""
    terminated = number == signal.SIGABRT and _is_terminate(frames)
    thrown = exceptions.find_exception(snapshot, thread) if terminated else None
    own_facts = [
        *process_facts,
        *(["std::terminate"] if terminated else []),
        *(["Python's code in a thread that Python does not know"] if _without_python_state(frames) else []),
    ]
    crash = Crash(
        pid=snapshot.pid,
        command=command,
        is_script=is_script,
        signal=signal.Signals(number).name if number else "none",
        fault=facts.kind,
        fault_text=facts.text,
        address=facts.address,
        instruction=code.hex(" "),
        instruction_set=instructions.instruction_set(code) if code else "",
        exception_type=thrown.type if thrown else "",
        exception_text=thrown.text if thrown else "",
        message=exceptions.abort_message(snapshot) if number == signal.SIGABRT else "",
        failing_function=failing.name if failing else "",
        failing_library=failing.library or "" if failing else "",
        threads=tuple(
            ThreadStack(native_id=state.native_id, name=state.name, frames=tuple(stack)) for state, stack in merged
        ),
        notes=tuple(notes),
    )
    return _with_diagnoses(crash, snapshot, written, own_facts)


def _facts(fault: Fault | None, registers: Mapping[str, int], where: AddressMap, standing: str) -> faults.FaultFacts:
    if fault is None:
        return faults.FaultFacts(kind="none", text=standing)
    return faults.explain(
        fault.signal, fault.code, fault.address, fault.sender, pc=registers["rip"], sp=registers["rsp"], where=where
    )


def _with_diagnoses(crash: Crash, snapshot: Snapshot, written: str, process_facts: Sequence[str]) -> Crash:
    evidence = Evidence(
        signal=(crash.signal,),
        fault=(crash.fault, crash.fault_text),
        instruction=(crash.instruction_set,) if crash.instruction_set else (),
        failing=(f"{Path(crash.failing_library).name or 'python'}!{crash.failing_function}",),
        stack=tuple(_fact(frame) for frame in (crash.threads[0].frames if crash.threads else ())),
        threads=tuple(_fact(frame) for thread in crash.threads[1:] for frame in thread.frames),
        loaded=tuple(sorted({Path(mapping.path).name for mapping in snapshot.mappings if ".so" in mapping.path})),
        exception=(f"{crash.exception_type}: {crash.exception_text}",) if crash.exception_type else (),
        text=tuple(text for text in (crash.message, written) if text),
        machine=tuple(_machine(crash)),
        process=(*process_facts, *_process(crash, snapshot)),
    )
    return dataclasses.replace(crash, diagnoses=diagnose(catalogue.load("crash"), evidence))


def _fact(frame: Frame) -> str:
    return f"python!{frame.name}" if frame.kind == "python" else f"{Path(frame.library or '').name}!{frame.name}"


def _is_terminate(frames: Sequence[Frame]) -> bool:
    """Whether libstdc++ called abort: std::terminate's functions have no names in a stripped one."""
    names = [frame.name for frame in frames]
    if any("__glibcxx_assert_fail" in name for name in names):
        return False
    return any(frame.library and Path(frame.library).name.startswith("libstdc++") for frame in frames)


def _without_python_state(frames: Sequence[Frame]) -> bool:
    """Whether a thread died in the interpreter's code, yet runs nothing of Python."""
    native = [frame for frame in frames if frame.kind == "native" and not stacks.is_runtime(frame)]
    return (
        bool(native)
        and len(native) == len(frames)
        and stacks.is_interpreter(native[0])
        and not all(stacks.is_interpreter(frame) for frame in native)
    )


def _code(snapshot: Snapshot, pc: int) -> bytes:
    for size in range(_CODE_BYTES, 0, -1):
        try:
            return snapshot.read(pc, size)
        except Unreadable:
            continue
    return b""


def _machine(crash: Crash) -> list[str]:
    flag = instructions.FLAGS.get(crash.instruction_set)
    if flag and (have := processor_flags()) and flag not in have:
        return [f"lacks {crash.instruction_set} ({flag})"]
    return []


def processor_flags() -> frozenset[str]:
    """What the processor can do, by /proc/cpuinfo."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


def _process(crash: Crash, snapshot: Snapshot) -> list[str]:
    mapping = AddressMap(snapshot.mappings).at(crash.address) if crash.address else None
    if crash.fault in ("past end of file", "memory error") and mapping and mapping.path.startswith(_SHARED):
        return ["touched shared memory"]
    return []
