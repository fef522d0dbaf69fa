"""Stands in for torch where no wheel can be had: just what the inferior asks of it. A dtype without a
random function makes zeros.
"""

import random
from contextlib import nullcontext as no_grad  # noqa: F401

from . import nn, version  # noqa: F401

__version__ = "0.fake"

strided = "strided"


class dtype:
    is_floating_point = True
    is_complex = False

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return "torch." + self.name


float16, bfloat16, float32, float64 = (dtype(name) for name in ("float16", "bfloat16", "float32", "float64"))
int64 = dtype("int64")
int64.is_floating_point = False
bool = dtype("bool")
bool.is_floating_point = False


class Tensor:
    is_leaf = True
    grad = None
    requires_grad = False
    device = "cpu"

    def __init__(self, values):
        self.values = values
        self.shape = (len(values),)
        self.dtype = float32

    def requires_grad_(self, value):
        self.requires_grad = value
        return self

    def to(self, kind):
        self.dtype = kind
        return self

    def __add__(self, other):
        return Tensor([left + right for left, right in zip(self.values, other.values, strict=False)])

    def __repr__(self):
        return f"tensor({self.values})"


def manual_seed(seed):
    random.seed(seed)


def randn(size, device, dtype):
    return Tensor([random.random() for _ in range(size[0])])


def randint(low, high, size, device, dtype):
    return Tensor([random.randrange(low, high) for _ in range(size[0])])
