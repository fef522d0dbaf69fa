"""The shell between two inputs: the server, the choices, and the traces so far."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from torchbench_dbg import console, errors, records, runs
from torchbench_dbg.commands.trace import EXIT_CODES
from torchbench_dbg.shell import commands
from torchbench_dbg.shell.choices import Choices, View
from torchbench_dbg.shell.server import ServerGone, TorchServer
from torchbench_dbg.trace import views
from torchbench_dbg.trace.record import TraceRecord, from_json


@dataclass(slots=True, kw_only=True)
class Shell:
    """A context manager, as it holds a server. Records are kept on disk, with the runs: memory does not grow."""

    choices: Choices
    as_json: bool = False
    warn: Callable[[str], None] = console.warn
    names: tuple[str, ...] = ()  # that an expression finds
    ended: bool = False  # by :quit
    _server: TorchServer | None = None
    _last: TraceRecord | None = None
    _runs: list[str | None] = field(default_factory=list)  # identifier of each trace; None: it could not be kept

    def __enter__(self) -> Shell:
        self.try_out(self.choices)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.__exit__()
            self._server = None

    @property
    def server(self) -> TorchServer:
        """The server; a new one where there is none."""
        if self._server is None:
            server = TorchServer(self.choices.python, cache=self.choices.cache_directory, warn=self.warn)
            self._server = server.__enter__()
        return self._server

    @property
    def number(self) -> int:
        """Of the next trace."""
        return len(self._runs) + 1

    def run(self, text: str) -> int:
        """Run a command or an expression; an exit code as that of `tdbg trace`."""
        if text.lstrip().startswith(":"):
            commands.run(self, text)
            return 0
        record = self._trace(self.choices, text)
        self._last, self.names = record, tuple(name.name for name in record.names)
        if not self.as_json:
            views.show(record, self.choices.view_options(), console.stdout())
        line = json.dumps(record.to_json(), ensure_ascii=False)
        kept = runs.save("trace", line, title=record.expression, status=record.status)
        self._runs.append(kept.identifier if kept else None)
        if self.as_json:
            console.print_text(line)
        return EXIT_CODES[record.status]

    def try_out(self, choices: Choices) -> None:
        """Take choices over if the target can do with them: device, dtype, setup and the stops' names."""
        self.names = tuple(name.name for name in self._trace(choices, "pass").names)
        self.choices = choices

    def _trace(self, choices: Choices, expression: str) -> TraceRecord:
        try:
            return self.server.trace(choices.request(expression))
        except ServerGone as gone:
            self.__exit__(None, None, None)
            raise ServerGone(gone.message, hint="the next expression starts a new one") from gone

    def completions(self, text: str) -> list[str]:
        """How a dotted name can go on; nothing where the server is gone."""
        with contextlib.suppress(ServerGone):
            return self.server.completions(text)
        return []

    def show(self, which: str, view: View | None) -> None:
        """Draw a trace of this session again: `last`, or its number."""
        views.show(self.record(which), self.choices.view_options(view), console.stdout())

    def json_of(self, which: str) -> str:
        return json.dumps(self.record(which).to_json(), ensure_ascii=False)

    def record(self, which: str) -> TraceRecord:
        """A trace of this session. UsageError if there is none of that number."""
        if self._last is None:
            raise errors.UsageError("nothing has been traced yet.", hint="type an expression, such as a + b")
        if which in ("last", str(len(self._runs))):
            return self._last
        number = int(which) if which.isdecimal() else 0
        if not 1 <= number <= len(self._runs):
            raise errors.UsageError(f"there is no trace {which}: a number from 1 to {len(self._runs)}, or last.")
        identifier = self._runs[number - 1]
        if identifier is None:
            raise errors.RecordError(f"trace {number} could not be kept.")
        data: dict[str, Any] = records.read(runs.find(identifier).record)
        return from_json(data)
