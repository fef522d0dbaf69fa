"""PyTorch's objects in one line each, by their addresses: what the printers and the commands show.

Each reads memory, calls nothing, and raises one of tdbg_torch.ERRORS where the memory is not there.
"""

import tdbg_tensors
import tdbg_torch
from tdbg_graph import GraphReader

LONGEST_STRING = 200


def tensor_text(implementation):
    """One line for the tensor whose TensorImpl is there."""
    if implementation and not tdbg_torch.is_tensor(implementation):
        return "<no tensor at %#x: freed, or never made>" % implementation
    return tdbg_torch.reader().text(implementation)


def storage_text(storage):
    layout = tdbg_torch.layout()
    if not storage:
        return "Storage(null)"
    if not str(tdbg_torch.class_at(storage)).endswith("StorageImpl"):
        return "<no storage at %#x: freed, or never made>" % storage
    data, nbytes = (tdbg_torch.word(storage + layout[name]) for name in ("data", "nbytes"))
    references = tdbg_torch.reader().references(storage)
    return "Storage(data=%#x, nbytes=%d, references=%d)" % (data, nbytes, references)


def node_text(node):
    name = tdbg_torch.class_at(node)
    if name is None:
        return "<no node at %#x: freed, or never made>" % node
    edges = GraphReader(tdbg_torch.read_memory, tdbg_torch.layout()).edges(node)
    return "%s(next_edges=%d) at %#x" % (short_name(name), len(edges), node)


def short_name(name):
    """A class without its namespaces: `AddBackward0`, `CppNode<example::Function>`."""
    plain, angle, arguments = name.partition("<")
    return plain.rpartition("::")[2] + angle + arguments


def pointee_text(type_name, target):
    """What a pointer of this static type points to."""
    if not target:
        return "null"
    if tdbg_torch.TENSOR_CLASS.search(type_name):
        return tensor_text(target)
    if type_name.endswith("StorageImpl"):
        return storage_text(target)
    if type_name == "torch::autograd::Node":
        return node_text(target)
    name = tdbg_torch.class_at(target)
    if name is None:
        return "<no %s at %#x: freed, or never made>" % (type_name, target)
    return "%s at %#x, %d references" % (name, target, tdbg_torch.reader().references(target))


def operator_name(address):
    """`aten::add.Tensor` of the c10::OperatorName at an address."""
    name, overload = standard_string(address), standard_string(address + 32)
    return "%s.%s" % (name, overload) if overload else name


def standard_string(address):
    """The text of libstdc++'s std::string: pointer, length, and the text itself if it is short."""
    begin, length = tdbg_torch.word(address), sane_count(tdbg_torch.word(address + 8))
    text = tdbg_torch.read_memory(begin, min(length, LONGEST_STRING)).decode("utf-8", "replace") if length else ""
    return text if length <= LONGEST_STRING else text + "…"


def symint_text(data):
    """A number, or where the top bits are 1, 0, 1 a pointer to a symbolic one in the others (c10/core/SymInt.h)."""
    if data >> 61 != 0b101:
        return "%d" % (data - (data >> 63 << 64))
    pointer = data & (1 << 61) - 1
    return "symbolic, %s at %#x" % (tdbg_torch.class_at(pointer) or "a SymNode", pointer)


def sane_count(value):
    count = int(value)
    if not 0 <= count < tdbg_tensors.SANE_COUNT:
        raise ValueError("a count of %d" % count)
    return count
