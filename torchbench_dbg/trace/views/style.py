"""Colours and small pieces that all views share."""

from __future__ import annotations

import linecache
from pathlib import Path

from rich.text import Text

from torchbench_dbg.trace.names import shorten
from torchbench_dbg.trace.record import Code, Function, TraceRecord

LAYER_STYLES = {
    "python": "green",
    "binding": "cyan",
    "dispatcher": "magenta",
    "autograd": "yellow",
    "mode": "yellow",
    "engine": "yellow",
    "node": "bold yellow",
    "wrapper": "blue",
    "native": "bright_blue",
    "stub": "blue",
    "kernel": "bold red",
    "loop": "red",
    "blas": "bold red",
    "device": "bold red",
    "extension": "bold bright_blue",
}


def layer_style(layer: str) -> str:
    return LAYER_STYLES.get(layer, "dim")


def function_text(function: Function) -> Text:
    """A C++ function's short name, in its layer's colour."""
    text = Text(shorten(function.name) if function.symbol else function.name, style=layer_style(function.layer))
    if function.after:
        text.append(f" (after {shorten(function.after)})", style="dim")
    return text


def code_place(code: Code, line: int | None = None) -> str:
    """`torch/_tensor.py:630`: the file from its package on."""
    if not code.file:
        return ""
    shown = line or code.line
    return f"{short_path(code.file)}:{shown}" if shown else short_path(code.file)


def short_path(path: str) -> str:
    """A file's path from site-packages or a source tree's root on, or relative to the current directory."""
    for marker in ("/site-packages/", "/dist-packages/", "/pytorch/pytorch/"):
        if marker in path:
            return path.rpartition(marker)[2]
    for root in ("/aten/src/", "/torch/csrc/", "/c10/"):
        if root in path:
            return root[1:] + path.rpartition(root)[2]
    parts = Path(path).parts
    for position, part in enumerate(parts):
        if part.startswith("python3.") and position + 1 < len(parts):
            return "/".join(parts[position + 1 :])
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def source_line(record: TraceRecord, file: str | None, line: int | None) -> str:
    """The text of a source line: of the expression, or of a file that can be read."""
    if not line:
        return ""
    if file in ("<expr>", "<setup>"):
        lines = ((record.expression if file == "<expr>" else record.setup) or "").splitlines()
        return lines[line - 1].strip() if line <= len(lines) else ""
    return linecache.getline(file, line).strip() if file else ""


def highlighted(source: str, *, language: str = "python") -> Text:
    """A source line with Pygments' colours (Rich's ANSI theme, so that it follows the terminal's)."""
    from rich.syntax import Syntax

    text = Syntax("", language, theme="ansi_dark", background_color="default").highlight(source)
    text.rstrip()
    return text
