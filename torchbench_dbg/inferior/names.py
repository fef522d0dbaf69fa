"""Names of Python code and of C functions, each written once, as a JSON line, to a memory file that the
host reads.

{"id": int, "name": str, "file": str|null, "line": int|null, "c": bool, "module": str|null}; id 0 means
'not shown' and is never written.
"""

from __future__ import annotations

import json
import os
import threading
import types
from typing import Any

OWN_DIRECTORY = os.path.dirname(os.path.abspath(__file__)) + os.sep

CodeEntry = tuple[int, dict[int, int]]
"""(`name id << 32`, or 0 for code of this directory; cache from bytecode offset to line)."""


def is_own_file(filename: str) -> bool:
    """Whether code with this co_filename belongs to the inferior side itself."""
    return filename.startswith(OWN_DIRECTORY)


class NameTable:
    """Gives ids to code objects and C functions. `codes` and `functions` are read directly by the
    recorders' fast paths.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._last = 0
        # Code objects are keyed by id(): hashing one hashes its constants, and two equal ones are
        # different functions.
        self.codes: dict[int, CodeEntry] = {}
        self.functions: dict[object, int] = {}
        # Whatever an id() above stands for is kept alive here, so that the id is not reused.
        self._kept: list[object] = []
        self._methods = MethodIndex()

    def add_code(self, code: types.CodeType, module_globals: dict[str, Any] | None) -> CodeEntry:
        """The entry of a code object, made if it is new."""
        with self._lock:
            known = self.codes.get(id(code))
            if known is not None:
                return known
            entry: CodeEntry = (0, {})
            if not is_own_file(code.co_filename):
                module = (module_globals or {}).get("__name__")
                name = getattr(code, "co_qualname", None) or self._methods.qualified_name(code, module_globals)
                entry = (self._write(name, code.co_filename, code.co_firstlineno, module) << 32, {})
            self._kept.append(code)
            self.codes[id(code)] = entry
            return entry

    def calling_line(self, frame: types.FrameType) -> int:
        """The line at which a Python frame was called by another; 0 if that is not known or our own."""
        caller = frame.f_back
        if caller is None:
            return 0
        entry = self.codes.get(id(caller.f_code)) or self.add_code(caller.f_code, caller.f_globals)
        return (caller.f_lineno or 0) if entry[0] else 0

    def add_function(self, key: object, function: Any, owner: object, kept: object) -> int:
        """`name id << 32` of a C function that `functions` does not know under `key` yet; `kept` is what
        the key's id() stands for.
        """
        with self._lock:
            known = self.functions.get(key)
            if known is not None:
                return known
            name, module = c_function_name(function, owner)
            word = self._write(name, None, None, module) << 32
            self._kept.append(kept)
            self.functions[key] = word
            return word

    def function_word(self, function: Any) -> int:
        """`name id << 32` of a callable written in C, 0 for one that is not shown (a Python function, a
        class, an object with __call__).

        Bound methods are new objects at every call: they are known by the type of their object and their
        name, never kept, as that would keep the object.
        """
        kind = type(function)
        if kind is types.BuiltinFunctionType:
            owner = function.__self__
            holder = owner if owner is None or _is_holder(owner) else type(owner)
            key: object = (id(holder), function.__name__)
            return self.functions.get(key) or self.add_function(key, function, owner, holder)
        if kind is types.MethodDescriptorType:
            key = id(function)
            return self.functions.get(key) or self.add_function(key, function, None, function)
        if kind is types.MethodType and type(function.__func__) is types.BuiltinFunctionType:
            # pybind11's methods: a Python method object around a C function.
            inner, holder = function.__func__, type(function.__self__)
            key = (id(holder), id(inner))
            return self.functions.get(key) or self.add_function(key, inner, function.__self__, (holder, inner))
        return 0

    def _write(self, name: str, file: str | None, line: int | None, module: object) -> int:
        self._last += 1
        record = {
            "id": self._last,
            "name": name,
            "file": file,
            "line": line,
            "c": file is None,
            "module": module if isinstance(module, str) else None,
        }
        os.write(self._descriptor, json.dumps(record).encode("ascii") + b"\n")
        return self._last


def _is_holder(value: object) -> bool:
    """Whether a C function is bound to this object because it belongs there (module, class, pybind11's
    record), not as a method of it.
    """
    # Not isinstance(): it would ask the object for __class__, which may be the user's code.
    kind = type(value)
    return kind is types.ModuleType or issubclass(kind, type) or _is_pybind_record(kind)


def _is_pybind_record(kind: type) -> bool:
    # A capsule up to pybind11 2.x, a class named for the ABI since.
    name: str = type.__getattribute__(kind, "__name__")
    return name == "PyCapsule" or name.startswith("pybind11_detail_function_record")


def c_function_name(function: Any, owner: object) -> tuple[str, str | None]:
    """(qualified name, module) of a C function; `owner` is what it is bound to, if anything. Never raises."""
    try:
        return _c_function_name(function, owner)
    except Exception:
        return f"<unnamed {type(function).__name__}>", None


def _c_function_name(function: Any, owner: object) -> tuple[str, str | None]:
    name = str(function.__name__)
    if type(function) is types.MethodDescriptorType:
        return _member(function.__objclass__, name)
    if owner is None or type(owner) is types.ModuleType or _is_pybind_record(type(owner)):
        module = (
            types.ModuleType.__getattribute__(owner, "__name__")
            if type(owner) is types.ModuleType
            else function.__module__
        )
        return (name if module in (None, "builtins") else f"{module}.{name}"), module
    if issubclass(type(owner), type):
        return _member(owner, name)
    return _member(_defining_class(type(owner), name), name)


def _member(owner: Any, name: str) -> tuple[str, str | None]:
    # Past a metaclass of the user's, which must not notice.
    module, qualified = (
        str(type.__getattribute__(owner, "__module__")),
        type.__getattribute__(owner, "__qualname__"),
    )
    prefix = qualified if module == "builtins" else f"{module}.{qualified}"
    return f"{prefix}.{name}", module


def _defining_class(kind: type, name: str) -> type:
    """The class in which a method written in C is defined: torch._C.TensorBase for most methods of a
    Tensor.
    """
    for candidate in type.mro(kind):
        if type(type.__getattribute__(candidate, "__dict__").get(name)) in (
            types.MethodDescriptorType,
            types.ClassMethodDescriptorType,
        ):
            return candidate
    return kind


class MethodIndex:
    """Qualified names for Python 3.9 and 3.10, whose code objects know only their last name: found by
    looking through the code's module once.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._modules: dict[int, object] = {}

    def qualified_name(self, code: types.CodeType, module_globals: dict[str, Any] | None) -> str:
        """`Class.method` where a module or one of its classes holds the function, the bare name
        otherwise (local functions).
        """
        if module_globals is not None and id(module_globals) not in self._modules:
            self._modules[id(module_globals)] = module_globals
            for value in list(module_globals.values()):
                self._index(value, module_globals.get("__name__"), 3)
        return self._names.get(id(code), code.co_name)

    def _index(self, value: object, module: object, depth: int) -> None:
        if type(value) in (staticmethod, classmethod):
            value = value.__func__  # type: ignore[attr-defined]
        if type(value) is types.FunctionType:
            for _ in range(8):
                self._names.setdefault(id(value.__code__), value.__qualname__)
                value = value.__dict__.get("__wrapped__")
                if type(value) is not types.FunctionType:
                    return
        elif type(value) is property:
            for accessor in (value.fget, value.fset, value.fdel):
                self._index(accessor, module, depth)
        elif (
            depth
            and issubclass(type(value), type)
            and type.__getattribute__(value, "__dict__").get("__module__") == module
        ):
            for member in list(type.__getattribute__(value, "__dict__").values()):
                self._index(member, module, depth - 1)
