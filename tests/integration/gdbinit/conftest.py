"""What the tests inside gdb share: the library of values.cpp, and sessions of gdb whose answers are kept."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from torchbench_dbg.paths import gdbinit_directory

from ..interpreters import has_torch, require_torch

sys.path.insert(0, str(gdbinit_directory()))

HERE = Path(__file__).parent
BEFORE = (
    "handle SIGSTOP nopass",
    "set auto-load off",
    "set debuginfod enabled off",
    "set may-call-functions off",
    "set width 0",
)
FLAGS = ("-g", "-O0", "-fPIC", "-shared", "-w", "-femit-class-debug-always", "-DAT_PER_OPERATOR_HEADERS")


@dataclasses.dataclass(frozen=True)
class Session:
    """One run of gdb: what Python said of its tensors, what gdb answered, everything that was printed."""

    facts: dict[str, Any]
    answers: dict[str, str]
    output: str

    @property
    def tensors(self) -> dict[str, dict[str, Any]]:
        return self.facts["tensors"]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all workers."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def library(shared: Path) -> Path:
    """The library of values.cpp, built once with debug information that describes all classes."""
    python = require_torch()
    with FileLock(shared / "values.lock"):
        built = shared / "values.so"
        if not built.exists():
            where = "import torch, os; print(os.path.dirname(torch.__file__))"
            torch = Path(subprocess.run([python, "-c", where], capture_output=True, text=True).stdout.strip())
            include = torch / "include"
            headers = [f"-I{include}", f"-I{include / 'torch/csrc/api/include'}"]
            link = [f"-L{torch / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{torch / 'lib'}"]
            partial = shared / "values.partial.so"
            command = ["g++", "-std=c++20", *FLAGS, *headers, str(HERE / "values.cpp"), *link, "-o", str(partial)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=280)
            assert done.returncode == 0, done.stderr
            partial.rename(built)
        return built


@pytest.fixture(scope="session", params=["wheel", "system"])
def gdb(request: pytest.FixtureRequest) -> str:
    """The gdb of the wheel beside this interpreter (18.1), and the system's (13.1 on Debian 12)."""
    path = (
        str(Path(sys.executable).parent / "gdb") if request.param == "wheel" else shutil.which("gdb", path="/usr/bin")
    )
    if path is None or not Path(path).exists():
        pytest.skip(f"no {request.param} gdb is installed")
    return path


@pytest.fixture(scope="session", params=["wheel", "debian"])
def torch_python(request: pytest.FixtureRequest) -> str:
    """The PyTorch of the wheel, and the stripped one of Debian."""
    if request.param == "wheel":
        return require_torch()
    if not has_torch("/usr/bin/python3"):
        pytest.skip("no python3-torch is installed")
    return "/usr/bin/python3"


Ask = Callable[..., Session]


@pytest.fixture(scope="session")
def ask(shared: Path) -> Ask:
    """ask(NAME, GDB, PYTHON, commands, …) -> Session; each name is run once for all workers.

    program.py stops itself, or in values.cpp if there is a library. gdb executes `before`, runs it, executes `then`,
    is asked the commands, and executes `after`.
    """

    def run(
        name: str,
        gdb: str,
        python: str,
        commands: Sequence[str],
        *,
        before: Sequence[str] = (),
        then: Sequence[str] = (),
        after: Sequence[str] = (),
        library: Path | None = None,
    ) -> Session:
        key = f"gdb-{name}-{gdb}-{python}".replace("/", "_")
        saved = shared / f"{key}.json"
        with FileLock(shared / f"{key}.lock"):
            if not saved.exists():
                session = _run(shared / key, gdb, python, commands, before, then, after, library)
                saved.write_text(json.dumps(dataclasses.asdict(session)))
        session = Session(**json.loads(saved.read_text()))
        assert session.answers, session.output
        assert "Traceback" not in session.output, session.output
        return session

    return run


def _run(
    folder: Path,
    gdb: str,
    python: str,
    commands: Sequence[str],
    before: Sequence[str],
    then: Sequence[str],
    after: Sequence[str],
    library: Path | None,
) -> Session:
    folder.mkdir(exist_ok=True)
    facts, questions, answers = (folder / f"{name}.json" for name in ("facts", "questions", "answers"))
    questions.write_text(json.dumps(list(commands)))
    environment = {
        **os.environ,
        "TDBG_TEST_FACTS": str(facts),
        "TDBG_TEST_COMMANDS": str(questions),
        "TDBG_TEST_ANSWERS": str(answers),
        "TDBG_CACHE_DIR": str(folder / "cache"),
    }
    stop = ["set breakpoint pending on", "break tdbg_values::here"] if library else []
    steps = [*before, *stop, "run", *then]
    first = [word for setting in BEFORE for word in ("-iex", setting)]
    middle = [word for step in steps for word in ("-ex", step)]
    last = [word for step in after for word in ("-ex", step)]
    program = [python, str(HERE / "program.py"), str(facts), *([str(library)] if library else [])]
    tdbg = [sys.executable, "-m", "torchbench_dbg", "gdb", "--gdb", gdb, "-nx", "-q", "-batch"]
    command = [*tdbg, *first, *middle, "-x", str(HERE / "answers.py"), *last, "--args", *program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, timeout=200)
    output = done.stdout + done.stderr
    told = json.loads(answers.read_text()) if answers.exists() else {}
    return Session(json.loads(facts.read_text()), told, output)


def table(answer: str) -> dict[str, str]:
    """The facts of tdbg-tensor by name."""
    lines = [line.split(None, 1) for line in answer.splitlines() if line.startswith("  ")]
    return {line[0]: line[1] if len(line) > 1 else "" for line in lines}
