"""What the host learns of values: a short text for people, and digests that are equal only if the bits
are.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import re
from collections.abc import Iterator
from typing import Any

MAXIMUM_REPR = 300
MAXIMUM_DEPTH = 8

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")


def type_name(value: object) -> str:
    """`torch.Tensor`, `int`."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def short_repr(value: object) -> str:
    """repr() in one line of at most MAXIMUM_REPR characters; "<unprintable: ...>" if it raises."""
    try:
        text = " ".join(repr(value).split())
    except Exception as error:
        return f"<unprintable: {type(error).__qualname__}>"
    return text if len(text) <= MAXIMUM_REPR else text[: MAXIMUM_REPR - 3] + "..."


def describe(torch: Any, value: object) -> str:
    """A few words: `float32 4x4 cpu requires_grad` for a tensor, the type for anything else."""
    if not isinstance(value, torch.Tensor):
        return type_name(value)
    try:
        size = "x".join(str(length) for length in value.shape) or "scalar"
        words = [str(value.dtype).replace("torch.", ""), size, str(value.device)]
        return " ".join(words + (["requires_grad"] if value.requires_grad else []))
    except Exception:
        return type_name(value)


def result_record(torch: Any, value: object, names: dict[str, Any]) -> dict[str, Any]:
    """The "result" of the 'finished' event. `names` is the namespace after the run.

    repr, type; digest of the value (null if it has none); grad_digest over the .grad of all leaves in
    the namespace (null if there is none); names_digest over all tensors in the namespace, so that
    changes in place count. Never raises.
    """
    record: dict[str, Any] = {
        "repr": short_repr(value),
        "type": type_name(value),
        "digest": None,
        "grad_digest": None,
        "names_digest": None,
    }
    digests = Digests(torch)
    # A tensor subclass must not see what is done here.
    untouched = getattr(getattr(torch, "_C", None), "DisableTorchFunction", contextlib.nullcontext)
    with contextlib.suppress(Exception), torch.no_grad(), untouched():
        record["digest"] = digests.of(value)
        tensors = list(digests.namespace_tensors(names))
        gradients = [(name, tensor.grad) for name, tensor in tensors if tensor.is_leaf and tensor.grad is not None]
        record["grad_digest"] = digests.of_named(gradients) if gradients else None
        record["names_digest"] = digests.of_named(tensors) if tensors else None
    return record


class Digests:
    """SHA-256 over dtype, shape and bytes of tensors, over repr() of plain values, over the members of
    containers.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def of(self, value: object) -> str | None:
        """Hexadecimal digest, or None when the bits of the value can't be had (a tensor subclass without
        storage, say).
        """
        digest = hashlib.sha256()
        try:
            self._add(digest, value, MAXIMUM_DEPTH)
        except Exception:
            return None
        return digest.hexdigest()

    def of_named(self, tensors: list[tuple[str, Any]]) -> str:
        """Digest over names and tensors, in the order given."""
        digest = hashlib.sha256()
        for name, tensor in tensors:
            digest.update(f"{name}={self.of(tensor)};".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def namespace_tensors(self, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """(name, tensor) of all tensors: variables, parameters and buffers of modules, members of lists
        and dicts; ordered by name.
        """
        for name in sorted(key for key in names if isinstance(key, str) and not key.startswith("__")):
            yield from self._tensors_in(name, names[name], MAXIMUM_DEPTH)

    def _tensors_in(self, name: str, value: object, depth: int) -> Iterator[tuple[str, Any]]:
        if isinstance(value, self._torch.Tensor):
            yield name, value
        elif isinstance(value, self._torch.nn.Module):
            members = [*value.named_parameters(), *value.named_buffers()]
            yield from ((f"{name}.{member}", tensor) for member, tensor in members)
        elif depth and isinstance(value, (list, tuple)):
            for index, member in enumerate(value):
                yield from self._tensors_in(f"{name}[{index}]", member, depth - 1)
        elif depth and isinstance(value, dict):
            for key, member in list(value.items()):
                yield from self._tensors_in(f"{name}[{short_repr(key)}]", member, depth - 1)

    def _add(self, digest: Any, value: object, depth: int) -> None:
        if isinstance(value, self._torch.Tensor):
            self._add_tensor(digest, value)
        elif depth and isinstance(value, (list, tuple)):
            digest.update(f"({len(value)}:".encode())
            for member in value:
                self._add(digest, member, depth - 1)
        elif depth and isinstance(value, dict):
            digest.update(f"{{{len(value)}:".encode())
            for key, member in value.items():
                self._add(digest, key, depth - 1)
                self._add(digest, member, depth - 1)
        elif isinstance(value, self._torch.nn.Module):
            for name, tensor in self._tensors_in("", value, depth):
                digest.update(name.encode())
                self._add_tensor(digest, tensor)
        else:
            # Addresses differ from run to run and say nothing about the value.
            text = f"{type_name(value)}:{_ADDRESS.sub('0x', repr(value))};"
            digest.update(text.encode("utf-8", "surrogatepass"))

    def _add_tensor(self, digest: Any, tensor: Any) -> None:
        torch = self._torch
        digest.update(f"{tensor.dtype}{tuple(tensor.shape) if not tensor.is_nested else ''}".encode())
        if type(tensor) is not torch.Tensor:
            tensor = tensor.detach().as_subclass(torch.Tensor)
        if tensor.is_nested:
            for part in tensor.unbind():
                self._add_tensor(digest, part)
            return
        if tensor.device.type == "meta":
            digest.update(b"meta")
            return
        if tensor.layout is not torch.strided:
            tensor = tensor.to_dense()
        if tensor.is_quantized:
            digest.update(f"{tensor.qscheme()}{_quantisation(torch, tensor)}".encode())
            tensor = tensor.int_repr()
        tensor = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
        size = tensor.numel() * tensor.element_size()
        if size:
            digest.update((ctypes.c_char * size).from_address(tensor.data_ptr()))


def _quantisation(torch: Any, tensor: Any) -> str:
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return f"{tensor.q_scale()!r}{tensor.q_zero_point()!r}"
    return f"{tensor.q_per_channel_scales().tolist()!r}{tensor.q_per_channel_zero_points().tolist()!r}"
