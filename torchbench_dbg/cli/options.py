"""The options of the commands, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Verbose = Annotated[int, typer.Option("--verbose", "-v", count=True, show_default=False, help="Say more.")]
Quiet = Annotated[int, typer.Option("--quiet", "-q", count=True, show_default=False, help="Say less.")]
Color = Annotated[
    str | None,
    typer.Option(metavar="WHEN", help="auto, always or never.", autocompletion=lambda: ["auto", "always", "never"]),
]
NoInput = Annotated[bool, typer.Option("--no-input", envvar="TDBG_NO_INPUT", help="Never ask anything.")]

Tree = Annotated[bool, typer.Option("--tree", help="Every call, in order.", rich_help_panel="View")]
Stack = Annotated[bool, typer.Option("--stack", help="The merged backtrace at the kernel.", rich_help_panel="View")]
Depth = Annotated[int | None, typer.Option(min=1, help="Levels of --tree to show.", rich_help_panel="View")]
Grep = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX", help="In --tree only the calls that match, and their callers.", rich_help_panel="View"
    ),
]
All = Annotated[bool, typer.Option("--all", help="std:: functions and destructors too.", rich_help_panel="View")]
Json = Annotated[bool, typer.Option("--json", help="The whole record as JSON on stdout.")]

Expression = Annotated[
    str | None,
    typer.Argument(
        metavar="EXPR",
        help="One or more Python statements. They can use torch, nn, F; a, b (float32 4x4); x, w (the same, "
        "requiring grad). '-' reads them from stdin.",
        show_default=False,
    ),
]
Setup = Annotated[str | None, typer.Option(metavar="CODE", help="Runs first, untraced.")]
Script = Annotated[Path | None, typer.Option(metavar="FILE", help="Runs first; EXPR sees its globals.")]
Line = Annotated[int | None, typer.Option(min=1, metavar="N", help="Trace this line of the script.")]
Arguments = Annotated[list[str] | None, typer.Option("--arg", metavar="ARG", help="Argument of the script.")]
Device = Annotated[str | None, typer.Option(help="Device of a, b, x, w.", show_default="cpu")]
Dtype = Annotated[str | None, typer.Option(help="Their dtype.", show_default="float32")]
Seed = Annotated[int | None, typer.Option(help="Their seed.", show_default="0")]
Libraries = Annotated[list[Path] | None, typer.Option(metavar="FILE", help="torch.ops.load_library this first.")]
Python = Annotated[str | None, typer.Option(metavar="PATH", help="Interpreter (or environment) whose torch runs.")]
Cold = Annotated[bool, typer.Option("--cold", help="No warm-up: first-run work shows too.")]
Timeout = Annotated[float | None, typer.Option(metavar="SECONDS", help="For the expression.", show_default="60")]
MaxStops = Annotated[int | None, typer.Option(metavar="N", help="Function entries to record.", show_default="50000")]
Breaks = Annotated[
    list[str] | None,
    typer.Option(
        "--break",
        metavar="NAME",
        help="Full backtrace by gdb where this function is entered: C++ name (whole or its end), /regex/, or "
        "Python name.",
        rich_help_panel="Stops",
    ),
]
Hits = Annotated[int, typer.Option(min=1, help="Stops for each --break.", rich_help_panel="Stops")]
Gdb = Annotated[str | None, typer.Option(metavar="PATH", help="gdb to use.", rich_help_panel="Stops")]
Source = Annotated[
    Path | None, typer.Option(metavar="DIR", help="PyTorch's sources, for their lines.", rich_help_panel="Stops")
]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the record there too.")]
Save = Annotated[bool, typer.Option("--save/--no-save", help="Keep the run for tdbg runs.")]
