"""What gdb's process has of PyTorch: its version, where fields lie, what a pointer points to.

Memory is read, nothing is called. A layout that was measured in the process is believed most, then debug information,
then the table for the version.
"""

import os
import re

import gdb
import tdbg_keys
import tdbg_layouts
from tdbg_tensors import Garbage, TensorReader

ERRORS = (gdb.error, gdb.MemoryError, RuntimeError, OverflowError, ValueError, TypeError, Garbage)
LIBRARIES = re.compile(r"/(?:lib(?:torch_python|torch_cpu|c10|torch)\.so|_C\.[^/]*\.so)[^/]*$")
TENSOR_CLASS = re.compile(r"(?:TensorImpl|TensorWrapper)(?:<.*>)?$")
LONGEST_NAME = 200
MOST_BASES = 16  # of a Python class


def read_memory(address, length):
    """Bytes of the process; an error of gdb's where there is no memory."""
    return bytes(gdb.selected_inferior().read_memory(address, length))


def word(address):
    return int.from_bytes(read_memory(address, 8), "little")


def c_string(address):
    """The text at an address, up to a page border that can't be crossed."""
    for length in (LONGEST_NAME, 0x1000 - address % 0x1000):
        try:
            return read_memory(address, min(length, LONGEST_NAME)).partition(b"\0")[0].decode("utf-8", "replace")
        except gdb.MemoryError:
            continue
    raise Garbage("no text at %#x" % address)


def libraries():
    """The files of torch that are loaded; if gdb has read none of them (auto-solib-add off), those that are mapped."""
    read = [each.filename for each in gdb.objfiles() if each.filename and LIBRARIES.search(each.filename)]
    return read or sorted(mapped_libraries(gdb.selected_inferior().pid))


def mapped_libraries(pid):
    """The files of torch that a process has mapped; none if it can't be looked at."""
    try:
        with open("/proc/%d/maps" % pid, errors="surrogateescape") as lines:
            paths = {line.rstrip("\n").split(None, 5)[-1] for line in lines if " r-xp " in line}
    except OSError:
        return set()
    return {path for path in paths if LIBRARIES.search(path)}


_versions = {}  # directory of a library -> version


def version():
    """(major, minor) of the torch that is loaded, None if nothing tells it."""
    for path in libraries():
        if path not in _versions:
            _versions[path] = _version_beside(path)
        if _versions[path] is not None:
            return _versions[path]
    return None


def _version_beside(path):
    """By torch/version.py of an installation, build-version of libtorch, or the library's own name (Debian)."""
    folder = os.path.dirname(path)
    for place in ("version.py", "../version.py", "../build-version"):
        try:
            with open(os.path.join(folder, place), encoding="utf-8") as file:
                text = file.read(4096)
        except (OSError, ValueError):
            continue
        found = re.search(r"(?:^__version__ *(?::[^=]*)?= *['\"]|\A)(\d+)\.(\d+)", text, re.MULTILINE)
        if found:
            return int(found[1]), int(found[2])
    found = re.search(r"\.so\.(\d+)\.(\d+)", path)
    return (int(found[1]), int(found[2])) if found else None


_measured = {}


def use_layout(measured):
    """Byte offsets that were measured in the process; None or empty if they were not."""
    _measured.clear()
    _measured.update(measured or {})


def layout():
    """Byte offsets by name, as tdbg_layouts lists them; fewer where less is known."""
    known = _of_debug_information(layout_of_debug_information)
    return Layout({**tdbg_layouts.layout_of(version()), **known, **_measured})


class Layout(dict):
    """A field whose place is not known is as unreadable as one whose memory is not there."""

    def __missing__(self, name):
        raise Garbage("where %s lies in this torch is not known" % name)


_described = {}  # function -> what it found in debug information, and how many files had been loaded then


def _of_debug_information(find):
    """What a function finds in debug information; it is asked again when more files are loaded."""
    count = len(gdb.objfiles())
    if find not in _described or _described[find][0] != count:
        _described[find] = count, find()
    return _described[find][1]


FIELDS = {
    "c10::TensorImpl": {
        "sizes": "sizes_and_strides_",
        "dtype": "data_type_",
        "device": "device_opt_",
        "keys": "key_set_",
        "autograd_meta": "autograd_meta_",
        "storage": "storage_",
        "version_counter": "version_counter_",
        "storage_offset": "storage_offset_",
        "numel": "numel_",
    },
    "c10::StorageImpl": {"data": "data_ptr_", "nbytes": "size_bytes_"},
    "torch::autograd::AutogradMeta": {
        "requires_grad": "requires_grad_",
        "grad_fn": "grad_fn_",
        "grad": "grad_",
        "is_view": "is_view_",
    },
    "torch::autograd::Node": {"next_edges": "next_edges_"},
    "torch::autograd::AccumulateGrad": {"variable": "variable"},
}
SIZES = {"header": "c10::intrusive_ptr_target", "end": "c10::TensorImpl", "edge": "torch::autograd::Edge"}


def layout_of_debug_information():
    """The offsets that debug information has: all in a build with it, few or none in an extension's."""
    found = {}
    for name, fields in FIELDS.items():
        try:
            members = [field for field in gdb.lookup_type(name).fields() if hasattr(field, "bitpos")]  # no static ones
        except (gdb.error, TypeError):
            continue  # not there
        places = {field.name: field.bitpos // 8 for field in members}  # empty if it is only declared
        found.update({key: places[field] for key, field in fields.items() if field in places})
    for key, name in SIZES.items():
        try:
            kind = gdb.lookup_type(name)
        except gdb.error:
            continue
        if kind.fields():
            found[key] = kind.sizeof
    return found


def key_table_of_debug_information():
    try:
        backends, keys = (
            [field.name.rpartition("::")[2] for field in gdb.lookup_type(name).fields()]
            for name in ("c10::BackendComponent", "c10::DispatchKey")
        )
        return tdbg_keys.table_of_enumerations(backends, keys)
    except (gdb.error, ValueError, TypeError):
        return None


def key_table():
    """What the bits of key sets mean."""
    described = _of_debug_information(key_table_of_debug_information)
    return described or tdbg_keys.table_of(version() or tdbg_keys.NEWEST)


def doubts():
    """A remark if the tables by version were not compared with this torch and are used all the same, else None."""
    found = version()
    if tdbg_layouts.is_known(found) or _of_debug_information(key_table_of_debug_information):
        return None
    name = "torch %d.%d" % found if found else "the version of torch"
    nearest = tdbg_layouts.OLDEST if found and found < tdbg_layouts.OLDEST else tdbg_layouts.NEWEST
    return "%s is not known; what is told is as in %d.%d" % (name, *nearest)


def reader():
    """A reader of this process's tensors."""
    return TensorReader(read_memory, layout(), key_table(), class_at)


def class_at(address):
    """The class of an object with virtual functions; None if its first word is no pointer to a known vtable."""
    try:
        table = word(address)
        told = gdb.execute("info symbol %#x" % table, to_string=True)
    except ERRORS:
        return None
    found = re.match(r"vtable for (.*) \+ 16 in section ", told)
    if found is None and told.startswith("_ZTV"):
        name = told.partition(" ")[0]
        found = re.match(r"vtable for (.*)", gdb.execute("demangle -l c++ -- " + name, to_string=True).strip())
    return found[1] if found else None


def tensor_at(address):
    """(TensorImpl, how it was found) of what an address points to: a TensorImpl, an at::Tensor or a Python tensor.

    Garbage if it is none of them.
    """
    if address == 0:
        return 0, "null"
    if is_tensor(address):
        return address, "%s at %#x" % (class_at(address) or "c10::TensorImpl", address)
    for place in python_payloads(address):
        # THPVariable: the Tensor itself, or in a MaybeOwned behind a flag (until 2.9).
        for candidate in (place, place + 8):
            inner = word(candidate)
            if is_tensor(inner):
                what = class_at(inner) or "c10::TensorImpl"
                return inner, "PyObject at %#x -> %s at %#x" % (address, what, inner)
    inner = word(address)
    if is_tensor(inner):
        return inner, "at::Tensor at %#x -> %s at %#x" % (address, class_at(inner) or "c10::TensorImpl", inner)
    raise Garbage("no tensor at %#x: neither a TensorImpl, nor a Tensor, nor a Python tensor, or it is freed" % address)


def is_tensor(address):
    """Whether a live TensorImpl is there, by its vtable and by how its fields fit each other."""
    try:
        name = class_at(address)
        if name is not None:
            return TENSOR_CLASS.search(name) is not None
        # Without symbols: a vtable lies in a library or program all the same, the heap's leftovers don't point there.
        return gdb.solib_name(word(address)) is not None and reader().is_plausible(address)
    except ERRORS:
        return False


def python_payloads(address):
    """Where the fields of a Python object begin if it is a tensor: behind a header of two words, or four."""
    for header in (16, 32):  # with and without the global interpreter lock
        try:
            kind, found = word(address + header - 8), []
            while kind and len(found) < MOST_BASES:
                found.append(c_string(word(kind + header + 8)))  # tp_name
                kind = word(kind + header + 8 + 8 * TP_BASE)
        except ERRORS:
            continue
        if any(name in ("torch._C.TensorBase", "torch._C._TensorBase", "TensorBase", "_TensorBase") for name in found):
            yield address + header


TP_BASE = 29  # words behind tp_name (Include/cpython/object.h)
