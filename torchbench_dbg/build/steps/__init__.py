"""The steps of a build, in order, a module each.

`commands(plan)`: what it runs, without a look at the world, for --dry-run too. `run(plan, shell)`: does it.
`fingerprint(plan)`: what a done step depended on. `is_done(plan)`: a cheap look whether what it made is still there;
a step without one is asked every time, as ninja and pip know best what is done.
"""

from __future__ import annotations

from types import ModuleType

from torchbench_dbg.build.steps import (
    clone,
    compile,
    configure,
    environment,
    install,
    prove,
    requirements,
    submodules,
)

BY_NAME: dict[str, ModuleType] = {
    "environment": environment,
    "clone": clone,
    "submodules": submodules,
    "requirements": requirements,
    "configure": configure,
    "compile": compile,
    "install": install,
    "prove": prove,
}
