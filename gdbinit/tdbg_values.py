"""Values for people, inside gdb: arguments and locals of a frame, tensors in one line.

Memory is read, nothing is called in the process. Any of it can be garbage: every read is capped, and every
value that can't be read says so.
"""

import gdb

MOST_VARIABLES = 40
MOST_DIMENSIONS = 16
LONGEST = 300  # characters of one value

# c10/core/ScalarType.h: the order of AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS
SCALAR_TYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 "
    "bfloat16"
).split()
DEVICES = {0: "cpu", 1: "cuda", 2: "mkldnn", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 14: "meta"}  # c10/core/DeviceType.h
TENSOR_TYPES = ("at::Tensor", "at::TensorBase", "torch::Tensor")


def variables(frame):
    """(arguments, locals) of a frame: lists of {"name", "type", "value"}, the innermost block's first."""
    arguments, local = [], []
    try:
        block = frame.block()
    except RuntimeError:
        return arguments, local
    seen = set()
    while block is not None and len(seen) < MOST_VARIABLES:
        for symbol in block:
            if symbol.name in seen or not (symbol.is_argument or symbol.is_variable):
                continue
            seen.add(symbol.name)
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
    except (gdb.error, gdb.MemoryError, RuntimeError, OverflowError, ValueError) as error:
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
    """`Tensor(shape=[4, 4], dtype=float32, device=cpu, requires_grad=False)`."""
    try:
        return "Tensor(%s)" % ", ".join("%s=%s" % fact for fact in tensor_facts(value))
    except (gdb.error, gdb.MemoryError, RuntimeError, OverflowError, ValueError) as error:
        return "<unreadable tensor: %s>" % error


def tensor_facts(value):
    pointer = value["impl_"]["target_"]
    address = int(pointer)
    if address == 0:
        yield "undefined", True
        return
    implementation = pointer.dereference()
    shape = sizes(implementation["sizes_and_strides_"])
    yield "shape", shape
    kind = int(implementation["data_type_"]["index_"])
    yield "dtype", SCALAR_TYPES[kind] if kind < len(SCALAR_TYPES) else "type %d" % kind
    yield "device", device(implementation["device_opt_"])
    yield "keys", "%#x" % int(implementation["key_set_"]["repr_"])
    yield "requires_grad", requires_grad(implementation)


def sizes(sizes_and_strides):
    """c10/core/impl/SizesAndStrides.h: up to five dimensions are inline, more are on the heap, sizes first."""
    count = int(sizes_and_strides["size_"])
    if count > MOST_DIMENSIONS:
        return "<%d dimensions>" % count
    storage = sizes_and_strides["inlineStorage_"] if count <= 5 else sizes_and_strides["outOfLineStorage_"]
    return [int(storage[dimension]) for dimension in range(count)]


def device(optional):
    """std::optional<c10::Device>: its bytes are type, index, engaged."""
    raw = bytes(gdb.selected_inferior().read_memory(int(optional.address), 3))
    if not raw[2]:
        return "none"
    name = DEVICES.get(raw[0], "device type %d" % raw[0])
    return name if raw[1] == 255 else "%s:%d" % (name, raw[1])


def requires_grad(implementation):
    """AutogradMeta is an interface here: its `requires_grad_` follows what the interface's DWARF tells, if it does."""
    pointer = implementation["autograd_meta_"].address
    meta = int(pointer.cast(gdb.lookup_type("unsigned long").pointer()).dereference())
    if meta == 0:
        return False
    try:
        concrete = gdb.lookup_type("torch::autograd::AutogradMeta").pointer()
        found = gdb.Value(meta).cast(concrete).dereference()
        return bool(found["requires_grad_"]) or int(found["grad_fn_"]["_M_ptr"]) != 0
    except (gdb.error, gdb.MemoryError):
        return "unknown"
