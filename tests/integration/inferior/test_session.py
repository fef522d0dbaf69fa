"""The conversation with the inferior, with real torch where it matters and a stand-in where it does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..interpreters import VERSIONS, require
from .host import FAKE, FAKE_TORCH, Host, run


@pytest.mark.parametrize("version", VERSIONS)
def test_the_events_come_in_order(version: str) -> None:
    with Host(python=require(version), config={"expression": "a + b"}, environment=FAKE) as host:
        host.run()
        assert [event["event"] for event in host.events] == ["hello", "imported", "ready", "finished"]
        hello, imported, ready, finished = host.events
        assert hello["pid"] == host.process.pid
        assert hello["python"].startswith(version)
        assert hello["torch_directory"] == str(FAKE_TORCH / "torch")
        assert (imported["torch_version"], imported["debug"], imported["cuda"]) == ("0.fake", False, False)
        assert ready["cold"] is False
        assert finished["seconds"] < 10
        assert host.finish() == (0, "", "")


def test_real_torch_answers_everything(torch_python: str) -> None:
    with Host(python=torch_python, config={"expression": "x + w"}) as host:
        assert host.run()["result"]["type"] == "torch.Tensor"
        hello, imported, ready, _ = host.events
        names = {os.path.basename(path).partition(".so")[0] for path in hello["torch_libraries"]}
        assert {"libtorch_cpu", "libtorch_python", "libc10"} <= names
        assert "libtorch_global_deps" not in names
        assert all(os.path.realpath(path) == path for path in hello["torch_libraries"])
        maps = Path(f"/proc/{hello['pid']}/maps").read_text()
        assert all(path in maps for path in hello["torch_libraries"] if "libtorch.so" not in path)
        assert imported["debug"] in (True, False)
        described = {entry["name"]: entry["description"] for entry in ready["names"]}
        assert described["a"] == "float32 randn 4x4 cpu"
        assert described["w"] == "float32 randn 4x4 cpu requires_grad"
        operators = host.ask(command="dispatch", ops=["aten::add.Tensor", "nobody::knows", "", "(("])["ops"]
        assert operators["aten::add.Tensor"]["schema"].startswith("aten::add.Tensor(Tensor self, Tensor other")
        assert "RegisterCPU" in operators["aten::add.Tensor"]["registrations"]["CPU"]
        assert [operators[name] for name in ("nobody::knows", "", "((")] == [None, None, None]
        keys = host.ask(command="keys", raw=[0, -1, 2**64, 1, 2**63, "x", None])["keys"]
        assert keys["0"] == keys["-1"] == keys["x"] == []
        host.send({"command": "nonsense"})
        assert host.until("unknown")["command"] == "nonsense"


def test_operators_are_found_by_the_names_of_their_cpp_structs(torch_python: str) -> None:
    with Host(python=torch_python, config={"expression": "a"}) as host:
        host.run()
        found = host.ask(command="operators", names=["add_Tensor", "mm", "no_such_operator"])["operators"]
        assert found["add_Tensor"]["name"] == "aten::add.Tensor"
        assert found["mm"]["name"] == "aten::mm"
        assert "CPU" in found["mm"]["registrations"]
        assert found["no_such_operator"] is None


def test_dispatch_keys_are_named_with_the_winner_last(torch_python: str) -> None:
    # The raw number of a tensor's own keys, whatever the bits mean in this version.
    raw = (
        "keys = torch._C._dispatch_keys(x)\nimport ctypes\n"
        "place = ctypes.c_size_t.from_address(id(keys) + object.__basicsize__).value\n"
        "ctypes.c_uint64.from_address(place).value"
    )
    with Host(python=torch_python, config={"expression": raw}) as host:
        number = host.run()["result"]["repr"]
        names = host.ask(command="keys", raw=[int(number)])["keys"][number]
        assert names[0] == "CPU"
        assert "AutogradCPU" in names
        assert names[-1] in ("AutocastCPU", "AutogradCPU")


def test_an_unknown_dtype_or_device_is_a_setup_error(torch_python: str) -> None:
    event = run(torch_python, dtype="float31")
    assert (event["stage"], event["message"]) == ("setup", "torch has no dtype 'float31'")
    assert run(torch_python, device="gpu9")["stage"] == "setup"


def test_names_of_the_setup_are_listed(fake_python: str) -> None:
    with Host(
        python=fake_python,
        config={"expression": "c", "setup": "import os\nc = 3\n_hidden = 1"},
        environment=FAKE,
    ) as host:
        assert host.run()["result"]["repr"] == "3"
        assert [entry["name"] for entry in host.events[2]["names"]] == ["a", "b", "x", "w", "c"]


def test_syntax_errors_carry_their_place(fake_python: str) -> None:
    event = run(fake_python, FAKE, expression="a + 1\nb = = 2")
    assert (event["stage"], event["type"], event["line"]) == ("compile", "SyntaxError", 2)
    assert event["text"].strip() == "b = = 2"
    assert event["offset"] == 5
    assert run(fake_python, FAKE, expression="a", setup="x = (")["stage"] == "setup"


def test_an_exception_shows_the_user_s_frames_only(fake_python: str) -> None:
    event = run(fake_python, FAKE, expression="def f():\n    return {}['missing']\n\nf()")
    assert (event["stage"], event["type"], event["line"]) == ("expression", "KeyError", 2)
    assert event["text"] == "return {}['missing']"
    assert "inferior" not in event["traceback"]
    assert 'File "<expr>", line 4' in event["traceback"]


def test_what_the_expression_raises_is_never_taken_for_an_end(fake_python: str) -> None:
    for expression, kind in (
        ("raise SystemExit(3)", "SystemExit"),
        ("exit()", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("input()", "EOFError"),
        ("def f(): f()\nf()", "RecursionError"),
        ("class E(Exception):\n    def __str__(self): raise self\nraise E", "E"),
    ):
        event = run(fake_python, FAKE, expression=expression)
        assert (event["stage"], event["type"]) == ("expression", kind), event


def test_errors_in_setup_and_libraries_have_their_stage(fake_python: str) -> None:
    event = run(fake_python, FAKE, setup="ok = 1\n1/0")
    assert (event["stage"], event["line"], event["text"]) == ("setup", 2, "1/0")
    assert run(fake_python, FAKE, load_libraries=["/nowhere.so"])["stage"] == "setup"


def test_a_setup_that_can_run_once_only_says_warm(fake_python: str) -> None:
    setup = "import sys\nassert not hasattr(sys, 'seen')\nsys.seen = True"
    assert run(fake_python, FAKE, setup=setup)["stage"] == "warm"
    assert run(fake_python, FAKE, setup=setup, cold=True)["event"] == "finished"


def test_a_missing_or_broken_torch_is_an_import_error(fake_python: str, tmp_path: Path) -> None:
    event = run(fake_python, {"PYTHONPATH": "", "PYTHONNOUSERSITE": "1"})
    if event["event"] == "raised":
        assert (event["stage"], event["type"]) == ("import", "ModuleNotFoundError")
    (tmp_path / "torch.py").write_text("import os\nraise OSError('libcudart.so.12: cannot open')\n")
    event = run(fake_python, {"PYTHONPATH": str(tmp_path)})
    assert (event["stage"], event["type"]) == ("import", "OSError")
    assert "libcudart.so.12" in event["message"]
    (tmp_path / "torch.py").write_text("import os\nos.kill(os.getpid(), 11)\n")
    with Host(python=fake_python, config={"expression": ""}, environment={"PYTHONPATH": str(tmp_path)}) as host:
        assert host.receive()["event"] == "hello"  # type: ignore[index]
        assert host.receive() is None
        assert host.process.wait(30) == -signal.SIGSEGV


def test_the_user_s_modules_are_found_and_ours_are_not(fake_python: str, tmp_path: Path) -> None:
    (tmp_path / "names.py").write_text("mine = 'the user'\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('shadowed')\n")
    expression = (
        "import sys, names\nours = [path for path in sys.path if path.endswith('inferior')]\n"
        "(names.mine, sys.path[0], sys.argv, __name__, ours)"
    )
    with Host(python=fake_python, config={"expression": expression}, environment=FAKE, cwd=str(tmp_path)) as host:
        assert host.run()["result"]["repr"] == "('the user', '', ['-c'], '__main__', [])"


def test_output_appears_once_and_in_order(fake_python: str) -> None:
    with Host(
        python=fake_python,
        config={"expression": "print('one')\nimport os; os.system('echo two')"},
        environment=FAKE,
    ) as host:
        host.run()
        assert host.finish()[1].split() == ["one", "two"]


def test_the_end_of_the_channel_ends_the_process(fake_python: str) -> None:
    with Host(python=fake_python, config={"expression": "a"}, environment=FAKE) as host:
        host.until("ready")
        os.close(host.control)
        assert host.process.wait(30) == 0
        host.control = os.dup(host.reader)


def test_exit_handlers_run_at_the_end(fake_python: str) -> None:
    setup = "import atexit\natexit.register(print, 'bye')"
    with Host(python=fake_python, config={"expression": "", "setup": setup, "cold": True}, environment=FAKE) as host:
        host.run()
        assert host.finish() == (0, "bye\n", "")


def test_the_inferior_does_not_outlive_its_host(fake_python: str) -> None:
    with Host(python=fake_python, config={"expression": ""}, environment=FAKE, host_pid=1) as host:
        assert host.receive() is None
        assert host.process.wait(30) == 1


def test_a_killed_host_takes_the_inferior_with_it(fake_python: str) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from host import Host, FAKE_TORCH\n"
        "environment = {'PYTHONPATH': str(FAKE_TORCH)}\n"
        "host = Host(python=sys.argv[2], config={'expression': ''}, environment=environment)\n"
        "host.__enter__(); host.until('ready'); print(host.process.pid, flush=True); sys.stdin.read()"
    )
    middle = subprocess.Popen(
        [sys.executable, "-c", script, str(Path(__file__).parent), fake_python],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert middle.stdout is not None
    pid = int(middle.stdout.readline())
    middle.kill()
    middle.communicate()
    for _ in range(200):
        if not _running(pid):
            break
        os.sched_yield()
        signal.sigtimedwait([], 0.05)
    assert not _running(pid)


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_markers_surround_a_traced_run_and_no_plain_one(fake_python: str) -> None:
    for plain, count in ((False, 2), (True, 0)):
        setup = "import signal\nseen = []\nsignal.signal(signal.SIGURG, lambda *_: seen.append(1))"
        expression = "seen"
        config = {"expression": expression, "setup": setup, "cold": True, "plain": plain}
        with Host(python=fake_python, config=config, environment=FAKE) as host:
            # Both handlers have run by the time the result is described.
            assert host.run()["result"]["repr"] == str([1] * count)
