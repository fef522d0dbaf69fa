"""Values for people, inside gdb: arguments and locals of a frame.

Memory is read, nothing is called in the process. Any of it can be garbage: every read is capped, and every
value that can't be read says so.
"""

import gdb
import tdbg_tensors
from tdbg_tensors import TensorReader

MOST_VARIABLES = 40
LONGEST = 300  # characters of one value
TENSOR_TYPES = ("at::Tensor", "at::TensorBase", "torch::Tensor")
ERRORS = (gdb.error, gdb.MemoryError, RuntimeError, OverflowError, ValueError, tdbg_tensors.Garbage)


def variables(frame, is_late):
    """(arguments, locals) of a frame: lists of {"name", "type", "value"}, the innermost block's first."""
    arguments, local = [], []
    try:
        block = frame.block()
    except RuntimeError:
        return arguments, local
    line, seen = frame.find_sal().line, set()
    while block is not None and len(seen) < MOST_VARIABLES and not is_late():
        for symbol in block:
            if symbol.name in seen or not (symbol.is_argument or symbol.is_variable):
                continue
            seen.add(symbol.name)
            if not symbol.is_argument and symbol.line >= line > 0:
                continue  # declared on a line that has not run yet: garbage
            entry = describe(symbol, frame)
            (arguments if symbol.is_argument else local).append(entry)
        if block.function is not None:
            break
        block = block.superblock
    return arguments, local


def describe(symbol, frame):
    try:
        value = symbol.value(frame)
        text = show(value)
        kind = str(value.type)
    except ERRORS as error:
        text, kind = "<unreadable: %s>" % error, str(symbol.type)
    return {"name": symbol.name, "type": kind[:LONGEST], "value": text}


def show(value):
    """One line for any value."""
    value = dereferenced(value)
    if is_tensor(value.type):
        return tensor(value)
    text = value.format_string(max_elements=16, max_depth=2, repeat_threshold=4)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def dereferenced(value):
    if value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        return value.referenced_value()
    return value


def is_tensor(kind):
    return str(kind.strip_typedefs().unqualified()) in TENSOR_TYPES


def tensor(value):
    """One line for an at::Tensor: it has one member, an intrusive_ptr, which has one member, the pointer."""
    try:
        implementation = int.from_bytes(read_memory(int(value.address), 8), "little")
        return TensorReader(read_memory, layout()).text(implementation)
    except (*ERRORS, TypeError) as error:
        return "<unreadable tensor: %s>" % error


def read_memory(address, length):
    return bytes(gdb.selected_inferior().read_memory(address, length))


_measured = None


def use_layout(measured):
    """Byte offsets of the fields of TensorImpl and AutogradMeta, None if they were not measured in the process."""
    global _measured
    _measured = measured


def layout():
    """The measured layout, else the one that debug information tells, else none."""
    if _measured is None:
        use_layout(layout_of_debug_information())
    return _measured


FIELDS = {
    "c10::TensorImpl": {
        "sizes": "sizes_and_strides_",
        "dtype": "data_type_",
        "device": "device_opt_",
        "keys": "key_set_",
        "autograd_meta": "autograd_meta_",
    },
    "torch::autograd::AutogradMeta": {"requires_grad": "requires_grad_", "grad_fn": "grad_fn_"},
}


def layout_of_debug_information():
    """The same offsets, as a build of PyTorch with debug information describes them; empty if it does not."""
    found = {}
    for name, fields in FIELDS.items():
        try:
            members = [field for field in gdb.lookup_type(name).fields() if hasattr(field, "bitpos")]  # no static ones
            places = {field.name: field.bitpos // 8 for field in members}
            found.update({key: places[field] for key, field in fields.items()})
        except (gdb.error, KeyError, AttributeError):
            return {}  # not there, or only declared
    return found
