"""`tdbg build`, `rebuild`, `builds`, `env`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torchbench_dbg.cli import options
from torchbench_dbg.cli.app import Panel, app, examples, finish

BUILD_EXAMPLES = examples(
    "tdbg build --ref v2.9.1 --dir ~/pytorch",
    "tdbg build --source ~/src/pytorch --profile minimal --stop-after configure",
    "tdbg build --source ~/src/pytorch --target c10",
    "tdbg build --source . --set USE_MKLDNN=0 --jobs 4 --dry-run",
)
_WHAT, _HOW, _STEPS = "Sources", "How", "Steps"


@app.command(rich_help_panel=Panel.BUILD, epilog=BUILD_EXAMPLES)
def build(
    source: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A tree that is there.", rich_help_panel=_WHAT)
    ] = None,
    repo: Annotated[str | None, typer.Option(metavar="URL", help="Clone from here.", rich_help_panel=_WHAT)] = None,
    ref: Annotated[str | None, typer.Option(metavar="TAG|COMMIT", help="Clone this.", rich_help_panel=_WHAT)] = None,
    directory: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="For clone and environment.", rich_help_panel=_WHAT)
    ] = Path("pytorch-build"),
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="debug, minimal or release-debinfo.", rich_help_panel=_HOW)
    ] = "debug",
    cuda: Annotated[bool, typer.Option("--cuda", help="With CUDA.", rich_help_panel=_HOW)] = False,
    arch: Annotated[
        str | None, typer.Option(metavar="LIST", help="CUDA architectures, as 8.0;9.0.", rich_help_panel=_HOW)
    ] = None,
    env_manager: Annotated[
        str,
        typer.Option(metavar="NAME", help="auto, conda, mamba, micromamba, rattler, uv, venv.", rich_help_panel=_HOW),
    ] = "auto",
    channel: Annotated[
        str, typer.Option(metavar="NAME|URL", help="Where conda packages are from.", rich_help_panel=_HOW)
    ] = "conda-forge",
    python_version: Annotated[
        str | None, typer.Option(metavar="X.Y", help="Python of the environment.", rich_help_panel=_HOW)
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Compilers at a time.", rich_help_panel=_HOW)
    ] = None,
    linker: Annotated[str | None, typer.Option(metavar="NAME", help="mold, lld, ...", rich_help_panel=_HOW)] = None,
    ccache: Annotated[bool, typer.Option("--ccache/--no-ccache", help="Use ccache.", rich_help_panel=_HOW)] = True,
    ccache_size: Annotated[str, typer.Option(metavar="SIZE", help="Its size.", rich_help_panel=_HOW)] = "25G",
    remote_cache: Annotated[
        str | None,
        typer.Option(metavar="URL", help="ccache shared by machines: redis://, http://, file:/.", rich_help_panel=_HOW),
    ] = None,
    distcc: Annotated[
        str | None, typer.Option(metavar="HOSTS", help="Compile on these hosts too.", rich_help_panel=_HOW)
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="VAR=VALUE", help="A variable of PyTorch's build.", rich_help_panel=_HOW),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="NAME", help="Compile only this, as c10.", rich_help_panel=_STEPS)
    ] = None,
    stop_after: Annotated[str | None, typer.Option(metavar="STEP", help="Last step.", rich_help_panel=_STEPS)] = None,
    start_from: Annotated[
        str | None, typer.Option("--from", metavar="STEP", help="Do this and later ones again.", rich_help_panel=_STEPS)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print a shell script that does the same.", rich_help_panel=_STEPS)
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the build used last.", rich_help_panel=_STEPS)
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Build a debuggable PyTorch: environment, sources, compile, install, proof.

    Interrupted or failed, the same command goes on where it was.
    """

    def command() -> int:
        from torchbench_dbg.build.request import PYTORCH, BuildRequest
        from torchbench_dbg.build.variables import parse_settings
        from torchbench_dbg.commands import build as command_module

        if resume:
            return command_module.resume(None, as_json=as_json)
        request = BuildRequest(
            source=source.absolute() if source else None,
            repo=repo or PYTORCH,
            ref=ref,
            directory=directory.expanduser().absolute(),
            profile=profile,
            cuda=cuda,
            architectures=arch,
            environment=env_manager,
            channel=channel,
            python_version=python_version,
            jobs=jobs,
            linker=linker,
            use_ccache=ccache,
            ccache_size=ccache_size,
            remote_cache=remote_cache,
            distcc=distcc,
            settings=parse_settings(setting or []),
            target=target,
            stop_after=stop_after,
            start_from=start_from,
        )
        return command_module.run(request, dry_run=dry_run, as_json=as_json)

    finish(command)


REBUILD_EXAMPLES = examples(
    "tdbg rebuild",
    "tdbg rebuild aten/src/ATen/native/BinaryOps.cpp --dry-run",
    "tdbg rebuild --debinfo aten/src/ATen/native/cpu/BinaryOpsKernel.cpp",
)
_Build = Annotated[
    str | None, typer.Option("--build", metavar="NAME", help="A build of tdbg builds; the one used last if not given.")
]


@app.command(rich_help_panel=Panel.BUILD, epilog=REBUILD_EXAMPLES)
def rebuild(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILES]", help="Files that you edited: checked, not needed.")
    ] = None,
    debinfo: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Debug information for this file only.")
    ] = None,
    build_name: _Build = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would cost.")] = False,
    as_json: options.Json = False,
) -> None:
    """Build what an edit needs, and say before how much that is."""

    def command() -> int:
        from torchbench_dbg.commands import rebuild as command_module

        return command_module.run(files or [], name=build_name, debinfo=debinfo or [], dry_run=dry_run, as_json=as_json)

    finish(command)


@app.command(rich_help_panel=Panel.BUILD)
def builds(as_json: options.Json = False) -> None:
    """List the builds of this machine, the one used last first."""

    def command() -> int:
        from torchbench_dbg.commands import builds as command_module

        return command_module.run(as_json=as_json)

    finish(command)


@app.command(rich_help_panel=Panel.BUILD, epilog=examples('eval "$(tdbg env)"', "tdbg env --shell"))
def env(
    build_name: _Build = None,
    shell: Annotated[bool, typer.Option("--shell", help="Start a shell in it.")] = False,
) -> None:
    """Enter the environment of a build."""

    def command() -> int:
        from torchbench_dbg.commands import builds as command_module

        return command_module.enter(build_name, shell=shell)

    finish(command)
