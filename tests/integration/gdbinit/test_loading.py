"""How tdbg.py gets into gdb: copied elsewhere, in a plain gdb, and by `tdbg gdb`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchbench_dbg.paths import gdbinit_directory

COMMANDS = ("tdbg-break", "tdbg-tensor", "tdbg-keys", "tdbg-graph")
PROGRAM = "import json, os, sys; print(json.dumps([sys.argv, dict(os.environ)])); sys.exit(7)"


def plain(gdb: str, script: Path, *commands: str) -> str:
    words = [word for command in (f"source {script}", *commands) for word in ("-ex", command)]
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        [gdb, "-nx", "-q", "-batch", *words], capture_output=True, text=True, timeout=60, env=environment
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The folder alone, in a place with a space in its name."""
    return Path(shutil.copytree(gdbinit_directory(), tmp_path / "my copy")) / "tdbg.py"


def test_a_copy_in_a_plain_gdb(gdb: str, copy: Path) -> None:
    told = plain(gdb, copy, "tdbg-keys 0x9400010001", "tdbg-tensor 0x10", "tdbg-graph 0x10", "tdbg-break add")
    assert "0x9400010001  CPU, ADInplaceOrView, AutogradCPU, AutocastCPU\n  AutocastCPU wins\n" in told
    assert "note: the version of torch is not known; what is told is as in 2.13" in told
    assert "Cannot access memory at address 0x10" in told
    assert "where the fields lie is not known: no debug information, and no torch/version.py" in told
    assert "torch is not loaded yet; add is looked up when it is" in told


def test_help(gdb: str, copy: Path) -> None:
    overview = plain(gdb, copy, "help tdbg")
    assert all(re.search(rf"^ *{command} ", overview, re.MULTILINE) for command in COMMANDS)
    for command in COMMANDS:
        text = plain(gdb, copy, f"help {command}")
        assert f"Usage: {command} " in text
        assert text.count(command) > 2, "examples"
        assert max(map(len, text.splitlines())) <= 80
    assert max(map(len, overview.splitlines())) <= 80


def test_loading_it_twice_does_no_harm(gdb: str, copy: Path) -> None:
    told = plain(gdb, copy, f"source {copy}", "python print(sum(p.name == 'tdbg' for p in gdb.pretty_printers))")
    assert told.splitlines()[-1] == "1"


def test_tdbg_gdb_is_gdb(gdb: str, tmp_path: Path) -> None:
    """Arguments, the program's environment and the exit code are as with gdb itself."""
    environment = {**os.environ, "PYTHONPATH": "/my modules", "TDBG_CACHE_DIR": str(tmp_path)}
    before = [sys.executable, "-m", "torchbench_dbg", "gdb", "--gdb", gdb, "-nx", "-q", "-batch"]
    settings = ["-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]
    steps = ["-ex", "run", "-ex", "python gdb.execute('quit 5')"]
    command = [*before, *settings, *steps, "--args", sys.executable, "-c", PROGRAM, "--help", "--gdb", "x"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 5, done.stderr
    assert "exited with code 07" in done.stdout
    arguments, seen = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[[")))
    assert arguments == ["-c", "--help", "--gdb", "x"]
    changed = {name for name in {*seen, *environment} if seen.get(name) != environment.get(name)}
    assert changed <= {"LINES", "COLUMNS", "_", "SHLVL", "PWD", "OLDPWD"}  # gdb's own, and the shell's


def test_the_path_is_printed() -> None:
    done = subprocess.run([sys.executable, "-m", "torchbench_dbg", "gdbinit"], capture_output=True, text=True)
    assert Path(done.stdout.rstrip("\n")) == gdbinit_directory().resolve() / "tdbg.py"
    assert "help tdbg" in done.stderr
