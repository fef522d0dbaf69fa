"""Values for people, inside gdb: arguments and locals of a frame.

Memory is read, nothing is called in the process. Any of it can be garbage: every read is capped, and every
value that can't be read says so.
"""

import gdb
from tdbg_torch import ERRORS

MOST_VARIABLES = 40
LONGEST = 300  # characters of one value


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
    """One line for any value; tdbg_printers has those of PyTorch's types."""
    text = dereferenced(value).format_string(max_elements=16, max_depth=2, repeat_threshold=4)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def dereferenced(value):
    if value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        return value.referenced_value()
    return value
