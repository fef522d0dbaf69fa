"""The prompt: history, multi-line input, colours, completion. The only module that knows prompt_toolkit."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.defaults import create_output
from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]

from torchbench_dbg import console, paths
from torchbench_dbg.shell.completion import complete
from torchbench_dbg.shell.reader import is_nothing, is_whole

if TYPE_CHECKING:
    from torchbench_dbg.shell.session import Shell


class _History(FileHistory):
    """On a disk that is full or read-only the history ends with the session."""

    def __init__(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(str(path))

    def load_history_strings(self) -> Iterable[str]:
        with contextlib.suppress(OSError):
            return list(super().load_history_strings())
        return []

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):
            super().store_string(string)


class _Completer(Completer):
    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterator[Completion]:
        for word, replaced in complete(document.text_before_cursor, self._shell.names, self._shell.completions):
            yield Completion(word, start_position=-replaced)


def _keys() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_whole(buffer.text) or is_nothing(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline()
            if buffer.document.lines[-2].rstrip().endswith(":"):
                buffer.insert_text("    ")

    @bindings.add("enter", filter=completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return bindings


def inputs(shell: Shell) -> Iterator[str]:
    """What the person types, until Ctrl-D. Ctrl-C empties the line."""
    session: PromptSession[str] = PromptSession(
        history=_History(paths.state_directory() / "shell-history"),
        completer=_Completer(shell),
        complete_while_typing=False,
        lexer=PygmentsLexer(PythonLexer),
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=lambda width, _line, _wrapped: "... ".rjust(width),
        output=create_output(stdout=sys.stderr),  # the prompt is talk: stdout is for the traces
        color_depth=ColorDepth.DEPTH_1_BIT if console.stderr().color_system is None else None,
    )
    while True:
        try:
            text = session.prompt(f"{shell.number}> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if not is_nothing(text):
            yield text.rstrip()
