"""Prove that what was built is what Python imports, that it has debug information, and that it trains."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from torchbench_dbg import process
from torchbench_dbg.build.plan import BuildPlan
from torchbench_dbg.build.record import Proof, ProvedLibrary
from torchbench_dbg.build.shell import Command, Shell
from torchbench_dbg.build.tools import is_inside
from torchbench_dbg.debugger.gdb import environment, find_gdb
from torchbench_dbg.errors import BuildError, TdbgError
from torchbench_dbg.trace import elf

_TIMEOUT = 300.0  # seconds; a debug torch takes its time
_QUESTION = """
import json, sys
import torch
facts = {"file": torch.__file__, "version": torch.__version__, "debug": bool(getattr(torch.version, "debug", False))}
with open("/proc/self/maps") as maps:
    paths = {line.split(None, 5)[5].strip() for line in maps if line.count("/")}
facts["libraries"] = sorted(path for path in paths if ".so" in path)
if hasattr(torch, "nn"):
    model = torch.nn.Linear(4, 1)
    before = [each.detach().clone() for each in model.parameters()]
    model(torch.ones(2, 4)).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    facts["moved"] = all(not torch.equal(a, b) for a, b in zip(before, model.parameters()))
print("\\x1f" + json.dumps(facts))
"""


def fingerprint(plan: BuildPlan) -> Any:
    return [str(plan.prefix)]


def commands(plan: BuildPlan) -> list[Command]:
    return [Command([str(plan.python), "-c", "import torch; print(torch.__file__, torch.__version__)"], Path("/"))]


def run(plan: BuildPlan, shell: Shell) -> None:
    """BuildError says which proof failed."""
    proof = prove(plan)
    shell.log.write(f"\nproof: {proof}\n".encode())
    (plan.folder / "proof.json").write_text(json.dumps(proof.to_json()), encoding="utf-8")


def prove(plan: BuildPlan) -> Proof:
    """Ask a fresh interpreter, from a directory outside of the sources."""
    with tempfile.TemporaryDirectory() as elsewhere:
        told = process.run(
            [str(plan.python), "-c", _QUESTION], timeout=_TIMEOUT, env=plan.child_variables(), cwd=Path(elsewhere)
        )
    _, mark, text = told.stdout.rpartition("\x1f")
    if told.returncode or not mark:
        last = (told.stderr.strip().splitlines() or [f"exit code {told.returncode}"])[-1]
        raise BuildError(f"what was built can't be imported: {last}", hint=f"{plan.python} -c 'import torch'")
    facts = json.loads(text)
    if not is_inside(Path(facts["file"]), plan.source) and not is_inside(Path(facts["file"]), plan.prefix):
        raise BuildError(f"Python imports another torch: {facts['file']}", hint=f"{plan.python} -m pip list")
    if facts.get("moved") is False:
        raise BuildError("a step of training moved no parameters of a model.")
    wanted = [Path(path) for path in facts["libraries"] if _is_of_this_build(plan, Path(path))]
    return Proof(
        file=facts["file"],
        version=facts["version"],
        debug=facts["debug"],
        trained=facts.get("moved"),
        breakpoint=_breakpoint(wanted),
        libraries=tuple(ProvedLibrary(path=str(path), has_dwarf=_has_dwarf(path)) for path in wanted),
    )


# In the order in which they are looked for: what a person debugs first, and what every torch has.
_FUNCTIONS = (("libtorch_python", "torch::autograd::THPVariable_add"), ("_C.", "PyInit__C"))


def _breakpoint(libraries: list[Path]) -> str | None:
    """Where gdb would stop at a function of the binding."""
    for prefix, function in _FUNCTIONS:
        for library in libraries:
            if library.name.startswith(prefix) and _has_dwarf(library):
                return _line_of(library, function)
    return None


def _line_of(library: Path, function: str) -> str | None:
    try:
        gdb = find_gdb(None)
        command = [str(gdb.path), "-nx", "-nh", "-batch", "-ex", f"info line {function}", str(library)]
        told = process.run(command, timeout=_TIMEOUT, env=environment(gdb)).stdout
    except TdbgError:
        return None
    found = re.search(r'Line (\d+) of "([^"]+)"', told)
    return f"{found[2]}:{found[1]}" if found else None


def _is_of_this_build(plan: BuildPlan, path: Path) -> bool:
    return is_inside(path, plan.source) or "/torch/" in str(path)


def _has_dwarf(path: Path) -> bool:
    try:
        with elf.opened(path) as file:
            return bool(file.has_dwarf)
    except (OSError, elf.ElfError):
        return False
