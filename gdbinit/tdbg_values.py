"""Values for people, inside gdb: arguments and locals of a frame, tensors in one line.

Memory is read, nothing is called in the process. Any of it can be garbage: every read is capped, and every
value that can't be read says so.
"""

import gdb

MOST_VARIABLES = 40
MOST_DIMENSIONS = 16
LONGEST = 300  # characters of one value

# c10/core/ScalarType.h: the order of AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS
SCALAR_TYPES = [
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex32",
    "complex64",
    "complex128",
    "bool",
    "qint8",
    "quint8",
    "qint32",
    "bfloat16",
]
DEVICES = {
    0: "cpu",
    1: "cuda",
    2: "mkldnn",
    6: "hip",
    9: "xla",
    12: "xpu",
    13: "mps",
    14: "meta",
}  # c10/core/DeviceType.h
TENSOR_TYPES = ("at::Tensor", "at::TensorBase", "torch::Tensor")


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
    """The facts of a tensor, by the offsets that were measured in the process itself (`use_layout`)."""
    # at::Tensor has one member, an intrusive_ptr, which has one member, the pointer.
    implementation = word(int(value.address))
    if implementation in (0, undefined_tensor()):
        yield "undefined", True
        return
    if not layout:
        yield "at", "%#x" % implementation
        return
    yield "shape", sizes(implementation + layout["sizes"])
    kind = memory(implementation + layout["dtype"], 1)[0]
    yield "dtype", SCALAR_TYPES[kind] if kind < len(SCALAR_TYPES) else "type %d" % kind
    yield "device", device(memory(implementation + layout["device"], 3))
    yield "requires_grad", requires_grad(word(implementation + layout["autograd_meta"]))


layout = {}


def use_layout(measured):
    """Byte offsets of the fields of TensorImpl and AutogradMeta; None: tensors are shown by their address."""
    layout.clear()
    layout.update(measured or {})


def memory(address, length):
    return bytes(gdb.selected_inferior().read_memory(address, length))


def word(address):
    return int.from_bytes(memory(address, 8), "little")


def undefined_tensor():
    """The address of the one UndefinedTensorImpl, 0 if libc10's symbols are not read."""
    try:
        return int(gdb.parse_and_eval("(unsigned long)&'c10::UndefinedTensorImpl::_singleton'"))
    except gdb.error:
        return 0


def sizes(address):
    """c10/core/impl/SizesAndStrides.h: up to five dimensions are inline, more are on the heap, sizes first."""
    count = word(address)
    if count > MOST_DIMENSIONS:
        raise ValueError("%d dimensions" % count)
    begin = address + 8 if count <= 5 else word(address + 8)
    raw = memory(begin, 8 * count) if count else b""
    return [int.from_bytes(raw[at : at + 8], "little", signed=True) for at in range(0, len(raw), 8)]


def device(raw):
    """std::optional<c10::Device>: its bytes are type, index, engaged."""
    if raw[2] != 1:
        return "none"
    name = DEVICES.get(raw[0], "device type %d" % raw[0])
    return name if raw[1] == 255 else "%s:%d" % (name, raw[1])


def requires_grad(meta):
    """As Python's: the flag, or a grad_fn."""
    if meta == 0:
        return False
    return memory(meta + layout["requires_grad"], 1) == b"\1" or word(meta + layout["grad_fn"]) != 0
