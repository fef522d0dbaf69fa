"""How each of PyTorch's types is printed. The printers read memory, call nothing, and never raise."""

import gdb
import tdbg_elements
import tdbg_tensors
import tdbg_texts
import tdbg_torch

MOST_CHILDREN = 64
MOST_SHOWN = 4  # elements of a list in an IValue
MOST_LEVELS = 3  # of lists in lists
ERRORS = tdbg_torch.ERRORS


class Printer:
    """One value as text; what can't be read says so."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        try:
            return self.text()
        except ERRORS as error:
            return "<%s%s: unreadable: %s>" % (short_type(self.value), where(self.value), error)

    @property
    def address(self):
        if self.value.address is None:
            raise ValueError("it has no address")
        return int(self.value.address)


class ListPrinter(Printer):
    """A printer with elements: `begin` points to the first."""

    def display_hint(self):
        return "array"

    def children(self):
        try:
            begin, count = self.span()
            for number in range(min(count, MOST_CHILDREN)):
                element = (begin + number).dereference()
                element.fetch_lazy()
                yield "[%d]" % number, element
            if count > MOST_CHILDREN:
                yield "[…]", "%d more" % (count - MOST_CHILDREN)
        except ERRORS as error:
            yield "[?]", "<unreadable: %s>" % error

    def text(self):
        return "%s of %d" % (short_type(self.value), self.span()[1])


class ArrayRefPrinter(ListPrinter):
    """c10::ArrayRef: pointer and length."""

    def span(self):
        return self.value["Data"], tdbg_texts.sane_count(self.value["Length"])


class SmallVectorPrinter(ListPrinter):
    """c10::SmallVector: a pointer without a type, and the count."""

    def span(self):
        element = self.value.type.strip_typedefs().template_argument(0)
        return self.value["BeginX"].cast(element.pointer()), tdbg_texts.sane_count(self.value["Size"])


class TensorPrinter(Printer):
    """at::Tensor and at::TensorBase: their one member is the pointer to the TensorImpl."""

    def text(self):
        return tdbg_texts.tensor_text(tdbg_torch.word(self.address))


class TensorImplPrinter(Printer):
    """c10::TensorImpl and what is derived from it."""

    def text(self):
        return tdbg_texts.tensor_text(self.address)


class StoragePrinter(Printer):
    """c10::Storage: a pointer to its StorageImpl."""

    def text(self):
        return tdbg_texts.storage_text(tdbg_torch.word(self.address))


class StorageImplPrinter(Printer):
    def text(self):
        return tdbg_texts.storage_text(self.address)


class IntrusivePointerPrinter(Printer):
    """c10::intrusive_ptr: what it points to, and how many own it."""

    def text(self):
        target = tdbg_torch.word(self.address)
        name = str(self.value.type.strip_typedefs().template_argument(0))
        return tdbg_texts.pointee_text(name, target)


class PointerPrinter(Printer):
    """A pointer to a tensor, a storage or a node, whose types debug information often only declares."""

    def text(self):
        address = int(self.value)
        name = str(self.value.type.strip_typedefs().target().unqualified())
        return "%#x %s" % (address, tdbg_texts.pointee_text(name, address)) if address else "null"


class OptionalPrinter(Printer):
    """std::optional of libstdc++, and c10::optional, which torch had of its own until 2.1."""

    def contents(self):
        try:
            payload = self.value["_M_payload"]
        except gdb.error:
            return bool(self.value["init_"]), self.value["storage_"]["value_"]
        return bool(payload["_M_engaged"]), payload["_M_payload"]["_M_value"]

    def text(self):
        is_set, inner = self.contents()
        return inline(inner) if is_set else "nullopt"


class OptionalArrayRefPrinter(Printer):
    """c10::OptionalArrayRef: an optional in a struct."""

    def text(self):
        return inline(self.value["wrapped_opt_array_ref"])


class ScalarTypePrinter(Printer):
    def text(self):
        number = int(self.value)
        return "%s (%s)" % (plain(self.value), tdbg_tensors.SCALAR_TYPES.get(number, "undefined"))


class LayoutPrinter(Printer):
    def text(self):
        return "%s (%s)" % (plain(self.value), tdbg_tensors.LAYOUTS.get(int(self.value), "undefined"))


class DevicePrinter(Printer):
    def text(self):
        return tdbg_tensors.device(bytes([int(self.value["type_"]) & 0xFF, int(self.value["index_"]) & 0xFF, 1]))


class DispatchKeySetPrinter(Printer):
    def text(self):
        raw = int(self.value["repr_"])
        names = tdbg_torch.key_table().names(raw)
        return "DispatchKeySet(%#x%s)" % (raw, ": " + ", ".join(names) if names else "")


class SymIntPrinter(Printer):
    """c10::SymInt: a plain number, or with these top bits a pointer to a symbolic one (c10/core/SymInt.h)."""

    def text(self):
        data = int(self.value["data_"]) & (1 << 64) - 1
        return tdbg_texts.symint_text(data)


class ScalarPrinter(Printer):
    """c10::Scalar: a tagged union."""

    def text(self):
        tag, union = plain(self.value["tag"]).rpartition("::")[2], self.value["v"]
        if tag == "HAS_d":
            return "%r" % float(union["d"])
        if tag == "HAS_i":
            return "%d" % int(union["i"])
        if tag == "HAS_b":
            return str(bool(union["i"]))
        if tag == "HAS_z":
            raw = tdbg_torch.read_memory(int(union.address), 16)
            return tdbg_elements.text("complex128", raw)
        return "<%s>" % tag


class OperatorNamePrinter(Printer):
    """c10::OperatorName: two strings."""

    def text(self):
        return tdbg_texts.operator_name(self.address)


class OperatorHandlePrinter(Printer):
    """c10::OperatorHandle: a pointer to the OperatorDef, whose OperatorEntry begins with the name."""

    def text(self):
        return "OperatorHandle(%s)" % tdbg_texts.operator_name(tdbg_torch.word(self.address))


class NodePrinter(Printer):
    """torch::autograd::Node and what is derived from it."""

    def text(self):
        return tdbg_texts.node_text(self.address)


class EdgePrinter(Printer):
    """torch::autograd::Edge: a node, and which of its inputs."""

    def text(self):
        node = tdbg_torch.word(self.address)
        if not node:
            return "Edge(none)"
        return "Edge(input %d of %s)" % (int(self.value["input_nr"]), tdbg_texts.node_text(node))


class IValuePrinter(Printer):
    """c10::IValue: a tagged union. A list can be in itself: beyond some levels it is shown by its address."""

    level = 0

    def text(self):
        tag, payload = plain(self.value["tag"]).rpartition("::")[2], int(self.value["payload"].address)
        raw = tdbg_torch.word(payload)
        if tag == "Tensor":
            shown = tdbg_texts.tensor_text(raw)
        elif tag == "None":
            return "IValue(None)"
        elif tag in ("Double", "Bool", "Int"):
            kind, width = {"Double": ("float64", 8), "Bool": ("bool", 1), "Int": ("int64", 8)}[tag]
            shown = tdbg_elements.text(kind, tdbg_torch.read_memory(payload, width))
        elif tag == "SymInt":
            shown = tdbg_texts.symint_text(raw)
        elif tag == "Device":
            shown = tdbg_tensors.device(tdbg_torch.read_memory(payload, 2) + b"\1")
        else:
            shown = self.object_text(tag, raw)
        return "IValue(%s %s)" % (tag, shown)

    def object_text(self, tag, target):
        """ivalue::ConstantString and detail::ListImpl have what they hold right behind the header."""
        behind = target + tdbg_torch.layout()["header"]
        if tag == "String":
            return '"%s"' % tdbg_texts.standard_string(behind)
        if tag == "GenericList" and IValuePrinter.level < MOST_LEVELS:
            return self.list_text(behind)
        return "%s at %#x" % (tdbg_torch.class_at(target) or "object", target)

    def list_text(self, vector):
        IValuePrinter.level += 1
        try:
            begin, end = tdbg_torch.word(vector), tdbg_torch.word(vector + 8)
            count = tdbg_texts.sane_count((end - begin) // self.value.type.sizeof)
            first = gdb.Value(begin).cast(self.value.type.strip_typedefs().unqualified().pointer())
            shown = [inline((first + number).dereference()) for number in range(min(count, MOST_SHOWN))]
            return "of %d: %s" % (count, ", ".join(shown + ["…"] * (count > MOST_SHOWN)))
        finally:
            IValuePrinter.level -= 1


def inline(value):
    return " ".join(value.format_string(max_elements=16, max_depth=3).split())


def plain(value):
    return value.format_string(raw=True)


def short_type(value):
    name = str(value.type.strip_typedefs().unqualified())
    return name.partition("<")[0].rpartition("::")[2] + ("<…>" if "<" in name else "")


def where(value):
    return "" if value.address is None else " at %#x" % int(value.address)
