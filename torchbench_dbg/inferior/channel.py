"""JSON lines over two private descriptors: control (host to inferior) and events (inferior to host)."""

from __future__ import annotations

import json
import os
from typing import Any

READ_SIZE = 65536


class Channel:
    """Sends events and receives control lines; neither descriptor is inherited by programs that the
    expression starts.
    """

    def __init__(self, control: int, events: int) -> None:
        self._control = control
        self._events = events
        self._pending = b""
        for descriptor in (control, events):
            os.set_inheritable(descriptor, False)

    def send(self, event: dict[str, Any]) -> None:
        """Write one event. A host that is gone ends the process: nobody is left to report to."""
        data = json.dumps(event).encode("ascii") + b"\n"
        try:
            while data:
                data = data[os.write(self._events, data) :]
        except BrokenPipeError:
            os._exit(1)

    def receive(self) -> dict[str, Any] | None:
        """The next control line, or None when the host closed its end. Raises ValueError for a line that
        is not a JSON object.
        """
        while b"\n" not in self._pending:
            data = os.read(self._control, READ_SIZE)
            if not data:
                return None
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError(f"not a JSON object: {line[:80]!r}")
        return message
