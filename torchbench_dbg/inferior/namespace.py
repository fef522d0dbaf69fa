"""The names that the expression finds, made anew from the seed each time, and the settings of torch that
a first run may have changed.
"""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable
from typing import Any

from .values import describe

SIZE = (4, 4)
INTEGER_LIMIT = 10
MAXIMUM_LISTED = 50

NameList = list[dict[str, str]]
"""[{"name": "a", "description": "float32 randn 4x4 cpu"}, ...], as the 'ready' event carries it."""


def new_main_module() -> types.ModuleType:
    """A fresh `__main__`, as pickling and dataclasses expect it to be where the code runs."""
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = module
    return module


def seed_everything(torch: Any, seed: int) -> None:
    """Seed torch's, Python's and (if loaded) numpy's generators."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy_random: Any = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(seed % 2**32)


def fill(torch: Any, names: dict[str, Any], device: str, dtype: str, seed: int) -> NameList:
    """Add torch, nn, F, a, b, x, w where the script has not defined them. Raises ValueError for a dtype
    that torch does not have.
    """
    seed_everything(torch, seed)
    names.setdefault("torch", torch)
    names.setdefault("nn", torch.nn)
    names.setdefault("F", torch.nn.functional)
    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise ValueError(f"torch has no dtype {dtype!r}")
    make, how = tensor_maker(torch, device, kind)
    listed: NameList = []
    for name in ("a", "b", "x", "w"):
        gradient = name in "xw" and (kind.is_floating_point or kind.is_complex)
        tensor = make()
        if name not in names:
            names[name] = tensor.requires_grad_(True) if gradient else tensor
            size = "x".join(str(length) for length in SIZE)
            description = f"{dtype} {how} {size} {device}" + (" requires_grad" if gradient else "")
            listed.append({"name": name, "description": description})
    return listed


def tensor_maker(torch: Any, device: str, kind: Any) -> tuple[Callable[[], Any], str]:
    """(function that makes one random tensor, its name): randn where torch has it for the dtype."""
    if kind is torch.bool:
        return lambda: torch.randint(0, 2, SIZE, device=device, dtype=kind), "randint(0, 2)"
    if kind.is_complex or kind in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        return lambda: torch.randn(SIZE, device=device, dtype=kind), "randn"
    if kind.is_floating_point:
        return lambda: torch.randn(SIZE, device=device, dtype=torch.float32).to(kind), "randn"
    # By way of int64, as randint does not make every unsigned type.
    return lambda: torch.randint(0, INTEGER_LIMIT, SIZE, device=device, dtype=torch.int64).to(
        kind
    ), f"randint(0, {INTEGER_LIMIT})"


def list_user_names(torch: Any, before: dict[str, Any], names: dict[str, Any]) -> NameList:
    """What a script or the setup defined since `before`: at most MAXIMUM_LISTED names, modules and
    underscored names left out.
    """
    listed = []
    for name, value in names.items():
        new = name not in before or before[name] is not value
        if new and not name.startswith("_") and type(value) is not types.ModuleType:
            listed.append({"name": name, "description": describe(torch, value)})
    return listed[:MAXIMUM_LISTED]


class TorchSettings:
    """Process-wide settings of torch, so that a warm-up leaves none behind. Inference mode can't outlive
    its block, so it is not among them.
    """

    SETTINGS = (
        ("is_grad_enabled", "set_grad_enabled"),
        ("get_default_dtype", "set_default_dtype"),
        ("get_num_threads", "set_num_threads"),
        ("is_deterministic_algorithms_warn_only_enabled", ""),
        ("are_deterministic_algorithms_enabled", "use_deterministic_algorithms"),
    )

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._values = self._read()

    def _read(self) -> dict[str, Any]:
        return {getter: getattr(self._torch, getter)() for getter, _ in self.SETTINGS if hasattr(self._torch, getter)}

    def restore(self) -> None:
        """Put back what is different now; what is the same is not touched."""
        now = self._read()
        warn_only = "is_deterministic_algorithms_warn_only_enabled"
        for getter, setter in self.SETTINGS:
            if getter not in now or not setter:
                continue
            if setter == "use_deterministic_algorithms":
                if (now[getter], now.get(warn_only)) != (self._values[getter], self._values.get(warn_only)):
                    self._torch.use_deterministic_algorithms(
                        self._values[getter], warn_only=self._values.get(warn_only, False)
                    )
            elif now[getter] != self._values[getter]:
                getattr(self._torch, setter)(self._values[getter])
