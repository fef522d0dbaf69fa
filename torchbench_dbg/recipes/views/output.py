"""What debuggers print, made readable: short C++ names, no addresses, the interpreter's own frames folded."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from torchbench_dbg.trace.layers import layer_of
from torchbench_dbg.trace.names import shorten
from torchbench_dbg.trace.views.style import highlighted, layer_style, short_path

_FRAME = re.compile(
    r"^(?P<number>#\d+ +)(?:0x[0-9a-f]+ in )?(?P<name>.+) \((?P<arguments>.*)\)"
    r"(?: at (?P<place>\S+:\d+)| from (?P<library>\S+))?$"
)
_STOP = re.compile(
    r"^(?P<begin>(?:Thread .*?hit )?(?:Temporary b|B)reakpoint [\d.]+, |)(?:0x[0-9a-f]+ in )?"
    r"(?P<rest>\S.* \(.*\)(?: (?:at|from) \S+)?)$"
)
_OF_PYTHON = re.compile(r"(?:^|/)(?:Objects|Python|Include|Programs|Modules)/|libpython")
_PDB_FRAME = re.compile(r"^(?P<mark>[> ] )(?P<file>\S+?)\((?P<line>\d+)\)(?P<function>[\w<>]*\(\).*)$")
_CODE = re.compile(r"^(?P<arrow>-> )(?P<code>.*)$")
_SYMBOL = re.compile(r"^(?P<name>.*\w::.*?)(?P<offset> \+ \d+)? in section \S+ of (?P<library>\S+)$")
_NOISE = re.compile(r"\[Thread debugging using|Using host libthread_db|Function .* not defined\.$|warning: \d+\t")
_ERROR = re.compile(r"^(?:\*\*\* )?\w*(?:Error|Exception|Warning)\b|^.*received signal")


def lines(debugger: str, output: str, *, everything: bool = False) -> Iterator[Text]:
    """The lines of an answer. `everything`: as the debugger printed them."""
    if everything:
        yield from map(Text, output.splitlines())
    elif debugger == "gdb":
        yield from _gdb_lines(output.splitlines())
    else:
        yield from _pdb_lines(output.splitlines())


def _gdb_lines(printed: list[str]) -> Iterator[Text]:
    folded: list[str] = []
    for line in printed:
        frame = _FRAME.match(line)
        if frame and _is_interpreter(frame):
            folded.append(frame["number"].strip())
            continue
        yield from _folded(folded)
        folded = []
        if frame:
            yield _frame(frame)
        elif (stop := _STOP.match(line)) and ("::" in line or stop["begin"]):
            yield _stop(stop)
        elif symbol := _SYMBOL.match(line):
            name, library = symbol["name"], symbol["library"].rpartition("/")[2]
            yield Text.assemble((shorten(name), layer_style(layer_of(name))), symbol["offset"] or "", f"  {library}")
        elif line.startswith("(More stack frames"):
            yield Text("…   more frames", style="dim")
        elif line.strip() and not _NOISE.match(line):
            yield Text(line, style="bold red" if _ERROR.match(line) else "")
    yield from _folded(folded)


def _folded(numbers: list[str]) -> Iterator[Text]:
    if numbers:
        which = numbers[0] if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"
        plural = "s" if len(numbers) > 1 else ""
        yield Text(f"…   {len(numbers)} frame{plural} of the interpreter ({which})", style="dim")


def _is_interpreter(frame: re.Match[str]) -> bool:
    """By its file, its library, or, in an interpreter that is one program, by having none of both."""
    place = frame["place"] or frame["library"]
    if place is None:
        return "::" not in frame["name"] and "(" not in frame["name"]
    return bool(_OF_PYTHON.search(place)) and "_ctypes" not in place


def _stop(stop: re.Match[str]) -> Text:
    """Where the program stopped, as a frame."""
    frame = _FRAME.match(f"#0  {stop['rest']}")
    return Text.assemble((stop["begin"], "bold yellow"), _function(frame) if frame else stop["rest"])


def _frame(frame: re.Match[str]) -> Text:
    return Text.assemble((frame["number"], "dim"), _function(frame))


def _function(frame: re.Match[str]) -> Text:
    name = frame["name"]
    text = Text(shorten(name) if "::" in name or "(" in name else name, style=layer_style(layer_of(name)))
    place = short_path(frame["place"]) if frame["place"] else (frame["library"] or "").rpartition("/")[2]
    if place:
        text.append(f"  {place}", style="dim")
    return text


def _pdb_lines(printed: list[str]) -> Iterator[Text]:
    """Frames of pdb itself, and of the module bdb that it stands on, are left out of a stack."""
    skip = False
    for line in printed:
        frame = _PDB_FRAME.match(line)
        if frame:
            skip = "/bdb.py" in frame["file"] or frame["file"] == "<string>" or frame["file"].endswith("/pdb.py")
            if not skip:
                place = f"{short_path(frame['file'])}({frame['line']})"
                yield Text.assemble((frame["mark"], "bold yellow"), (place, "dim"), (frame["function"], "green"))
        elif code := _CODE.match(line):
            if not skip:
                yield Text.assemble(("-> ", "bold yellow"), highlighted(code["code"]))
            skip = False
        elif stop := _STOP.match(line) if line.startswith(("Thread", "Breakpoint", "Temporary")) else None:
            yield _stop(stop)  # pdb's command ended in gdb
        else:
            yield Text(line, style="bold red" if _ERROR.match(line) else "")
