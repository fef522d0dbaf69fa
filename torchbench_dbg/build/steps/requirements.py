"""Install what the sources say that their build and their torch need."""

from __future__ import annotations

import hashlib
from typing import Any

from torchbench_dbg.build.checkout import Checkout, read_checkout
from torchbench_dbg.build.plan import BuildPlan
from torchbench_dbg.build.shell import Command, Shell

# A build without isolation calls these, whatever the sources list.
_ALWAYS = ("pip", "setuptools", "wheel", "ninja")


def fingerprint(plan: BuildPlan) -> Any:
    checkout = _checkout(plan)
    text = checkout.requirements.read_bytes() if checkout.requirements else b""
    return [checkout.build_requires, hashlib.sha256(text).hexdigest(), str(plan.prefix)]


def is_done(plan: BuildPlan) -> bool:
    return plan.python.exists()


def commands(plan: BuildPlan) -> list[Command]:
    checkout = _checkout(plan)
    wanted = [*_ALWAYS, *checkout.build_requires]
    if checkout.requirements:
        wanted += ["-r", str(checkout.requirements)]
    return [Command(argv, plan.source) for argv in plan.backend.install(plan.prefix, wanted)]


def run(plan: BuildPlan, shell: Shell) -> None:
    shell.run_all(commands(plan))


def _checkout(plan: BuildPlan) -> Checkout:
    return plan.checkout or read_checkout(plan.source)
