"""Bad input: a clear message, the right exit code, no traceback, no hang."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Tdbg

# Forbids ptrace(2) to itself and its children by seccomp, as containers do, and becomes the command.
FORBID_PTRACE = """
import ctypes, os, struct, sys
PTRACE = 101  # x86-64
load, equal, forbid, allow = (0x20, 0, 0, 0), (0x15, 0, 1, PTRACE), (6, 0, 0, 0x00050001), (6, 0, 0, 0x7fff0000)
code = b"".join(struct.pack("HBBI", *each) for each in (load, equal, forbid, allow))
buffer = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()  # PR_SET_SECCOMP
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_syntax_error_shows_the_place(tdbg: Tdbg) -> None:
    done = tdbg("trace", "a +* b")
    assert done.returncode == 5
    lines = done.stderr.splitlines()
    assert lines[0] == "error: the expression is not valid Python: invalid syntax"
    assert lines[1] == "  a +* b"
    assert lines[2].index("^") == lines[1].index("*")


def test_an_exception_is_shown_with_the_path_up_to_it(tdbg: Tdbg) -> None:
    done = tdbg("trace", "a @ torch.ones(3, 3)")
    assert done.returncode == 5
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied" in done.stdout
    assert "at::_ops::mm::call" in tdbg("show", "last", "--tree").stdout


def test_a_segfault_shows_the_merged_stack(tdbg: Tdbg) -> None:
    done = tdbg("trace", "import ctypes; ctypes.string_at(0)")
    assert done.returncode == 6
    assert "crashed SIGSEGV at address 0x0" in done.stdout
    stack = done.stdout[done.stdout.index("crashed SIGSEGV") :]
    assert stack.index("ffi_call") < stack.index("string_at  ctypes/__init__.py") < stack.index("<module>  <expr>:1")


def test_os_exit(tdbg: Tdbg) -> None:
    done = tdbg("trace", "c = a + b; import os; os._exit(3)")
    assert done.returncode == 6
    assert "ended itself with exit code 3" in done.stdout
    assert "add_kernel" in done.stdout


def test_an_endless_loop_says_where_it_was(tdbg: Tdbg) -> None:
    done = tdbg("trace", "def forever():\n    while True: pass\nforever()", "--cold", "--timeout", "2")
    assert done.returncode == 7
    assert "forever  <expr>:2" in done.stdout


def test_a_process_that_stops_itself_times_out(tdbg: Tdbg) -> None:
    done = tdbg("trace", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "--cold", "--timeout", "2")
    assert done.returncode == 7
    assert "posix.kill" in done.stdout
    assert tdbg.survivors() == []


def test_endless_recursion_shows_the_users_frames_only(tdbg: Tdbg) -> None:
    done = tdbg("trace", "def f(n): return f(n + 1) + 1\nf(0)")
    assert done.returncode == 5
    assert "RecursionError" in done.stdout
    assert "names.py" not in done.stdout


def test_python_code_sees_its_own_affinity(tdbg: Tdbg) -> None:
    """The tracer shares a processor with the traced thread, but not while Python runs."""
    expression = "before = len(os.sched_getaffinity(0)); c = a + b; (before, len(os.sched_getaffinity(0)))"
    count = len(os.sched_getaffinity(0))
    done = tdbg("trace", expression, "--setup", "import os")
    assert f"result   ({count}, {count})" in done.stdout


def test_subprocess_and_fork(tdbg: Tdbg) -> None:
    done = tdbg("trace", "import subprocess; subprocess.run(['true']).returncode")
    assert (done.returncode, "result   0" in done.stdout) == (0, True)
    done = tdbg("trace", "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nc = a + b")
    assert done.returncode == 0
    assert done.stdout.count("kernel  at::native::add_kernel  ") == 1


def test_huge_output_stays_out_of_the_result(tdbg: Tdbg) -> None:
    done = tdbg("trace", "print('x' * 30_000_000)", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["status"] == "finished"
    assert len(done.stderr) > 30_000_000


def test_reading_stdin_gets_its_end(tdbg: Tdbg) -> None:
    done = tdbg("trace", "input()")
    assert done.returncode == 5
    assert "EOFError" in done.stdout


def test_the_expression_can_come_from_stdin(tdbg: Tdbg) -> None:
    done = tdbg("trace", "-", input="a + b\n")
    assert done.returncode == 0
    assert "add_kernel" in done.stdout


def test_torch_missing(tdbg: Tdbg, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "empty")], check=True)
    done = tdbg("trace", "a + b", "--python", str(tmp_path / "empty"))
    assert done.returncode == 4
    assert "has no torch" in done.stderr
    assert "--python PATH" in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("raise ImportError('libtorch_cpu.so: undefined symbol: _ZN3foo')", "undefined symbol: _ZN3foo"),
        ("import os; os._exit(9)", "ended with exit code 9 while it imported torch"),
        ("import os; os.abort()", "was killed by SIGABRT while it imported torch"),
        ("version = 1", "import torch fails"),
    ],
    ids=["import-error", "exit", "abort", "another-torch"],
)
def test_torch_broken(tdbg: Tdbg, tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(content)
    done = tdbg("trace", "a + b", environment={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 4
    assert said in done.stderr


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("/nowhere/python", "there is no interpreter"),
        ("/etc/passwd", "is not executable"),
        ("/bin/true", "ended with exit code 0"),
    ],
)
def test_python_is_none(tdbg: Tdbg, python: str, said: str) -> None:
    done = tdbg("trace", "a + b", "--python", python)
    assert done.returncode == 4
    assert said in done.stderr


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo 'tdbg 11.2 (3, 9)'", "gdb 11.2; 12 or newer is needed"),
        ("echo 'Python scripting is not supported in this copy of GDB.' >&2; exit 1", "has no Python in it"),
        ("echo 'libpython3.11.so.1.0: cannot open shared object file' >&2; exit 127", "libpython3.11.so.1.0"),
    ],
    ids=["too-old", "no-python", "no-libpython"],
)
def test_gdb_unusable(tdbg: Tdbg, tmp_path: Path, text: str, said: str) -> None:
    done = tdbg("trace", "a + b", "--break", "THPVariable_add", "--gdb", script(tmp_path / "gdb", text))
    assert done.returncode == 9
    assert said in done.stderr
    assert "apt-get install gdb" in done.stderr


def test_gdb_missing(tdbg: Tdbg) -> None:
    done = tdbg("trace", "a + b", "--break", "THPVariable_add", "--gdb", "/nowhere/gdb")
    assert done.returncode == 9
    assert "there is no gdb /nowhere/gdb" in done.stderr


def test_a_crash_without_gdb_still_shows_what_is_known(tdbg: Tdbg) -> None:
    done = tdbg("trace", "import ctypes; ctypes.string_at(0)", "--gdb", "/nowhere/gdb")
    assert done.returncode == 6
    assert "no full C++ backtrace" in done.stdout
    assert "string_at  ctypes/__init__.py" in done.stdout


def test_ptrace_forbidden(tdbg: Tdbg) -> None:
    command = [sys.executable, "-c", FORBID_PTRACE, *tdbg.command("trace", "a + b")]
    done = subprocess.run(command, capture_output=True, text=True, env=tdbg.environment, timeout=60)
    assert done.returncode == 8
    assert "ptrace is forbidden" in done.stderr
    assert "--cap-add=SYS_PTRACE" in done.stderr
    assert tdbg.survivors() == []


def test_unknown_break_gets_suggestions(tdbg: Tdbg) -> None:
    done = tdbg("trace", "a + b", "--break", "THPVariable_ad")
    assert done.returncode == 10
    assert "did you mean THPVariable_add" in done.stderr
    done = tdbg("trace", "a + b", "--break", "torch.autograd.bckward")
    assert done.returncode == 10
    assert "did you mean backward" in done.stderr


def test_unreadable_script(tdbg: Tdbg, tmp_path: Path) -> None:
    assert tdbg("trace", "a", "--script", str(tmp_path / "none.py")).returncode == 2
    (tmp_path / "bad.py").write_text("def f(:\n")
    done = tdbg("trace", "a", "--script", str(tmp_path / "bad.py"))
    assert done.returncode == 5
    assert "the script is not valid Python" in done.stderr
    (tmp_path / "short.py").write_text("c = 1\n")
    done = tdbg("trace", "--script", str(tmp_path / "short.py"), "--line", "9")
    assert done.returncode == 5
    assert "no statement on line 9" in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk_for_the_cache(tdbg: Tdbg, small_disk: Path) -> None:
    done = tdbg("trace", "a + b", environment={"TDBG_CACHE_DIR": str(small_disk)})
    assert done.returncode == 0, done.stderr
    assert "add_kernel" in done.stdout
    assert "the symbol cache can't be written" in done.stderr
    assert "No space left on device" in done.stderr
    assert list((small_disk / "symbols").glob(".new-*")) == []


def test_full_disk_for_the_runs(tdbg: Tdbg, small_disk: Path) -> None:
    done = tdbg("trace", "nn.TransformerEncoderLayer(4, 2)(a)", environment={"TDBG_STATE_DIR": str(small_disk)})
    assert done.returncode == 0, done.stderr
    assert "cpublas::gemm" in done.stdout
    assert "the run can't be kept" in done.stderr
    assert tdbg("runs", environment={"TDBG_STATE_DIR": str(small_disk)}).returncode == 0


@pytest.mark.parametrize("damage", ["cut", "changed", "foreign", "empty"])
def test_corrupt_cache_is_made_anew(tdbg: Tdbg, tmp_path: Path, cache: Path, damage: str) -> None:
    tdbg.environment["TDBG_CACHE_DIR"] = str(tmp_path / "cache")
    assert tdbg("trace", "a + b").returncode == 0
    files = sorted((tmp_path / "cache" / "symbols").glob("*.idx"), key=os.path.getsize)
    data = files[-1].read_bytes()
    files[-1].write_bytes(
        {
            "cut": data[: len(data) // 2],
            "changed": data[:-9] + b"x" + data[-8:],
            "foreign": b"hello\n" * 99,
            "empty": b"",
        }[damage]
    )
    done = tdbg("trace", "a + b")
    assert done.returncode == 0
    assert "add_kernel" in done.stdout
    assert "is made anew" in done.stderr
    assert tdbg("trace", "a + b").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trace", ""], "there is nothing to trace"),
        (["trace", "a", "--line", "3"], "--script FILE"),
        (["trace", "a", "--tree", "--stack"], "two views"),
        (["trace", "a", "--timeout", "-1"], "above 0"),
        (["trace", "a", "--break", "/(/"], "is not a regular expression"),
        (["trace", "a + b", "--tree", "--grep", "("], "is not a regular expression"),
        (["trace", "a", "--source", "/nowhere"], "is no directory"),
        (["trace", "a", "--load-library", "/nowhere.so"], "is no file"),
        (["trcae", "a"], "Did you mean 'trace'"),
        (["trace", "a", "--tre"], "--tree"),
        (["--color", "red", "runs"], "auto, always or never"),
    ],
)
def test_wrong_usage(tdbg: Tdbg, arguments: list[str], said: str) -> None:
    done = tdbg(*arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_setup_that_fails_names_itself(tdbg: Tdbg) -> None:
    done = tdbg("trace", "a", "--setup", "1/0")
    assert done.returncode == 5
    assert "the setup raised ZeroDivisionError" in done.stderr
