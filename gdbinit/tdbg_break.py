"""tdbg-break: from an operator, a Python binding, an autograd node or a C++ name to breakpoints."""

import os
import re

import gdb
import tdbg_torch
from tdbg_operators import Library, native_functions_beside, node_prefix, operators, suggestions

PYTHON_PREFIXES = ("torch", "Tensor", "F", "nn")
NODE = re.compile(r"\w+Backward\d*|AccumulateGrad|CopySlices|CopyBackwards|PyNode|GraphRoot")
MOST_NUMBERS = 12  # AddBackward0, AddBackward1, ...
KINDS = ("call", "binding", "native", "node")


class Request:
    """What was typed, and what it means."""

    def __init__(self, argument):
        words = argument.split()
        self.text = " ".join(word for word in words if not word.startswith("-"))
        flags = {word.lstrip("-") for word in words if word.startswith("-")}
        unknown = sorted(flags - {*KINDS, "all"})
        if unknown:
            raise gdb.GdbError("-%s is no option; there are -all, -call, -binding, -native, -node" % unknown[0])
        if not self.text:
            raise gdb.GdbError("tdbg-break needs a name: help tdbg-break")
        self.kinds = set(KINDS) if "all" in flags else flags

    def resolve(self, libraries):
        """[(function, why)]. GdbError with suggestions if nothing has that name."""
        head, _, last = self.text.rpartition(".")
        if head.partition(".")[0] in PYTHON_PREFIXES:
            return self.of_operation(last.strip("_") if last.startswith("__") else last, "binding", libraries)
        if NODE.fullmatch(self.text):
            return nodes(self.text, libraries)
        found = self.of_operation(self.text, "call", libraries)
        return found or of_cpp_name(self.text, libraries)

    def of_operation(self, name, default, libraries):
        """The functions of the kinds that were asked for, else of the kind that the spelling means."""
        kinds = self.kinds or {default}
        overloads = operators(name, libraries)
        base = overloads[0].name if overloads else name
        found = []
        if "call" in kinds:
            for each in overloads:
                why = "the dispatcher's entry of " + each.schema_name
                found.append(("at::_ops::%s::call" % each.unambiguous_name, why))
        if "binding" in kinds:
            found += functions("THPVariable_" + base, "what Python calls for " + base, libraries)
        if "native" in kinds:
            for each in overloads:
                found += kernels(each, libraries)
        if "node" in kinds:
            found += nodes(node_prefix(base), libraries) if overloads else []
        return list(dict(reversed(found)).items())[::-1]  # each function once, with its first reason


def kernels(operator, libraries):
    """The functions of at::native: those that the dispatch names, what structured ones consist of, and X_kernel."""
    table = next(filter(None, (native_functions_beside(library.path) for library in libraries)), None)
    names = table.kernels(operator) if table is not None else [operator.name, operator.name + "_out"]
    base = operator.name.rstrip("_")
    components = [*names, *("structured_" + name for name in names), "structured_ufunc_%s_CPU" % base, base + "_kernel"]
    found = []
    for component in components:
        ending = component + "::impl" if component.startswith("structured_") else component
        why = "a native function of " + operator.schema_name
        found += functions(ending, why, libraries, inside="at::native::")
    return found


def nodes(name, libraries):
    """`AddBackward0`, or all numbers of `AddBackward`."""
    is_numbered = not name.endswith("Backward")
    names = [name] if is_numbered else ["%s%d" % (name, number) for number in range(MOST_NUMBERS)]
    return [each for one in names for each in functions(one + "::apply", "the autograd node", libraries)]


def of_cpp_name(text, libraries):
    return functions(text, "the C++ function", libraries) if re.fullmatch(r"[\w:~() ]+", text) else []


def functions(path, why, libraries, inside=""):
    """The functions of the libraries whose qualified name is, or ends with, this."""
    path = path.replace("(anonymous namespace)::", "").strip(": ")
    component = path.rpartition("::")[2]
    searched = path.split("::")[-2] if component in ("impl", "apply") and "::" in path else component
    found = set()
    for library in libraries:
        for mangled in library.mangled(searched):
            if mangled.startswith(("_ZT", "_ZGV")) or "." in mangled:
                continue  # vtables and such; pieces that the compiler cut off
            name = qualified(demangle(mangled))
            plain = name.replace("(anonymous namespace)::", "")
            if plain.startswith(inside) and (plain == path or plain.endswith("::" + path)):
                found.add((name, why))
    return sorted(found)


def demangle(mangled):
    try:
        return gdb.execute("demangle -l c++ -- " + mangled, to_string=True).strip()
    except gdb.error:
        return mangled


def qualified(name):
    """A demangled function without its parameters."""
    end = name.rfind(")")
    depth = 0
    for at in range(end, -1, -1):
        depth += {")": 1, "(": -1}.get(name[at], 0)
        if depth == 0:
            return name[:at]
    return name


_opened = {}


def loaded():
    """The libraries of torch in which names are looked up; they are opened once."""
    found = []
    for path in (each.filename for each in gdb.objfiles()):
        if not path or not re.match(r"lib(torch_\w+|torch|c10\w*)\.so", os.path.basename(path)):
            continue
        if path not in _opened:
            try:
                _opened[path] = Library(path)
            except (OSError, ValueError) as error:
                gdb.write("tdbg: %s can't be read: %s\n" % (path, error))
                continue
        found.append(_opened[path])
    return found


def is_complete(libraries):
    """Whether all of torch is there; in an interpreter its bindings come along."""
    names = " ".join(os.path.basename(library.path) for library in libraries)
    program = os.path.basename(gdb.current_progspace().filename or "")
    return "libtorch_cpu" in names and ("libtorch_python" in names or not program.startswith("python"))


class BreakCommand(gdb.Command):
    """Stop at an operator of PyTorch, by any of its names.

    Usage: tdbg-break NAME [-call] [-binding] [-native] [-node] [-all]

    NAME is an operator (add, aten::add.Tensor, relu_), what Python calls
    (Tensor.add, torch.mm), an autograd node (AddBackward0) or a C++ function
    (whole, or its end). An operator means its entry in the dispatcher; the
    options mean the binding that Python calls, the functions in at::native,
    the nodes that compute the gradient, or all. Before torch is loaded the
    name is kept until it is.

        tdbg-break add           at::_ops::add_Tensor::call and add_Scalar
        tdbg-break mm -native    at::native::structured_mm_out_cpu::impl
        tdbg-break Tensor.relu_
        tdbg-break AddBackward0
        tdbg-break at::native::add_kernel
    """

    def __init__(self):
        super().__init__("tdbg-break", gdb.COMMAND_BREAKPOINTS)
        self.waiting = []
        gdb.events.new_objfile.connect(self.on_new_objfile)

    def invoke(self, argument, _from_tty):
        self.dont_repeat()
        request = Request(argument)
        libraries = loaded()
        if is_complete(libraries):
            self.set(request, libraries)
        else:
            self.waiting.append(request)
            gdb.write("torch is not loaded yet; %s is looked up when it is\n" % request.text)

    def on_new_objfile(self, event):
        if not self.waiting or not tdbg_torch.LIBRARIES.search(event.new_objfile.filename or ""):
            return
        libraries = loaded()
        if not is_complete(libraries):
            return
        waiting, self.waiting = self.waiting, []
        for request in waiting:
            try:
                self.set(request, libraries)
            except gdb.GdbError as error:
                gdb.write("tdbg-break %s: %s\n" % (request.text, error))

    def set(self, request, libraries):
        found = request.resolve(libraries)
        if not found and is_known_to_gdb(request.text):
            gdb.Breakpoint(request.text)
            return
        if not found:
            raise gdb.GdbError(unknown(request, libraries))
        for function, why in found:
            place = gdb.Breakpoint(function=function, qualified=True)
            disable_jump_tables(place)
            gdb.write("    %s: %s\n" % (function, why))
        if request.kinds - {"call"} and is_stripped(libraries):
            gdb.write("note: %s\n" % STRIPPED)


STRIPPED = "torch's libraries are stripped: bindings and other static functions have no names there"


def is_stripped(libraries):
    return any(library.is_stripped for library in libraries if "libtorch_" in library.path)


def is_known_to_gdb(text):
    """Whether gdb itself finds a function or line outside of torch: of an extension, or of the program."""
    try:
        return bool(gdb.decode_line(text)[1])
    except (gdb.error, RuntimeError):
        return False


def disable_jump_tables(place):
    """gdb 13 stops in the .plt of every library that calls a function too: at each call once more."""
    for location in getattr(place, "locations", ()):
        if "@plt" in gdb.execute("info symbol %#x" % location.address, to_string=True):
            location.enabled = False


def unknown(request, libraries):
    """Why there is no such function, and what is called like it."""
    message = "no function of torch is called %s" % request.text
    close = suggestions(request.text.rpartition(".")[2], libraries)
    if close:
        message += "; did you mean %s?" % ", ".join(close)
    return message + (" (%s)" % STRIPPED if is_stripped(libraries) else "")


def register():
    """Add the command to gdb."""
    BreakCommand()
