"""Python functions at whose calls the host wants to stop: found by their dotted names, watched for in the ring."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
import signal
import threading
import types
from collections.abc import Sequence
from typing import Any, cast

from .names import NameTable
from .ring import CALL, Ring

BREAK_INDEX_WORD, BREAK_COUNT_WORD = 2, 3
"""Words of the ring's header: which name was called (its position in the list), and how many stops there were."""

MARKER = signal.SIGURG


def find(dotted: str, names: dict[str, Any]) -> tuple[types.CodeType | None, dict[str, Any]]:
    """(code of the Python function of that name or None, what the host is told).

    Told: {"kind": "python"}, {"kind": "c", "name": name of the C function}, or {"kind": "unknown", "close": [...]}.
    Never raises.
    """
    parts = dotted.split(".")
    try:
        found = names[parts[0]] if parts[0] in names else importlib.import_module(parts[0])
        for position, part in enumerate(parts[1:], 2):
            if not hasattr(found, part) and isinstance(found, types.ModuleType):
                with contextlib.suppress(ImportError):
                    importlib.import_module(".".join(parts[:position]))
            if not hasattr(found, part):
                return None, {"kind": "unknown", "close": difflib.get_close_matches(part, dir(found), n=3)}
            found = getattr(found, part)
        found = inspect.unwrap(cast("Any", found))
    except Exception:
        return None, {"kind": "unknown", "close": []}
    function = getattr(found, "__func__", found)
    if isinstance(function, type):
        function = getattr(function, "__init__", None)
    code = getattr(function, "__code__", None)
    if isinstance(code, types.CodeType):
        return code, {"kind": "python"}
    return None, {"kind": "c", "name": str(getattr(function, "__name__", parts[-1]))}


def watch(ring: Ring, names: NameTable, codes: Sequence[types.CodeType | None]) -> None:
    """From now on a call of one of the codes stops the thread, after its event was written."""
    positions = {
        names.add_code(code, None)[0] | CALL: position for position, code in enumerate(codes) if code is not None
    }
    if not positions:
        return
    write, words, kill, this_thread = ring.write, ring.words, signal.pthread_kill, threading.get_ident

    def write_and_stop(first: int, second: int) -> None:
        write(first, second)
        position = positions.get(first)
        if position is not None:
            words[BREAK_INDEX_WORD] = position
            words[BREAK_COUNT_WORD] += 1
            kill(this_thread(), MARKER)

    ring.write = write_and_stop
