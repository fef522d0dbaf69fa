"""From what a person calls an operation to the C++ functions of it, by what torch's libraries contain.

Names come from the string tables of the files, operators and their overloads from the schemas in the constants of
libtorch_cpu. Both are searched in place, in some hundredths of a second; nothing is indexed. Nothing here imports gdb.
"""

from __future__ import annotations

import difflib
import functools
import mmap
import os
import re
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

MOST_NAMES = 2000  # of one search
LONGEST_NAME = 1 << 14
LONGEST_SCHEMA = 1 << 12
_SYMTAB, _DYNSYM = 2, 11
_SCHEMA = re.compile(rb"(?:\.(\w+))?\([^\0]*?\) -> ")
_SCHEMAS = re.compile(rb"(?:\0|aten::)([a-z_]\w*)(?:\.\w+)?\([^\0]*\) -> ")


class Operator(NamedTuple):
    """An overload: `add` and `Tensor`, or `mm` and nothing."""

    name: str
    overload: str

    @property
    def schema_name(self) -> str:
        """`aten::add.Tensor`"""
        return "aten::%s%s" % (self.name, "." + self.overload if self.overload else "")

    @property
    def unambiguous_name(self) -> str:
        """`add_Tensor`: what torchgen calls the struct in at::_ops."""
        return self.name + ("_" + self.overload if self.overload else "")


class Library:
    """The names in one ELF file. `is_stripped`: only what is exported has one."""

    def __init__(self, path: str) -> None:
        """OSError or ValueError if the file can't be read."""
        self.path = path
        with open(path, "rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        sections = dict(_sections(self._data))
        self.is_stripped = b".strtab" not in sections
        self._strings = sections.get(b".strtab") or sections.get(b".dynstr") or (0, 0)
        self._exported = sections.get(b".dynstr") or (0, 0)
        self._constants = sections.get(b".rodata") or (0, 0)

    def mangled(self, component: str) -> set[str]:
        """The mangled names in which one of the names, between the :: of it, is exactly this."""
        needle, found = b"%d%s" % (len(component), component.encode()), set()
        low, high = self._strings
        at = self._data.find(needle, low, high)
        while at >= 0 and len(found) < MOST_NAMES:
            begin = self._data.rfind(b"\0", low, at) + 1
            end = self._data.find(b"\0", at, high)
            if end - begin < LONGEST_NAME:
                found.add(self._data[begin:end].decode("utf-8", "replace"))
            at = self._data.find(needle, max(end, at + 1), high)
        return {name for name in found if name.startswith("_Z")}

    def has_operator(self, struct_name: str) -> bool:
        """Whether the file has at::_ops::X::call; the rest of its mangled name are the types of its arguments."""
        low, high = self._exported
        return self._data.find(b"\0_ZN2at4_ops%d%s4callE" % (len(struct_name), struct_name.encode()), low, high) >= 0

    def overloads(self, name: str) -> set[str]:
        """The overload names in the schemas of an operator."""
        low, high = self._constants
        found = set()
        for needle in (name.encode() + b"(", name.encode() + b"."):
            at = self._data.find(needle, low, high)
            while at >= 0:
                schema = _SCHEMA.match(self._data[at + len(name) : at + LONGEST_SCHEMA])
                if schema and not self._data[at - 1 : at].isalnum() and self._data[at - 1 : at] not in (b"_", b"."):
                    found.add((schema[1] or b"").decode())
                at = self._data.find(needle, at + 1, high)
        return found

    def operator_names(self) -> set[str]:
        """All names of operators in the schemas; takes some tenths of a second."""
        low, high = self._constants
        return {found[1].decode() for found in _SCHEMAS.finditer(self._data, low, high)}


def operators(text: str, libraries: Sequence[Library]) -> list[Operator]:
    """The overloads that `add`, `add.Tensor`, `aten::add` or `add_Tensor` names; none if it is no operator.

    Without an overload in the text all are meant but those that write to `out`.
    """
    text = text[len("aten::") :] if text.startswith("aten::") else text
    name, dot, wanted = text.partition(".")
    if not re.fullmatch(r"\w+", name) or not re.fullmatch(r"\w*", wanted):
        return []
    found: list[Operator] = []
    for library in libraries:
        for overload in sorted(library.overloads(name)):
            operator = Operator(name, overload)
            if library.has_operator(operator.unambiguous_name):
                found.append(operator)
    if not found and any(library.has_operator(text) for library in libraries):
        return [Operator(text, "")]  # as a struct of at::_ops is called
    if dot:
        return [each for each in found if each.overload == wanted]
    plain = [each for each in found if not re.search(r"(?:^|_)out$", each.overload)]
    return plain or found


def suggestions(text: str, libraries: Sequence[Library], count: int = 3) -> list[str]:
    """Operators whose names look like `text`, the closest first."""
    names = {name for library in libraries for name in library.operator_names()}
    word = text.rpartition("::")[2].partition(".")[0]
    close = difflib.get_close_matches(word, names, n=3 * count, cutoff=0.6)
    return [name for name in close if operators(name, libraries)][:count]


class NativeFunctions:
    """Which functions of at::native an operator's dispatch names: native_functions.yaml, as torchgen ships it."""

    def __init__(self, text: str) -> None:
        self._entries = {}
        for block in re.split(r"^- func: ", text, flags=re.MULTILINE)[1:]:
            self._entries[block.partition("(")[0]] = block

    def kernels(self, operator: Operator) -> list[str]:
        """Their names, with those of the operator that a structured one delegates to."""
        block = self._entries.get(operator.schema_name[len("aten::") :])
        if block is None:
            return []
        delegate = re.search(r"^  structured_delegate: ([\w.]+)", block, re.MULTILINE)
        block += self._entries.get(delegate[1], "") if delegate else ""
        lines = re.findall(r"^    ([\w, ]+): (\w+)", block, re.MULTILINE)
        named = [name for keys, name in lines if DENSE & set(re.split(r", *", keys))]
        return named or [operator.name]


# The keys of tensors as most have them; sparse, quantised and nested ones have kernels of their own.
DENSE = frozenset(
    "CPU CUDA MPS XPU CompositeImplicitAutograd CompositeExplicitAutograd "
    "CompositeExplicitAutogradNonFunctional".split()
)


@functools.lru_cache(maxsize=4)
def native_functions_beside(library: str) -> Optional[NativeFunctions]:
    """The file in the installation that a library is of: torch/lib/X -> torchgen/packaged/…"""
    packages = os.path.dirname(os.path.dirname(os.path.dirname(library)))
    place = "torchgen/packaged/ATen/native/native_functions.yaml"
    try:
        with open(os.path.join(packages, place), encoding="utf-8") as file:
            return NativeFunctions(file.read())
    except (OSError, ValueError):
        return None


def node_prefix(name: str) -> str:
    """`AddBackward` of `add`, without the number: torchgen/api/autograd.py."""
    camel_case = "".join(part.title() for part in name.rstrip("_").split("_"))
    return ("%sBackward" % camel_case).replace("ForwardBackward", "Backward")


def _sections(data: mmap.mmap) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """(name, (begin, end) in the file) of an ELF file's sections."""
    if len(data) < 64 or data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit ELF file")
    (headers,) = struct.unpack_from("<Q", data, 40)
    size, count, of_names = struct.unpack_from("<HHH", data, 58)
    if size != 64 or headers + size * count > len(data) or of_names >= count:
        raise ValueError("no section headers")
    table = [struct.unpack_from("<IIQQQQIIQQ", data, headers + size * number) for number in range(count)]
    names = table[of_names][4]
    for section in table:
        begin = names + section[0]
        yield data[begin : data.find(b"\0", begin)], (section[4], min(section[4] + section[5], len(data)))
