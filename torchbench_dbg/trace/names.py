"""Names of C++ functions: demangled, and shortened for people."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_CLONE = re.compile(r"\.(?:cold|isra|constprop|part|localalias|lto_priv|llvm|resolver|warm|_omp_fn)[.\w]*$")


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
    result = function(plain.encode("utf-8", "replace"), None, None, ctypes.byref(status))
    if not result:
        return plain
    try:
        return ctypes.string_at(result).decode("utf-8", "replace")
    finally:
        _free()(result)


# An operator's own brackets, and the arrow in `decltype (x->y)`, are no brackets of the name.
_OPERATOR = r"(?<![\w$])operator(?![\w$])(?:\s*(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|<=?|>=?|[-+*/%^&|~!=,]+))?"
_BRACKET = re.compile(rf"{_OPERATOR}|->|[][<>(){{}}]")
_PIECE = re.compile(
    rf"(?P<operator>{_OPERATOR})|(?P<anonymous>\(anonymous namespace\))|(?P<decltype>\bdecltype\s*(?=\())"
    r"|(?P<tag>\[(?:abi:|clone )[^]]*\])|[<({[]"
)
_QUALIFIERS = re.compile(r"(?:\s*(?:const|volatile|&&?|\[[^]]*\]))*")
_FUNCTION_POINTER = re.compile(r"(?:[\w:]+::)?[*&]+\s*(?:const\s+)?")
_THUNK = re.compile(r"(?:(?:non-virtual|virtual|covariant return) thunk to|TLS (?:init|wrapper) function for) ")
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Skeleton:
    """A name whose template arguments are folded, and the arguments that were folded, in their order."""

    text: str
    arguments: list[str]


def _matching(text: str, start: int) -> int:
    """Index of the bracket that closes the one at `start`; the last index if none does.

    A closing `)`, `]` or `}` also closes what is open inside of it: in `((sizeof (T))<(8))`, `<` is no bracket.
    """
    expected: list[str] = []
    for token in _BRACKET.finditer(text, start):
        bracket = token.group()
        if bracket in _CLOSING:
            expected.append(_CLOSING[bracket])
        elif bracket == expected[-1] or (bracket != ">" and bracket in expected):
            while expected.pop() != bracket:
                pass
            if not expected:
                return token.start()
    return len(text) - 1


def _skeleton(name: str, *, template: str) -> _Skeleton:
    """The name with template arguments replaced by `template`, without return type, parameters and qualifiers."""
    thunk = _THUNK.match(name)
    position = thunk.end() if thunk else 0
    out: list[str] = []
    arguments: list[str] = []
    in_operator = False
    while piece := _PIECE.search(name, position):
        _add(out, name[position : piece.start()], in_operator=in_operator)
        start, position = piece.span()
        if piece["operator"]:
            out.append(re.sub(r"\s", "", piece.group()))
            in_operator = True
        elif piece["anonymous"]:
            out.append(piece.group())
        elif piece["decltype"]:
            position = _matching(name, position) + 1
        elif piece.group() == "<":
            position = _matching(name, start) + 1
            arguments.append(name[start + 1 : position - 1])
            out.append(template)
        elif piece.group() == "(":
            position = _matching(name, start) + 1
            if not any(out) and (pointer := _FUNCTION_POINTER.match(name, start + 1)):
                return _skeleton(name[pointer.end() : position - 1], template=template)
            # What follows a parameter list is a local name (`f(int)::{lambda}`), or qualifiers that end the name.
            qualifiers = _QUALIFIERS.match(name, position)
            position = qualifiers.end() if qualifiers else position
            if not name.startswith("::", position):
                break
        elif not piece["tag"]:
            position = _matching(name, start) + 1
            out.append(_local(name[start:position]))
    else:
        _add(out, name[position:], in_operator=in_operator)
    text = "".join(out).strip()
    return _Skeleton(text=f"{thunk.group() if thunk else ''}{text}" if text else name, arguments=arguments)


def _add(out: list[str], text: str, *, in_operator: bool) -> None:
    """Add plain text. What comes before a space is a template's return type; only `operator bool` has a space."""
    if " " in text and not in_operator:
        out.clear()
        text = text.rpartition(" ")[2]
    out.append(text)


def _local(text: str) -> str:
    """`{lambda#1}` of `{lambda(int, float)#1}`; others (`{unnamed type#1}`, `[3]`) as they are."""
    return "{lambda" + text[text.rindex("#") :] if text.startswith("{lambda") and "#" in text else text


@lru_cache(maxsize=1 << 16)
def qualified(name: str) -> str:
    """The full name of a demangled function, without return type, parameters and template arguments."""
    return _skeleton(name, template="").text


def base_name(name: str) -> str:
    """The last component of a demangled name: `add_kernel`."""
    return qualified(name).rpartition("::")[2]


_ANONYMOUS = "(anonymous namespace)::"
_FOLDED = "<…>"
_ADDRESS = re.compile(r"(?:^|[<,(])\s*&(?P<name>(?:\(anonymous namespace\)|\w+|::)+)?")


@lru_cache(maxsize=1 << 16)
def shorten(name: str) -> str:
    """A demangled name for people: `<…>` for template arguments, no parameters, no anonymous namespaces.

    What a wrapper template wraps is kept, because it is what matters: `TypeError_to_NotImplemented_<THPVariable_add>`,
    `function_ref::callback_fn<AVX2::VectorizedLoop2d>`.
    """
    skeleton = _skeleton(name, template=_FOLDED)
    short = skeleton.text.replace(_ANONYMOUS, "")
    if short.endswith(f"callback_fn{_FOLDED}"):
        functor = qualified(skeleton.arguments[-1].strip()).replace(_ANONYMOUS, "").replace("at::native::", "")
        short = f"{short[: -len(_FOLDED)]}<{functor or '…'}>"
    elif short.endswith(_FOLDED) and skeleton.arguments and (wrapped := _wrapped(skeleton.arguments[-1])):
        short = f"{short[: -len(_FOLDED)]}<{wrapped}>"
    elif re.search("wrap_kernel_functor_unboxed_|make_boxed_from_unboxed_functor", short):
        wrapped = next(filter(None, map(_wrapped, skeleton.arguments)), None)
        short = short.replace(_FOLDED, f"<{wrapped or '…'}>", 1)
    return short.replace(f"c10::function_ref{_FOLDED}::", "function_ref::")


def _wrapped(arguments: str) -> str | None:
    """The last component of the first function whose address is among template arguments."""
    address = _ADDRESS.search(arguments)
    if not address:
        return None
    # A template or an overloaded function is written with its types: `&(at::Tensor at::f<true>(at::Tensor))`.
    end = _matching(arguments, address.end()) if arguments.startswith("(", address.end()) else address.end()
    name = address["name"] or qualified(arguments[address.end() + 1 : end])
    return name.replace("(anonymous namespace)", "").rpartition("::")[2] or None
