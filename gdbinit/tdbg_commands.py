"""tdbg-tensor, tdbg-keys and tdbg-graph: what lies at an address, read from memory."""

import gdb
import tdbg_tensors
import tdbg_texts
import tdbg_torch
from tdbg_graph import GraphReader, StopWalk

NUMBERS = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_BOOL)
REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)


class Command(gdb.Command):
    """A command whose errors are one line, never a traceback. `lines(argument)` of a subclass yields its answer."""

    name = ""

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, _from_tty):
        if not argument.strip():
            raise gdb.GdbError("%s needs an argument: help %s" % (self.name, self.name))
        try:
            for line in self.lines(argument.strip()):
                gdb.write(line + "\n")
        except tdbg_torch.ERRORS as error:
            raise gdb.GdbError(str(error)) from None


class TensorCommand(Command):
    """Show all that is known of a tensor, without calling anything in the process.

    Usage: tdbg-tensor EXPRESSION

    EXPRESSION is an at::Tensor, or the address of a TensorImpl, of an
    at::Tensor (as `const Tensor&` is in a register), or of a Python tensor
    (PyObject*).

        tdbg-tensor self      an argument, where there is debug information
        tdbg-tensor $rsi      self of at::_ops::add_Tensor::call; $rdi is
                              where the result goes
        tdbg-tensor 0x7ffff0a1b2c0
    """

    name = "tdbg-tensor"

    def lines(self, argument):
        implementation, how = tdbg_torch.tensor_at(address_of(gdb.parse_and_eval(argument)))
        reader = tdbg_torch.reader()
        yield how
        for name, text in reader.facts(implementation):
            yield "  %-15s %s" % (name, text)
        if "end" not in reader.layout:
            yield MISSING_LAYOUT
        elif tdbg_torch.doubts():
            yield "  note: " + tdbg_torch.doubts()


class KeysCommand(Command):
    """Name the dispatch keys in a set, and the one that wins.

    Usage: tdbg-keys EXPRESSION

    EXPRESSION is the raw number, a register, a DispatchKeySet, or a tensor as
    tdbg-tensor takes it.

        tdbg-keys $rsi        in at::_ops::add_Tensor::redispatch; $rdi is
                              where the result goes
        tdbg-keys 0x9400010001
        tdbg-keys self
    """

    name = "tdbg-keys"

    def lines(self, argument):
        raw, is_of_tensor = key_set_of(gdb.parse_and_eval(argument))
        names = tdbg_torch.key_table().names(raw)
        yield "%#x  %s" % (raw, ", ".join(names) or "the empty set")
        winners = [name for name in names if not name.endswith("Bit")]
        if is_of_tensor:
            # Autocast is in the set of every tensor, and excluded in every thread but in its context manager.
            winners = [name for name in winners if not name.startswith("Autocast")]
        if winners:
            yield "  %s wins%s" % (winners[-1], ", unless the thread adds or excludes keys" if is_of_tensor else "")
        if tdbg_torch.doubts():
            yield "  note: " + tdbg_torch.doubts()


class GraphCommand(Command):
    """Show the graph that backward would walk from a tensor or a node.

    Usage: tdbg-graph EXPRESSION

    EXPRESSION is a tensor as tdbg-tensor takes it, a Node*, or a Python grad_fn
    (PyObject*). Each node is shown once; `input N` is the input of the node
    that an edge leads to.

        tdbg-graph result
        tdbg-graph $rsi       in torch::autograd::generated::MulBackward0::apply
    """

    name = "tdbg-graph"

    def lines(self, argument):
        layout = tdbg_torch.layout()
        if "next_edges" not in layout:
            raise gdb.GdbError(MISSING_LAYOUT.strip())
        reader = GraphReader(tdbg_torch.read_memory, layout)
        steps = reader.walk(node_of(gdb.parse_and_eval(argument)), tdbg_torch.ERRORS, is_node)
        try:
            for step in steps:
                yield "  " * step.level + self.line(reader, step)
        except StopWalk as cut:
            yield "… " + str(cut)

    def line(self, reader, step):
        node = step.edge.node
        if not node:
            return "no gradient needed"
        name = tdbg_torch.class_at(node)
        if name is None:
            return "<no node at %#x: freed, or never made>" % node
        text = "%s at %#x" % (tdbg_texts.short_name(name), node)
        if step.edge.input_number:
            text += ", input %d" % step.edge.input_number
        if name.endswith("::AccumulateGrad"):
            text += "  %s" % guarded(tdbg_texts.tensor_text, reader.variable(node))
        return text + ("  (shown above)" if step.is_again else "")


MISSING_LAYOUT = (
    "  where the fields lie is not known: no debug information, and no torch/version.py beside the loaded libraries"
)


def guarded(describe, address):
    """A description, or why there is none."""
    try:
        return describe(address)
    except tdbg_torch.ERRORS as error:
        return "<unreadable: %s>" % error


def address_of(value):
    """The address that an expression means: a number's or pointer's value, else where the object is."""
    kind = value.type.strip_typedefs()
    if kind.code in REFERENCES:
        return int(value.referenced_value().address)
    if kind.code in NUMBERS or kind.code == gdb.TYPE_CODE_PTR:
        return int(value) & (1 << 64) - 1
    if value.address is None:
        raise gdb.GdbError("this value is not in memory: give an address")
    return int(value.address)


def key_set_of(value):
    """(raw key set, whether it is a tensor's own) of a number, of a DispatchKeySet, or of a tensor."""
    kind = value.type.strip_typedefs()
    if kind.code in REFERENCES:
        return key_set_of(value.referenced_value())
    if kind.unqualified().name == "c10::DispatchKeySet":
        return int(value["repr_"]), False
    address = address_of(value)
    if kind.code in NUMBERS and not is_pointer_to_tensor(address):
        return address, False
    return keys_of_tensor(address), True


def is_pointer_to_tensor(number):
    try:
        return number != 0 and bool(tdbg_torch.tensor_at(number))
    except tdbg_torch.ERRORS:
        return False


def keys_of_tensor(address):
    implementation, _ = tdbg_torch.tensor_at(address)
    place = tdbg_torch.layout().get("keys")
    if place is None:
        raise tdbg_tensors.Garbage(MISSING_LAYOUT.strip())
    return tdbg_torch.word(implementation + place)


def node_of(value):
    """The address of a Node: of the one given, of a Python grad_fn, or the grad_fn of a tensor."""
    address = address_of(value)
    # A pointer to it may be at the address, or behind the header of a Python object (THPCppFunction).
    for candidate in (address, *(guarded_word(address + offset) for offset in (0, 16, 32))):
        if candidate and is_node(candidate):
            return candidate
    implementation, how = tdbg_torch.tensor_at(address)
    node = tdbg_torch.reader().grad_fn(implementation) if implementation else 0
    if not node:
        raise gdb.GdbError("%s has no grad_fn: it is a leaf, or does not require grad" % how)
    return node


def guarded_word(address):
    """What an intrusive_ptr or shared_ptr at an address points to, 0 if there is no memory."""
    try:
        return tdbg_torch.word(address)
    except tdbg_torch.ERRORS:
        return 0


def is_node(address):
    """Whether an object of a class of autograd nodes is there."""
    name = tdbg_torch.class_at(address)
    return name is not None and not tdbg_torch.TENSOR_CLASS.search(name) and is_node_class(name)


def is_node_class(name):
    """Generated nodes, those of torch itself, and extensions' CppNode<T>; none of the other virtual classes."""
    last = name.partition("<")[0].rpartition("::")[2]
    return name.startswith("torch::autograd::") and not last.endswith(("Meta", "Hook", "Interface", "Hooks"))


def register():
    """Add the commands to gdb."""
    for command in (TensorCommand, KeysCommand, GraphCommand):
        command()
