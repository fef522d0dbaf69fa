"""A script under `tdbg crash` is as it is without: its streams, its exit code, its signals, what it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import psutil
import pytest

from .conftest import Run, environment

pytestmark = pytest.mark.integration


def lives(pid: int) -> bool:
    """A dead orphan that nobody has waited for yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_streams_arguments_and_exit_code(run: Run, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(
        "import os, sys\ndata = sys.stdin.buffer.read()\n"
        "sys.stdout.buffer.write(data + bytes(range(256)))\nsys.stderr.write('|'.join(sys.argv[1:]) + '\\n')\nsys.exit(3)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "torchbench_dbg", "crash", "--", "echo.py", "a b", "--json", "-o", "", "ü"],
        input=b"\x00\xff piped\n",
        capture_output=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=60,
    )
    assert ran.stdout == b"\x00\xff piped\n" + bytes(range(256))
    assert ran.stderr.decode() == "a b|--json|-o||ü\n"
    assert ran.returncode == 3


@pytest.mark.parametrize(
    ("code", "exit_code", "stderr"),
    [
        ("pass", 0, ""),
        ("import sys; sys.exit(1)", 1, ""),
        ("import sys; sys.exit('a text')", 1, "a text\n"),
        ("import os; os._exit(9)", 9, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143, ""),
        (
            "import signal, os; signal.signal(signal.SIGSEGV, signal.SIG_IGN); os.kill(os.getpid(), signal.SIGSEGV)",
            0,
            "",
        ),
        (
            "import subprocess; subprocess.run(['sh', '-c', 'echo from a child >&2; kill -TERM $$'])",
            0,
            "from a child\n",
        ),
        ("import threading; [threading.Thread(target=print).start() for _ in range(50)]", 0, ""),
        (
            "import multiprocessing as m\nif __name__ == '__main__':\n  with m.Pool(2) as p: assert p.map(abs, [-1, 2]) == [1, 2]",
            0,
            "",
        ),
        ("import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(5)'])", 5, ""),
    ],
)
def test_ends_as_without(run: Run, tmp_path: Path, code: str, exit_code: int, stderr: str) -> None:
    (tmp_path / "script.py").write_text(code + "\n")
    ran = run("script.py")
    assert (ran.code, ran.stderr, ran.record) == (exit_code, stderr, None)


def test_traceback_is_untouched(run: Run, tmp_path: Path, plain_python: str) -> None:
    (tmp_path / "fails.py").write_text("def f():\n    raise ValueError('x' * 50)\nf()\n")
    bare = subprocess.run([plain_python, "fails.py"], capture_output=True, text=True, cwd=tmp_path)
    ran = run("fails.py")
    assert (ran.code, ran.stderr, ran.record) == (1, bare.stderr, None)


def test_module_and_python_options(run: Run, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text("import sys; print(__name__, sys.argv[1:])\n")
    ran = run("x", "-v", options=("-m", "package"))
    assert ran.stdout == "__main__ ['x', '-v']\n"


def test_it_has_the_terminal_and_ctrl_c(tmp_path: Path, plain_python: str) -> None:
    (tmp_path / "asks.py").write_text(
        "import sys, time\nprint(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty())\n"
        "print('hello', input('name? '))\n"
        "try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('caught')\n"
        "time.sleep(60)\n"
    )
    arguments = ["-m", "torchbench_dbg", "crash", "--python", plain_python, "--", "asks.py"]
    child = pexpect.spawn(
        sys.executable, arguments, cwd=str(tmp_path), env=environment(tmp_path), encoding="utf-8", timeout=30
    )
    child.expect_exact("True True True")
    child.expect_exact("name? ")
    child.sendline("you")
    child.expect_exact("hello you")
    time.sleep(0.3)
    child.sendintr()
    child.expect_exact("caught")
    time.sleep(0.3)
    child.sendintr()
    child.expect_exact("KeyboardInterrupt")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert "SIG" not in child.before


def test_stop_and_go_on(tmp_path: Path, plain_python: str) -> None:
    """Ctrl-Z stops the script and tdbg, and SIGCONT lets both go on."""
    (tmp_path / "counts.py").write_text("import time\nfor n in range(30): print(n, flush=True); time.sleep(0.1)\n")
    child = subprocess.Popen(
        [sys.executable, "-m", "torchbench_dbg", "crash", "--python", plain_python, "--", "counts.py"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "0\n"
    os.killpg(child.pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.killpg(child.pid, signal.SIGCONT)
    rest, _ = child.communicate(timeout=60)
    assert rest.split() == [str(n) for n in range(1, 30)]
    assert child.returncode == 0


def test_after_a_crash_no_process_is_left(run: Run, tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(
        "import ctypes, os, subprocess, sys, time\n"
        "children = [subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)']) for _ in range(2)]\n"
        "print(*[child.pid for child in children], os.getpid(), flush=True)\ntime.sleep(0.2)\nctypes.string_at(0)\n"
    )
    ran = run("parent.py")
    assert ran.code == 139
    assert not [pid for pid in map(int, ran.stdout.split()) if lives(pid)]


def test_what_a_good_script_leaves_running_goes_on(run: Run, tmp_path: Path) -> None:
    (tmp_path / "starts.py").write_text(
        "import subprocess, sys\n"
        "print(subprocess.Popen(['sleep', '30'], stdin=-3, stdout=-3, stderr=-3, start_new_session=True).pid)\n"
    )
    ran = run("starts.py")
    assert ran.code == 0
    left = psutil.Process(int(ran.stdout))
    assert left.status() in (psutil.STATUS_SLEEPING, psutil.STATUS_RUNNING)
    left.kill()


def test_time_limit_shows_where_it_stands_and_ends_all(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(
        "import os, subprocess, time\nprint(os.getpid(), subprocess.Popen(['sleep', '1000']).pid, flush=True)\n"
        "def wait():\n    time.sleep(1000)\nwait()\n"
    )
    ran = run("hangs.py", options=("--timeout", "1.5"))
    assert ran.code == 7
    assert ran.record is not None
    assert ran.record.reason == "timeout"
    assert [frame.name for frame in ran.record.crashes[0].threads[0].frames if frame.kind == "python"] == [
        "wait",
        "<module>",
    ]
    assert not [pid for pid in map(int, ran.stdout.split()) if lives(pid)]


def test_cuda_sync_is_said_and_set(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shows.py").write_text("import os; print(os.environ.get('CUDA_LAUNCH_BLOCKING'))\n")
    ran = run("shows.py", options=("--cuda-sync",))
    assert ran.stdout == "1\n"
    assert "CUDA_LAUNCH_BLOCKING=1" in ran.stderr
    assert run("shows.py").stdout == "None\n"


@pytest.mark.parametrize(
    ("options", "words", "code", "said"),
    [
        ((), (), 2, "no script to run"),
        ((), ("nothing.py",), 2, "there is no script nothing.py"),
        (("--timeout", "-1"), ("x.py",), 2, "above 0"),
        (("--gdb", "/nothing"), ("x.py",), 9, "there is no gdb /nothing"),
    ],
)
def test_wrong_arguments(
    run: Run, tmp_path: Path, options: tuple[str, ...], words: tuple[str, ...], code: int, said: str
) -> None:
    (tmp_path / "x.py").write_text("")
    ran = run(*words, options=options)
    assert ran.code == code
    assert said in " ".join(ran.stderr.split())


def test_json_is_the_record(run: Run, tmp_path: Path) -> None:
    import json

    from torchbench_dbg.crash.record import from_json

    (tmp_path / "dies.py").write_text("import ctypes; print('mine'); ctypes.string_at(0)\n")
    ran = run("dies.py", options=("--json", "--no-save"))
    assert from_json(json.loads(ran.stderr)) == ran.record
    assert ran.stdout in ("", "mine\n")


def test_without_gdb_the_stack_comes_all_the_same(run: Run, die: str, tmp_path: Path) -> None:
    """No gdb on PATH, and none beside tdbg."""
    hidden = tmp_path / "sitecustomize.py"
    hidden.write_text(
        "import importlib.metadata as metadata\nreal = metadata.distribution\n"
        "def none(name):\n    if name == 'gdb-for-pwndbg': raise metadata.PackageNotFoundError(name)\n    return real(name)\n"
        "metadata.distribution = none\n"
    )
    ran = run(die, "null_pointer", PYTHONPATH=str(tmp_path), PATH="/nothing")
    assert ran.record is not None, ran.stderr
    names = [frame.name for frame in ran.record.crashes[0].threads[0].frames]
    assert names[:2] == ["value_of(Handle*)", "null_pointer"]
    assert names[-1] == "<module>"
    assert ran.record.crashes[0].threads[0].frames[0].file is None
