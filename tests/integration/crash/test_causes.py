"""Each cause, injected for real: the signal, where it happened, and what the catalogue says."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from torchbench_dbg.crash.analysis import processor_flags
from torchbench_dbg.crash.record import Crash

from .. import interpreters
from .conftest import HERE, Ran, Run

pytestmark = pytest.mark.integration


def only(ran: Ran) -> Crash:
    assert ran.record is not None, ran.stderr
    (crash,) = ran.record.crashes
    return crash


def codes(crash: Crash) -> list[str]:
    return [diagnosis.code for diagnosis in crash.diagnoses]


@pytest.mark.parametrize(
    ("way", "number", "fault", "function", "code"),
    [
        ("null_pointer", signal.SIGSEGV, "null", "value_of(Handle*)", "C070"),
        ("read_at 0x7fff00000000000", signal.SIGSEGV, "non-canonical", "read_at", "C071"),
        ("write_at 0x10000000", signal.SIGSEGV, "unmapped", "write_at", "C071"),
        ("call_at 0x10000000", signal.SIGSEGV, "not executable", "call_at", "C073"),
        ("ud2", signal.SIGILL, "illegal instruction", "ud2", "C003"),
        ("overflow_stack", signal.SIGSEGV, "stack overflow", "endless(long)", "C030"),
        ("overflow_stack_of_thread", signal.SIGSEGV, "stack overflow", "endless(long)", "C030"),
        ("divide 0", signal.SIGFPE, "arithmetic", "divide", "C085"),
        ("free_twice", signal.SIGABRT, "sent", "free_twice", "C067"),
        ("free_wild", signal.SIGABRT, "sent", "free_wild", "C067"),
        ("go_out_of_range 7", signal.SIGABRT, "sent", "go_out_of_range", "C050"),
        ("fail_assertion 3", signal.SIGABRT, "sent", "fail_assertion", "C051"),
        ("throw_in_noexcept", signal.SIGABRT, "sent", "raise_own()", "C060"),
        ("throw_bad_alloc", signal.SIGABRT, "sent", "std::thread", "C043"),
        ("ask_thread_state", signal.SIGABRT, "sent", "", "C065"),
        ("use_python_without_gil", signal.SIGSEGV, "null", "", "C064"),
    ],
)
def test_native_causes(run: Run, die: str, way: str, number: int, fault: str, function: str, code: str) -> None:
    ran = run(die, *way.split())
    crash = only(ran)
    assert ran.code == 128 + number
    assert (crash.signal, crash.fault, codes(crash)) == (signal.Signals(number).name, fault, [code])
    assert crash.failing_function.startswith(function)
    assert crash.failing_library.endswith("libcrasher.so")
    assert crash.diagnoses[0].title in " ".join(ran.stderr.split())


def test_stack_has_python_and_native_frames_in_order(run: Run, die: str) -> None:
    crash = only(run(die, "null_pointer"))
    frames = crash.threads[0].frames[::-1]
    python = [(frame.name, frame.line) for frame in frames if frame.kind == "python"]
    assert python == [("<module>", 5), ("die", 4)]
    assert [frame.name for frame in frames[-2:]] == ["null_pointer", "value_of(Handle*)"]
    assert crash.address == 8
    value_of = frames[-1]
    assert value_of.file == str(HERE / "crasher.cpp")
    assert [(each.name, each.value) for each in value_of.arguments] == [("handle", "0x0")]


@pytest.mark.parametrize("version", interpreters.VERSIONS)
def test_python_frames_of_each_version(run: Run, tmp_path: Path, version: str) -> None:
    (tmp_path / "nested.py").write_text(
        "import ctypes\n"
        "class Käse:\n"
        "    def inner(self, numbers):\n"
        "        yield ctypes.string_at(\n"
        "            8)\n"
        "def outer():\n"
        "    return sorted([1, 2], key=lambda number: list(Käse().inner([number])))\n"
        "outer()\n"
    )
    python = interpreters.find(version)
    assert python, version
    crash = only(run("nested.py", python=python))
    found = [(f.name.rpartition(".")[2], f.line) for f in crash.threads[0].frames[::-1] if f.kind == "python"]
    assert [name for name, _ in found] == ["<module>", "outer", "<lambda>", "inner", "string_at"]
    assert [line for _, line in found[:4]] == [8, 7, 7, 4]
    assert codes(crash) == ["C070"]


def test_exception_of_a_thread_is_read_from_memory(run: Run, die: str) -> None:
    crash = only(run(die, "throw_in_thread"))
    assert (crash.exception_type, crash.exception_text) == ("std::runtime_error", "the thread's own error")
    assert codes(crash) == ["C060"]
    other = crash.threads[1]
    assert [frame.name for frame in other.frames if frame.kind == "python"] == ["die", "<module>"]


def test_exception_of_a_class_of_the_extension(run: Run, die: str) -> None:
    crash = only(run(die, "throw_in_noexcept"))
    assert (crash.exception_type, crash.exception_text) == ("Own", "of a class of its own")


def test_instruction_of_another_processor(run: Run, die: str) -> None:
    lacking = [("amx", "amx_tile", "C001"), ("avx512_fp16", "avx512_fp16", "")]
    way, _, code = next(each for each in lacking if each[1] not in processor_flags())
    ran = run(die, way)
    crash = only(ran)
    assert ran.code == 132
    assert crash.instruction_set == {"amx": "AMX", "avx512_fp16": "AVX-512"}[way]
    assert codes(crash) == [code or ("C002" if "avx512f" in processor_flags() else "C001")]


def test_python_recursion_in_c(run: Run, tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text(
        "import sys\nsys.setrecursionlimit(10**6)\n"
        "class Node:\n    def __init__(self, next): self.next = next\n    def __repr__(self): return repr(self.next)\n"
        "node = None\nfor _ in range(200000): node = Node(node)\nrepr(node)\n"
    )
    ran = run("deep.py", python=str(interpreters.find("3.11")))
    assert ran.code == 139
    crash = only(ran)
    assert (crash.fault, codes(crash)) == ("stack overflow", ["C030"])
    assert crash.threads[0].frames[-1].name == "<module>"


def test_file_cut_while_it_is_mapped(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(bytes(1 << 16))
    (tmp_path / "cut.py").write_text(
        "import mmap, os\nfile = open('data.bin', 'r+b')\ndata = mmap.mmap(file.fileno(), 0)\n"
        "os.truncate('data.bin', 0)\ndata[40000]\n"
    )
    ran = run("cut.py")
    crash = only(ran)
    assert (ran.code, crash.signal, crash.fault, codes(crash)) == (135, "SIGBUS", "past end of file", ["C080"])
    assert "byte 40,000 of" in crash.fault_text
    assert "data.bin" in crash.fault_text


def test_shared_memory_of_a_worker(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text(
        "import mmap, multiprocessing, os, sys\n"
        "def work():\n"
        "    name = f'/dev/shm/torch_{os.getpid()}_test'\n"
        "    file = open(name, 'w+b'); os.unlink(name)\n"
        "    file.truncate(1 << 16); data = mmap.mmap(file.fileno(), 0); file.truncate(0); data[5000] = 1\n"
        "worker = multiprocessing.get_context('fork').Process(target=work)\n"
        "worker.start(); worker.join(); sys.exit(40 - worker.exitcode)\n"
    )
    ran = run("shared.py")
    crash = only(ran)
    assert (ran.code, crash.signal, codes(crash), crash.is_script) == (47, "SIGBUS", ["C081"], False)


def test_handler_that_raises_the_signal_again_does_not_hide_the_place(run: Run, tmp_path: Path, die: str) -> None:
    (tmp_path / "handled.py").write_text("import faulthandler; faulthandler.enable()\n" + (tmp_path / die).read_text())
    ran = run("handled.py", "null_pointer")
    crash = only(ran)
    assert "Fatal Python error: Segmentation fault" in ran.stderr
    assert (ran.code, crash.fault, crash.failing_function, codes(crash)) == (139, "null", "value_of(Handle*)", ["C070"])


def test_sigkill_from_elsewhere(run: Run, tmp_path: Path) -> None:
    (tmp_path / "killed.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n")
    ran = run("killed.py")
    assert ran.code == 137
    assert ran.record is not None
    assert [diagnosis.code for diagnosis in ran.record.diagnoses] == ["C041"]
    assert "MiB of memory" in ran.record.notes[0]


def test_forked_child_that_waits_for_a_lock(run: Run, tmp_path: Path) -> None:
    (tmp_path / "forked.py").write_text(
        "import ctypes, os, threading, time\n"
        "libc = ctypes.CDLL(None)\nlock = ctypes.create_string_buffer(64)\n"
        "def hold():\n    libc.pthread_mutex_lock(lock); time.sleep(100)\n"
        "threading.Thread(target=hold, daemon=True).start(); time.sleep(0.3)\n"
        "child = os.fork()\n"
        "if child == 0:\n    libc.pthread_mutex_lock(lock)\n"
        "os.waitpid(child, 0)\n"
    )
    ran = run("forked.py", options=("--timeout", "3"))
    assert ran.code == 7
    assert ran.record is not None
    parent, child = ran.record.crashes
    assert (parent.is_script, child.is_script) == (True, False)
    assert codes(child) == ["C086"]


def test_undefined_symbols_of_an_extension(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "extension.cpp"
    for symbol, code in (
        ("_ZN3c105ErrorC1ENS_14SourceLocationERKSs", "C010"),
        ("_ZN2at4_ops9gone_Two4callERKNS_6TensorE", "C011"),
        ("THPVariableClass", "C012"),
        ("_Py_ZeroStruct", "C013"),
    ):
        source.write_text(
            f'extern "C" void {symbol}();\nextern "C" void* PyInit_extension() {{ {symbol}(); return 0; }}\n'
        )
        subprocess.run(
            ["g++", "-shared", "-fPIC", str(source), "-o", str(tmp_path / "extension.so"), "-Wl,-z,now"], check=True
        )
        (tmp_path / "load.py").write_text("import extension\n")
        ran = run("load.py")
        assert ran.code == 1
        assert ran.record is not None, ran.stderr
        assert not ran.record.crashes
        assert [diagnosis.code for diagnosis in ran.record.diagnoses] == [code]
        assert symbol in ran.record.diagnoses[0].title


def test_library_that_needs_a_newer_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "load.py").write_text(
        'raise ImportError("/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.99\' not found (required by x.so)")\n'
    )
    ran = run("load.py")
    assert ran.record is not None
    assert [diagnosis.code for diagnosis in ran.record.diagnoses] == ["C014"]


def test_two_openmp_runtimes(run: Run, tmp_path: Path) -> None:
    """Two libraries with the runtimes' names, one of which dies in its code."""
    for name, function in (("libgomp.so.1", "GOMP_parallel"), ("libiomp5.so", "__kmp_suspend_64")):
        source = tmp_path / "runtime.c"
        source.write_text(f"void {function}(int* p) {{ *p = 1; }}\n")
        subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(tmp_path / name)], check=True)
    (tmp_path / "both.py").write_text(
        "import ctypes\nctypes.CDLL('./libgomp.so.1')\nctypes.CDLL('./libiomp5.so').__kmp_suspend_64(None)\n"
    )
    crash = only(run("both.py"))
    assert codes(crash)[0] == "C020"
    assert "libgomp.so.1 and libiomp5.so" in crash.diagnoses[0].title


def test_damaged_heap_names_are_not_taken_from_a_healthy_script(run: Run, tmp_path: Path) -> None:
    (tmp_path / "talk.py").write_text(
        "import sys; sys.stderr.write('double free or corruption (out)\\nOMP: Error #15\\n')\n"
    )
    ran = run("talk.py")
    assert (ran.code, ran.record) == (0, None)
    assert ran.stderr == "double free or corruption (out)\nOMP: Error #15\n"


@pytest.fixture(scope="module")
def torch_python() -> str:
    return interpreters.require_torch()


def test_tensor_over_memory_that_is_gone(run: Run, tmp_path: Path, torch_python: str) -> None:
    (tmp_path / "gone.py").write_text(
        "import ctypes, torch\n"
        "libc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\n"
        "place = libc.mmap(None, ctypes.c_size_t(1 << 22), 3, 0x22, -1, 0)\n"
        "memory = (ctypes.c_float * (1 << 20)).from_address(place)\n"
        "x = torch.frombuffer(memory, dtype=torch.float32)\n"
        "def use():\n    return x.add(1).sum()\n"
        "use()\nlibc.munmap(ctypes.c_void_p(place), ctypes.c_size_t(1 << 22))\nuse()\n"
    )
    ran = run("gone.py", python=torch_python)
    crash = only(ran)
    assert (ran.code, crash.fault, codes(crash)) == (139, "unmapped", ["C071"])
    assert Path(crash.failing_library).name == "libtorch_cpu.so"
    # The pool's threads share the work: the failing one need not be the one that runs Python. Both are shown.
    python_thread = next(thread for thread in crash.threads if any(frame.kind == "python" for frame in thread.frames))
    names = [frame.name for frame in python_thread.frames]
    assert "use" in names
    assert any("at::_ops::add_Tensor::call" in name for name in names)
    assert "gone.py:8" in ran.stderr


def test_worker_of_a_dataloader(run: Run, tmp_path: Path, torch_python: str, die: str) -> None:
    (tmp_path / "load.py").write_text(
        "import ctypes, os, torch\nfrom torch.utils.data import DataLoader, Dataset\n"
        "class Data(Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, index):\n"
        "        ctypes.CDLL(os.environ['CRASHER']).null_pointer()\n"
        "for batch in DataLoader(Data(), num_workers=1): pass\n"
    )
    ran = run("load.py", python=torch_python)
    assert ran.code == 1
    crash = only(ran)
    assert (crash.is_script, crash.failing_function, codes(crash)) == (False, "value_of(Handle*)", ["C070"])
    assert any(frame.name.endswith("__getitem__") for frame in crash.threads[0].frames)
    assert "DataLoader worker" in ran.stderr


def test_allocator_without_memory(run: Run, tmp_path: Path, torch_python: str) -> None:
    (tmp_path / "big.py").write_text("import torch\ntorch.empty(1 << 50)\n")
    ran = run("big.py", python=torch_python)
    assert ran.code == 1
    assert ran.record is not None
    assert [diagnosis.code for diagnosis in ran.record.diagnoses] == ["C042"]
    assert f"{4 << 50} bytes" in ran.record.diagnoses[0].title


def test_assertion_of_torch_in_a_static_initializer(run: Run, tmp_path: Path, torch_python: str) -> None:
    """As pytorch/pytorch#186453 and its kin: a c10::Error that nobody catches."""
    (tmp_path / "build.py").write_text(
        "import torch, sys; print(torch.__path__[0], int(torch.compiled_with_cxx11_abi()))"
    )
    said = subprocess.run(
        [torch_python, str(tmp_path / "build.py")], capture_output=True, text=True, check=True
    ).stdout.split()
    source = tmp_path / "throws.cpp"
    source.write_text(
        "#include <c10/util/Exception.h>\n#include <thread>\n"
        'extern "C" void fail(int x) { std::thread([x] { TORCH_INTERNAL_ASSERT(x == 1, "seen by a test"); }).join(); }\n'
    )
    include = f"-I{said[0]}/include"
    flags = f"-std=c++20 -w -shared -fPIC -pthread -D_GLIBCXX_USE_CXX11_ABI={said[1]} {include} -L{said[0]}/lib".split()
    subprocess.run(["g++", *flags, str(source), "-lc10", "-o", str(tmp_path / "libthrows.so")], check=True)
    (tmp_path / "fail.py").write_text("import ctypes, torch\nctypes.CDLL('./libthrows.so').fail(3)\n")
    ran = run("fail.py", python=torch_python)
    crash = only(ran)
    assert (ran.code, crash.exception_type, codes(crash)) == (134, "c10::Error", ["C052"])
    assert "seen by a test" in crash.exception_text
    assert "throws.cpp" in crash.diagnoses[0].known_by
