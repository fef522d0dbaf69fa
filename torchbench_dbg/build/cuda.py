"""What --cuda needs, looked at before the first step: toolkit, host compiler, C library, architectures, cuDNN, NCCL."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torchbench_dbg import process
from torchbench_dbg.build.tools import Tool
from torchbench_dbg.errors import TdbgError

_ARCHITECTURE = re.compile(r"(\d{1,2}\.\d[af]?)(\+PTX)?")
_NAMED = ("Kepler Maxwell Pascal Volta Turing Ampere Ada Hopper Blackwell All Common Auto").split()
# glibc 2.41 declares sinpi, cospi and rsqrt, as CUDA's own headers before 13.0 do with another exception specification:
# nvcc then refuses every file (pytorch#171324).
_GLIBC_WITH_SINPI, _CUDA_THAT_KNOWS_IT = (2, 41), (13, 0)


Found = tuple[Literal["warn", "fail"], str, str | None]
"""(severity, what, what to do)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A CUDA toolkit. The newest host compilers that it takes, by major version: None where its header does not say."""

    directory: Path
    version: tuple[int, int]
    newest_gcc: int | None
    newest_clang: int | None


def find_toolkit(variables: Mapping[str, str], prefix: Path) -> Toolkit | None:
    """The toolkit that PyTorch's build will take: what CUDA_HOME or CUDA_PATH names and nothing else, if one is set;
    else the environment's own, that of the nvcc on PATH, /usr/local/cuda."""
    named = [Path(variables[name]) for name in ("CUDA_HOME", "CUDA_PATH") if variables.get(name)]
    nvcc = shutil.which("nvcc", path=variables.get("PATH"))
    on_path = [Path(nvcc).resolve().parent.parent] if nvcc else []
    for directory in named[:1] or [prefix, *on_path, Path("/usr/local/cuda")]:
        if (directory / "bin" / "nvcc").is_file():
            return _read(directory)
    return None


def _read(directory: Path) -> Toolkit | None:
    try:
        told = process.run([str(directory / "bin" / "nvcc"), "--version"], timeout=30).stdout
    except TdbgError:
        return None
    found = re.search(r"release (\d+)\.(\d+)", told)
    header = _host_config(directory)
    gcc = re.search(r"unsupported GNU version! gcc versions later than (\d+)", header)
    clang = re.search(r"unsupported clang version! clang version must be less than (\d+)", header)
    return Toolkit(
        directory=directory,
        version=(int(found[1]), int(found[2])) if found else (0, 0),
        newest_gcc=int(gcc[1]) if gcc else None,
        newest_clang=int(clang[1]) - 1 if clang else None,
    )


def _host_config(directory: Path) -> str:
    """The header in which the toolkit says which compilers it takes."""
    for place in ("include", "targets/x86_64-linux/include", "targets/sbsa-linux/include"):
        try:
            return (directory / place / "crt" / "host_config.h").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return ""


def problems(
    toolkit: Toolkit | None, compiler: Tool | None, architectures: str | None, *, glibc: tuple[int, int] | None = None
) -> Iterator[Found]:
    """Everything that would end the build, or make it useless. `architectures` as TORCH_CUDA_ARCH_LIST takes them."""
    if toolkit is None:
        hint = "install the CUDA toolkit, or name it: CUDA_HOME=/usr/local/cuda-13.0 tdbg build --cuda"
        yield "fail", "there is no CUDA toolkit: no nvcc where CUDA_HOME says or, without it, on PATH", hint
        return
    release = ".".join(map(str, toolkit.version))
    yield from _compiler_problems(toolkit, release, compiler)
    libc = glibc or _glibc()
    if libc >= _GLIBC_WITH_SINPI and toolkit.version < _CUDA_THAT_KNOWS_IT:
        what = f"CUDA {release} can't compile against glibc {libc[0]}.{libc[1]}: both declare sinpi and rsqrt"
        yield "fail", what, "CUDA 13.0 or newer, or an environment with an older C library (--env-manager conda)"
    for text in re.split(r"[;,\s]+", architectures or ""):
        if text and not _ARCHITECTURE.fullmatch(text) and text.removesuffix("+PTX") not in _NAMED:
            yield "fail", f"--arch {text}: no CUDA architecture", "as in --arch '8.0;9.0+PTX'"
    if not architectures and shutil.which("nvidia-smi") is None:
        hint = "--arch '9.0' builds for one, which is some times faster"
        yield "warn", "no card to ask for its architecture: the build is for all that PyTorch supports", hint
    if not _has_header(toolkit, "cudnn.h", "cudnn_version.h"):
        yield "warn", "cuDNN's headers are not in the toolkit: convolutions are built without it", None


def _compiler_problems(toolkit: Toolkit, release: str, compiler: Tool | None) -> Iterator[Found]:
    if compiler is None or not compiler.version:
        return
    family = "clang" if _is_clang(compiler) else "gcc"
    newest = toolkit.newest_clang if family == "clang" else toolkit.newest_gcc
    if newest is not None and compiler.version[0] > newest:
        what = f"CUDA {release} takes {family} up to {newest}; {compiler.path} is {compiler.version[0]}"
        hint = f"apt-get install g++-{newest}, then --set CXX=g++-{newest} --set CC=gcc-{newest}"
        yield "fail", what, hint if family == "gcc" else f"--set CXX=clang++-{newest} --set CC=clang-{newest}"


def _is_clang(compiler: Tool) -> bool:
    try:
        return "clang" in process.run([compiler.path, "--version"], timeout=30).stdout
    except TdbgError:
        return False


def _glibc() -> tuple[int, int]:
    numbers = re.findall(r"\d+", platform.libc_ver()[1])
    return (int(numbers[0]), int(numbers[1])) if len(numbers) > 1 else (0, 0)


def _has_header(toolkit: Toolkit, *names: str) -> bool:
    places = [toolkit.directory / "include", Path("/usr/include"), Path("/usr/include/x86_64-linux-gnu")]
    own = os.environ.get("CUDNN_INCLUDE_DIR") or os.environ.get("CUDNN_ROOT")
    places += [Path(own), Path(own) / "include"] if own else []
    return any((place / name).is_file() for place in places for name in names)
