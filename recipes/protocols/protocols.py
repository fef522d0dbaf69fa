import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Above(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__qualname__", func)  # above
        return super().__torch_function__(func, types, args, kwargs or {})


class Below(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))  # below
        return result


x = torch.ones(2, requires_grad=True)
y = torch.ones(2).as_subclass(Above)
first = y + 1
with Below():
    second = x + 1
print(first.sum().item(), second.grad_fn)
