"""Which printer gdb uses for which of PyTorch's types."""

import re

import gdb
from tdbg_printer_classes import (
    ERRORS,
    ArrayRefPrinter,
    DevicePrinter,
    DispatchKeySetPrinter,
    EdgePrinter,
    IntrusivePointerPrinter,
    IValuePrinter,
    LayoutPrinter,
    NodePrinter,
    OperatorHandlePrinter,
    OperatorNamePrinter,
    OptionalArrayRefPrinter,
    OptionalPrinter,
    PointerPrinter,
    ScalarPrinter,
    ScalarTypePrinter,
    SmallVectorPrinter,
    StorageImplPrinter,
    StoragePrinter,
    SymIntPrinter,
    TensorImplPrinter,
    TensorPrinter,
)

# Full name of the type, without template arguments -> printer.
PRINTERS = {
    "at::Tensor": TensorPrinter,
    "at::TensorBase": TensorPrinter,
    "c10::Storage": StoragePrinter,
    "c10::StorageImpl": StorageImplPrinter,
    "c10::intrusive_ptr": IntrusivePointerPrinter,
    "c10::SmallVector": SmallVectorPrinter,
    "c10::ArrayRef": ArrayRefPrinter,
    "c10::HeaderOnlyArrayRef": ArrayRefPrinter,
    "c10::optional": OptionalPrinter,
    "std::optional": OptionalPrinter,
    "c10::OptionalArrayRef": OptionalArrayRefPrinter,
    "c10::ScalarType": ScalarTypePrinter,
    "c10::Layout": LayoutPrinter,
    "c10::Device": DevicePrinter,
    "c10::DispatchKeySet": DispatchKeySetPrinter,
    "c10::SymInt": SymIntPrinter,
    "c10::Scalar": ScalarPrinter,
    "c10::IValue": IValuePrinter,
    "c10::OperatorName": OperatorNamePrinter,
    "c10::OperatorHandle": OperatorHandlePrinter,
    "c10::TypedOperatorHandle": OperatorHandlePrinter,
    "torch::autograd::Node": NodePrinter,
    "torch::autograd::Edge": EdgePrinter,
}
TYPE_OF_TENSOR = re.compile(r"(?:c10|at)::\w*TensorImpl$")
NODE_CLASS = re.compile(r"torch::autograd::(?:generated::\w+Backward\d*|AccumulateGrad|CopySlices|PyNode)$")
POINTEES = ("c10::StorageImpl", "torch::autograd::Node")
REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)


def lookup(value):
    """The printer of a value, None if it is no type of PyTorch's."""
    kind = value.type.strip_typedefs()
    if kind.code in REFERENCES:
        try:
            value = value.referenced_value()
            kind = value.type.strip_typedefs()
        except ERRORS:
            return None
    if kind.code == gdb.TYPE_CODE_PTR:
        name = kind.target().strip_typedefs().unqualified().name or ""
        if name in POINTEES or TYPE_OF_TENSOR.match(name) or NODE_CLASS.match(name):
            return PointerPrinter(value)
        return None
    name = (kind.unqualified().name or "").partition("<")[0]
    printer = PRINTERS.get(name)
    if printer is None and TYPE_OF_TENSOR.match(name):
        printer = TensorImplPrinter
    if printer is None and NODE_CLASS.match(name):
        printer = NodePrinter
    return printer(value) if printer is not None else None


lookup.name = "tdbg"  # what `info pretty-printer` and `disable pretty-printer` call it
lookup.enabled = True


def register():
    """Have gdb use them; once, however often it is called."""
    others = [each for each in gdb.pretty_printers if getattr(each, "name", None) != lookup.name]
    gdb.pretty_printers[:] = [lookup, *others]
