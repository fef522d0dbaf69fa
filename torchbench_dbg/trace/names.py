"""Names of C++ functions: demangled, and shortened for people."""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache
from typing import Any

_CLONE = re.compile(r"\.(?:cold|isra|constprop|part|localalias|lto_priv|llvm|_omp_fn)[.\w]*$")


@lru_cache(maxsize=1)
def _demangler() -> Any:
    for library in ("libstdc++.so.6", "libc++abi.so.1"):
        try:
            function = ctypes.CDLL(library).__cxa_demangle
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        return function
    return None


@lru_cache(maxsize=1)
def _free() -> Any:
    function = ctypes.CDLL(None).free
    function.argtypes = [ctypes.c_void_p]
    return function


@lru_cache(maxsize=1 << 17)
def demangle(symbol: str) -> str:
    """The C++ name of a mangled one; suffixes of compiler clones (`.isra.0`) are dropped.

    What is no mangled name, or can't be demangled here (no C++ runtime), comes back as it is.
    """
    plain = _CLONE.sub("", symbol)
    function = _demangler()
    if function is None or not plain.startswith("_Z"):
        return plain
    status = ctypes.c_int()
    result = function(plain.encode(), None, None, ctypes.byref(status))
    if not result:
        return plain
    try:
        return ctypes.string_at(result).decode("utf-8", "replace")
    finally:
        _free()(result)


_OPERATOR = re.compile(
    r"operator\s*(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|<=?|>=?|[-+*/%^&|~!=,]+|new(?:\[\])?|delete(?:\[\])?)"
)
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}


def _matching(text: str, start: int) -> int:
    """Index of the bracket that closes the one at `start`; the last index if none does.

    `->`, `operator<` and the like are no brackets.
    """
    depth: list[str] = []
    position = start
    while position < len(text):
        if operator := _OPERATOR.match(text, position):
            position = operator.end()
            continue
        character = text[position]
        if character in _CLOSING:
            depth.append(_CLOSING[character])
        elif depth and character == depth[-1]:
            depth.pop()
            if not depth:
                return position
        position += 1
    return len(text) - 1


def _skeleton(name: str, *, template: str) -> str:
    """The name with template arguments replaced by `template`, without parameters and qualifiers after them."""
    out: list[str] = []
    position = 0
    while position < len(name):
        if operator := _OPERATOR.match(name, position):
            out.append(operator.group().replace(" ", ""))
            position = operator.end()
            continue
        character = name[position]
        if character == "<":
            position = _matching(name, position) + 1
            out.append(template)
        elif name.startswith("(anonymous namespace)", position):
            position += len("(anonymous namespace)")
            out.append("(anonymous namespace)")
        elif name.startswith("{lambda(", position):
            end = _matching(name, position)
            out.append("{lambda" + name[_matching(name, position + len("{lambda")) + 1 : end] + "}")
            position = end + 1
        elif character == "(":
            position = _matching(name, position) + 1
            # What follows a parameter list is a local name (`f(int)::{lambda}`), or qualifiers that end the name.
            if not name.startswith("::", _skip_qualifiers(name, position)):
                break
            position = _skip_qualifiers(name, position)
        else:
            out.append(character)
            position += 1
    return "".join(out)


def _skip_qualifiers(name: str, position: int) -> int:
    match = re.compile(r"(?:\s*(?:const|volatile|&&?|\[[^\]]*\]))*").match(name, position)
    return match.end() if match else position


def _without_return_type(skeleton: str) -> str:
    """Templates carry their return type before the name; a name itself has a space only in `operator bool`."""
    head = skeleton.partition("operator")[0].replace("(anonymous namespace)", "(anonymous\0namespace)")
    cut = head.rfind(" ")
    return (
        skeleton[cut + 1 :]
        if cut >= 0 and not skeleton.startswith(("non-virtual thunk", "virtual thunk"))
        else skeleton
    )


@lru_cache(maxsize=1 << 16)
def qualified(name: str) -> str:
    """The full name of a demangled function, without return type, parameters and template arguments."""
    return _without_return_type(_skeleton(name, template=""))


def base_name(name: str) -> str:
    """The last component of a demangled name: `add_kernel`."""
    return qualified(name).rpartition("::")[2]


_FUNCTOR = re.compile(r"callback_fn<")
_POINTED = re.compile(r"<&\s*(?:\([^()]*\)::|[\w:])*?(\w+)\s*>")


@lru_cache(maxsize=1 << 16)
def shorten(name: str) -> str:
    """A demangled name for people: `<…>` for template arguments, no parameters, no anonymous namespaces.

    What a wrapper template wraps is kept, because it is what matters: `TypeError_to_NotImplemented_<THPVariable_add>`,
    `function_ref::callback_fn<AVX2::VectorizedLoop2d>`.
    """
    short = _without_return_type(_skeleton(name, template="<…>")).replace("(anonymous namespace)::", "")
    if short.endswith("<…>") and (argument := _wrapped(name)):
        short = f"{short[:-3]}<{argument}>"
    elif re.search("wrap_kernel_functor_unboxed_|make_boxed_from_unboxed_functor", short):
        short = short.replace("<…>", f"<{_wrapped(name) or '…'}>", 1)
    return short.replace("c10::function_ref<…>::", "function_ref::")


def _wrapped(name: str) -> str | None:
    """The function or functor that a name's template arguments wrap."""
    if functor := _FUNCTOR.search(name):
        inner = name[functor.end() : _matching(name, functor.end() - 1)]
        inner = qualified(inner.strip()).replace("(anonymous namespace)::", "")
        return inner.replace("at::native::", "") or None
    if "&" in name and (pointed := re.search(r"[<,]\s*&?\(?&([\w:]|\(anonymous namespace\))+", name)):
        return pointed.group().rpartition("::")[2].lstrip("<,& (") or None
    return None
