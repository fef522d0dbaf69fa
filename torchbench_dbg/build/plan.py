"""Everything that is decided before the first step: what will be built where, with what, and what stands against it."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from torchbench_dbg.build import cuda, environment, machine, remote, tools, variables
from torchbench_dbg.build.checkout import Checkout, read_checkout
from torchbench_dbg.build.environment.protocol import Backend
from torchbench_dbg.build.lock import MARK
from torchbench_dbg.build.profiles import PROFILES, WITH_CUDA, WITHOUT_CUDA, Profile
from torchbench_dbg.build.request import BuildRequest
from torchbench_dbg.build.state import builds_directory, identifier_of
from torchbench_dbg.build.variables import Variable
from torchbench_dbg.errors import BuildError, UsageError

STEPS: dict[str, str] = {
    "environment": "make the environment",
    "clone": "clone the sources",
    "submodules": "fetch the submodules",
    "requirements": "install what the build needs",
    "configure": "configure with cmake",
    "compile": "compile",
    "install": "install into the environment, editable",
    "prove": "prove that it works",
}

# Of a whole build, by PyTorch's own profile: a debug libtorch_cpu and its object files take some 15 GB, more with CUDA.
_DISK_NEEDED = {"debug": 20e9, "minimal": 12e9, "release-debinfo": 25e9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What stands against a build. A `fail` stops it before the first step."""

    severity: Literal["warn", "fail"]
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """A request with every choice made. `checkout` is None until the sources are there."""

    request: BuildRequest
    identifier: str
    source: Path
    prefix: Path
    profile: Profile
    backend: Backend
    backend_reason: str
    checkout: Checkout | None
    jobs: int
    jobs_reason: str
    variables: tuple[Variable, ...]
    steps: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def folder(self) -> Path:
        """Where the build's state and log are."""
        return builds_directory() / self.identifier

    @property
    def python(self) -> Path:
        return self.prefix / "bin" / "python"

    def child_variables(self) -> dict[str, str]:
        """The whole environment of the build's commands."""
        return {**variables.for_child(self.variables, self.prefix), MARK: str(self.folder)}

    def with_jobs(self, jobs: int, reason: str) -> BuildPlan:
        """The same plan with another number of compilers at a time."""
        own = Variable(name="MAX_JOBS", value=str(jobs), origin=reason)
        changed = tuple(own if each.name == own.name else each for each in self.variables)
        return replace(self, jobs=jobs, jobs_reason=reason, variables=changed)


def make_plan(request: BuildRequest) -> BuildPlan:
    """Resolve a request. UsageError for what can't be meant, BuildError for a tree or environment that can't be had."""
    profile = _named(request.profile, PROFILES, "--profile")
    _check_cache(request)
    directory = request.directory.absolute()
    source = request.source.absolute() if request.source else directory / "source"
    checkout = read_checkout(source) if request.source or (source / ".git").exists() else None
    backend, why = environment.choose(request.environment, request.python_version)
    jobs, jobs_reason = _jobs(request)
    identifier = identifier_of(source, profile.name + ("-cuda" if request.cuda else ""))
    prefix = directory / "env"
    chosen = _variables(request, profile, jobs, builds_directory() / identifier, source)
    for variable in chosen:
        variables.check(variable.name, variable.value)
    steps = _steps(request)
    plan = BuildPlan(
        request=request,
        identifier=identifier,
        source=source,
        prefix=prefix,
        profile=profile,
        backend=backend,
        backend_reason=why,
        checkout=checkout,
        jobs=jobs,
        jobs_reason=jobs_reason,
        variables=tuple(chosen),
        steps=steps,
        problems=(),
    )
    return replace(plan, problems=tuple(_problems(plan)))


def _named(name: str, table: dict[str, Profile], option: str) -> Profile:
    if name in table:
        return table[name]
    close = difflib.get_close_matches(name, table, n=1)
    raise UsageError(
        f"{option} {name}: there is none of that name.",
        hint=f"did you mean {close[0]}?" if close else f"it can be {', '.join(table)}",
    )


def _jobs(request: BuildRequest) -> tuple[int, str]:
    """(compilers at a time, why so many)."""
    if request.jobs:
        return request.jobs, "--jobs"
    here, reason = machine.jobs_for(machine.this_machine())
    if request.distcc:
        there = tools.distcc_jobs(request.distcc)
        return max(here, there), f"distcc's hosts take {there}"
    return here, reason


def _check_cache(request: BuildRequest) -> None:
    """UsageError for a cache that can't be meant."""
    if (request.remote_cache or request.distcc) and not request.use_ccache:
        raise UsageError("--remote-cache and --distcc go by way of ccache: leave --no-ccache out.")
    if request.remote_cache and not request.remote_cache.partition("|")[0].startswith(("redis", "http://", "file:")):
        raise UsageError(
            f"--remote-cache {request.remote_cache}: a redis://, http:// or file:/ address is expected.",
            hint="https://ccache.dev/manual/4.8.html#_remote_storage_backends",
        )
    if not re.fullmatch(r"\d+(\.\d+)?\s*([kMGT]i?B?)?", request.ccache_size):
        raise UsageError(f"--ccache-size {request.ccache_size}: a size as 25G is expected.")


def _steps(request: BuildRequest) -> tuple[str, ...]:
    names = list(STEPS)
    for option, wanted in (("--stop-after", request.stop_after), ("--from", request.start_from)):
        if wanted is not None and wanted not in names:
            close = difflib.get_close_matches(wanted, names, n=1)
            raise UsageError(
                f"{option} {wanted}: there is no such step.",
                hint=f"did you mean {close[0]}?" if close else f"the steps: {', '.join(names)}",
            )
    if request.source is not None:
        names.remove("clone")
    last = request.stop_after or ("compile" if request.target else None)
    if last:
        if last not in names:
            raise UsageError(f"--stop-after {last}: with --source there is no such step.")
        names = names[: names.index(last) + 1]
    if request.start_from and request.start_from not in names:
        raise UsageError(f"--from {request.start_from}: it is not among the steps of this build.")
    return tuple(names)


def _variables(request: BuildRequest, profile: Profile, jobs: int, folder: Path, source: Path) -> list[Variable]:
    by_profile = [
        Variable(name=name, value=value, origin=f"profile {profile.name}") for name, value in profile.variables.items()
    ]
    cuda = WITH_CUDA if request.cuda else WITHOUT_CUDA
    origin = "--cuda" if request.cuda else "without --cuda"
    by_cuda = [Variable(name=name, value=value, origin=origin) for name, value in cuda.items()]
    if request.cuda and request.architectures:
        by_cuda.append(Variable(name="TORCH_CUDA_ARCH_LIST", value=request.architectures, origin="--arch"))
    own = [Variable(name="MAX_JOBS", value=str(jobs), origin="--jobs" if request.jobs else "this machine")]
    own += [Variable(name="CMAKE_GENERATOR", value="Ninja", origin="tdbg")]
    own += _ccache(request, folder, source) if request.use_ccache else []
    own += _linker(request)
    person = [Variable(name=name, value=value, origin="--set") for name, value in request.settings.items()]
    return variables.merged(by_profile, by_cuda, own, variables.from_environment(), person)


def _ccache(request: BuildRequest, folder: Path, source: Path) -> list[Variable]:
    """ccache as the compilers' launcher. Paths below the sources are made relative, so that another checkout hits."""

    if tools.find_tool("ccache", os.environ) is None:
        return []
    languages = ["C", "CXX", *(["CUDA"] if request.cuda else [])]
    values = {f"CMAKE_{language}_COMPILER_LAUNCHER": "ccache" for language in languages}
    values |= {"CCACHE_BASEDIR": str(source), "CCACHE_NOHASHDIR": "1", "CCACHE_MAXSIZE": request.ccache_size}
    if request.remote_cache:
        values["CCACHE_REMOTE_STORAGE"] = request.remote_cache
        values["CCACHE_SECONDARY_STORAGE"] = request.remote_cache  # its name before ccache 4.7
    if request.distcc:
        values |= {"CCACHE_PREFIX": "distcc", "DISTCC_HOSTS": request.distcc}
    values["CCACHE_STATSLOG"] = str(folder / "ccache.stats")
    return [Variable(name=name, value=value, origin="ccache") for name, value in values.items()]


def _linker(request: BuildRequest) -> list[Variable]:

    linker = tools.fast_linker(request.linker, os.environ)
    if linker is None:
        return []
    origin = "--linker" if request.linker else "on PATH"
    return [Variable(name="LDFLAGS", value=f"-fuse-ld={linker}", origin=origin)]


def _problems(plan: BuildPlan) -> Iterator[Problem]:
    """What can be known before the first step."""
    given = {variable.name: variable.value for variable in plan.variables}
    own = plan.child_variables()
    cc, cxx = tools.compilers(own)
    if cc is None or cxx is None:
        missing = given.get("CC" if cc is None else "CXX", "cc" if cc is None else "c++")
        yield Problem(severity="fail", message=f"there is no compiler {missing}", hint="apt-get install g++")
    if plan.checkout is None:
        yield from _clone_problems(plan.request, own)
    if plan.request.cuda:
        toolkit = cuda.find_toolkit(own, plan.prefix)
        for severity, message, hint in cuda.problems(toolkit, cxx, plan.request.architectures):
            yield Problem(severity=severity, message=message, hint=hint)
    if plan.request.distcc and tools.find_tool("distcc", own) is None:
        yield Problem(severity="fail", message="distcc is not on PATH", hint="apt-get install distcc")
    if plan.request.use_ccache and "CCACHE_MAXSIZE" not in given:
        yield Problem(
            severity="warn",
            message="ccache is not on PATH: a build that is made again compiles everything again",
            hint="apt-get install ccache, or --no-ccache",
        )
    needed = _DISK_NEEDED[plan.profile.name] * (2 if plan.request.cuda else 1)
    free = machine.free_bytes(plan.source)
    if not plan.request.target and plan.request.stop_after in (None, "compile", "install", "prove") and free < needed:
        yield Problem(
            severity="warn",
            message=f"{free / 1e9:.0f} GB are free at {plan.source}; a build of PyTorch takes about {needed / 1e9:.0f}",
        )
    if not _is_writable(plan.source if plan.checkout else plan.request.directory.absolute()):
        yield Problem(
            severity="fail", message=f"{plan.source} can't be written", hint="--dir DIR chooses another place"
        )
    if plan.checkout is not None and tools.is_inside(plan.prefix, plan.source):
        yield Problem(severity="warn", message=f"the environment {plan.prefix} is inside of the sources")


def _clone_problems(request: BuildRequest, own: dict[str, str]) -> Iterator[Problem]:
    if tools.find_tool("git", own) is None:
        yield Problem(severity="fail", message="git is not on PATH, and the sources have to be cloned")
        return
    try:
        remote.check_ref(request.repo, request.ref)
    except BuildError as error:
        yield Problem(severity="fail", message=error.message.rstrip("."), hint=error.hint)


def _is_writable(path: Path) -> bool:

    while not path.exists():
        path = path.parent
    return os.access(path, os.W_OK)
