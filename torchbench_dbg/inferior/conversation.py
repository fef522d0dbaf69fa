"""The inferior's side of the conversation: hello, imported, (prepare), ready, finished or raised, then
answers until exit.

'raised' carries a stage: import, setup (also the namespace and the libraries to load), script, compile,
warm (the namespace could not be made a second time after the warm-up: start again with "cold"),
expression. Up to 'ready' it ends the process; at stage expression the questions are answered as after
'finished'. An exception in the warm-up itself is not reported: the traced run raises it again.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from . import breakpoints, tensor_layout
from .channel import Channel
from .dispatch import key_names, operator_record, operator_records
from .failures import StageFailure, raised_event
from .guards import children_leave, run_to_the_end, stage, standard_output_away
from .introduction import hello_event, import_torch, load_libraries
from .names import NameTable
from .namespace import NameList, TorchSettings, fill, list_user_names, new_main_module, seed_everything
from .program import (
    EXPRESSION_FILE,
    RESULT,
    SETUP_FILE,
    compile_expression,
    compile_script,
    compile_setup,
    nested_codes,
)
from .recorder import Recorder
from .region import Region, flush
from .ring import Ring
from .script import ScriptLine, enter_script
from .values import result_record

DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of prctl(2)."""
SET_PTRACER, ANY_PROCESS = 0x59616D61, 2**64 - 1
"""PR_SET_PTRACER: where yama lets only ancestors trace, gdb may attach too, which is no ancestor."""


def main(arguments: Sequence[str]) -> NoReturn:
    """Run the whole conversation. `arguments`: CONTROL_FD EVENTS_FD RING_FD NAMES_FD HOST_PID."""
    control, events, ring, names, host = (int(argument) for argument in arguments)
    die_with(host)
    channel = Channel(control, events)
    config = channel.receive()
    if config is None:
        os._exit(1)
    session = Session(channel, config, Ring(ring), NameTable(names))
    converse(channel, session.run)


def converse(channel: Channel, conversation: Callable[[], None]) -> NoReturn:
    """Run a conversation and end; the StageFailure that ends it is sent."""
    try:
        conversation()
    except StageFailure as failure:
        flush()
        channel.send(raised_event(failure.stage, failure.error, failure.files))
        leave(1)
    leave(0)


def enter_program(script: str | None, arguments: Sequence[str]) -> None:
    """sys.argv and sys.path as `python script.py` or `python -c` would have them."""
    sys.argv = [script, *arguments] if script is not None else ["-c"]
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.path.dirname(os.path.realpath(script)) if script is not None else "")


def die_with(host: int) -> None:
    """Ask the kernel to kill this process when the host ends, and end now if it already has."""
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(DIE_WITH_PARENT, 9, 0, 0, 0)
        libc.prctl(SET_PTRACER, ctypes.c_ulong(ANY_PROCESS), 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        # A target without ctypes is still usable; the host's own clean-up remains.
        pass
    if os.getppid() != host:
        os._exit(1)


def leave(status: int) -> NoReturn:
    """Run the exit handlers of the user's code (temporary files), then end at once: threads that still
    run are not waited for.
    """
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    flush()
    os._exit(status)


class Session:
    """One configuration, one traced run."""

    def __init__(self, channel: Channel, config: dict[str, Any], ring: Ring, names: NameTable) -> None:
        self.channel = channel
        self.config = config
        self.script: str | None = config.get("script")
        self.cold = bool(config.get("cold")) or self.script is not None
        self.torch: Any = None
        self._ring = ring
        self._names = names
        self._setup = config.get("setup") or ""
        self._breaks: dict[str, Any] = {}

    def run(self) -> None:
        """Everything up to the last answer. Raises StageFailure."""
        enter_program(self.script, self.config.get("argv") or [])
        self.channel.send(hello_event())
        code, setup = self._compile()
        self.torch, imported = import_torch()
        self.channel.send(imported)
        load_libraries(self.torch, self.config.get("load_libraries") or [])
        self.wait_for_host()
        line = self.config.get("line") if self.script is not None else None
        if line is not None:
            ScriptLine(self, int(line), setup).run()
            return
        self._trace(code, setup)

    def run_forked(self, torch: Any) -> None:
        """The same where torch is imported already: in a fork of server.py. Raises StageFailure."""
        self.torch = torch
        self.wait_for_host()
        self._trace(*self._compile())

    def _compile(self) -> tuple[Any, Any]:
        with stage("compile", EXPRESSION_FILE):
            code = compile_expression(self.config.get("expression") or "")
        with stage("setup", SETUP_FILE):
            return code, compile_setup(self._setup)

    def _trace(self, code: Any, setup: Any) -> None:
        """From the names to the last answer."""
        with stage("setup", SETUP_FILE):
            seed_everything(self.torch, self._seed)
        names, listed = self._namespace(setup)
        if not self.cold:
            settings = TorchSettings(self.torch)
            self._warm_up(code, names)
            del names
            try:
                settings.restore()
                names, listed = self._namespace(setup)
            except StageFailure as failure:
                raise StageFailure("warm", failure.error, failure.files) from None
        flush()
        region = Region(self.recorder(nested_codes(code), names))
        self.ready(listed)
        failure_of_run = region.run(code, names)
        flush()
        result = names.pop(RESULT, None)
        self.report(region, failure_of_run, result, names, [EXPRESSION_FILE, self.script or EXPRESSION_FILE])
        self.answer_questions()

    @property
    def _seed(self) -> int:
        return int(self.config.get("seed") or 0)

    def make_names(self, names: dict[str, Any]) -> NameList:
        """Put the promised names into `names`. Raises StageFailure."""
        with stage("setup"):
            device, dtype = self.config.get("device") or "cpu", self.config.get("dtype") or "float32"
            return fill(self.torch, names, str(device), str(dtype), self._seed)

    def run_setup(self, setup: Any, names: dict[str, Any]) -> None:
        """Execute the setup code. Raises StageFailure."""
        with stage("setup", SETUP_FILE), children_leave():
            exec(setup, names)

    def _namespace(self, setup: Any) -> Any:
        """(names, what to tell of them): a new `__main__` in which the script and the setup have run."""
        if self.script is not None:
            names = enter_script(self.script)
            with stage("script", self.script), children_leave():
                run_to_the_end(compile_script(self.script), names)
        else:
            names = new_main_module().__dict__
        own = {"torch", "nn", "F"}
        before = {name: value for name, value in names.items() if name.startswith("__")}
        listed = self.make_names(names)
        own.update(entry["name"] for entry in listed)
        before.update((name, names[name]) for name in own)
        self.run_setup(setup, names)
        with stage("setup"):
            return names, listed + list_user_names(self.torch, before, names)

    def _warm_up(self, code: Any, names: dict[str, Any]) -> None:
        """Run once so that static initialisers, caches and lazy imports are done; its output is thrown
        away.
        """
        with stage("warm"), standard_output_away(), children_leave():
            try:
                exec(code, names)
            except BaseException:
                # The traced run raises it again, with its path.
                return

    def recorder(self, line_codes: list[Any], names: dict[str, Any]) -> Recorder | None:
        """A recorder that stops at the Python functions of the configuration's `breaks`; none for a plain run."""
        if self.config.get("plain"):
            return None
        wanted = [str(text) for text in self.config.get("breaks") or []]
        found = [breakpoints.find(text, names) for text in wanted]
        self._breaks = dict(zip(wanted, (told for _, told in found)))
        breakpoints.watch(self._ring, self._names, [code for code, _ in found])
        return Recorder(self._ring, self._names, line_codes)

    def wait_for_host(self) -> None:
        """Until the host says `prepare`: from then on it follows every thread and child of this process."""
        while True:
            message = self.channel.receive()
            if message is None or message.get("command") == "exit":
                leave(0)
            if message.get("command") == "prepare":
                return

    def ready(self, listed: NameList) -> None:
        """Tell the host that the start marker comes next: there the process stands until the host lets it go on."""
        layout = tensor_layout.measure(self.torch) if self.config.get("stops") else None
        self.channel.send(
            {"event": "ready", "names": listed, "cold": self.cold, "breaks": self._breaks, "tensor_layout": layout}
        )

    def report(
        self,
        region: Region,
        failure: BaseException | None,
        result: object,
        names: dict[str, Any],
        files: list[str],
    ) -> None:
        """'finished' or 'raised'."""
        if failure is not None:
            self.channel.send(raised_event("expression", failure, files))
            return
        record = result_record(self.torch, result, names)
        self.channel.send({"event": "finished", "result": record, "seconds": region.seconds})

    def end(self) -> NoReturn:
        """End the process after a conversation that went well."""
        leave(0)

    def answer_questions(self) -> None:
        """Until the host says exit or closes its end."""
        while True:
            message = self.channel.receive()
            command = None if message is None else message.get("command")
            if message is None or command == "exit":
                return
            if command == "keys":
                keys = {str(raw): key_names(self.torch, raw) for raw in message.get("raw") or []}
                self.channel.send({"event": "keys", "keys": keys})
            elif command == "dispatch":
                found = {str(name): operator_record(self.torch, name) for name in message.get("ops") or []}
                self.channel.send({"event": "dispatch", "ops": found})
            elif command == "operators":
                operators = operator_records(self.torch, message.get("names") or [])
                self.channel.send({"event": "operators", "operators": operators})
            else:
                self.channel.send({"event": "unknown", "command": str(command)})
