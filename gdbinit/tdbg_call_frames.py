"""Finds the caller of a frame by running its function's table of call frame instructions.

Sources: DWARF 5, 6.4 (call frame instructions) and 2.5 (expressions); System V psABI for x86-64, 3.6.2 (register
numbers, callee-saved registers). Nothing here imports gdb.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Union

from tdbg_unwind_tables import MASK, Function, Read, Reader, Unsupported

Registers = dict  # DWARF register number -> value


class Machine(NamedTuple):
    """What unwinding needs to know of a processor (psABI: DWARF register numbers, callee-saved registers)."""

    names: dict
    stack_pointer: int
    return_address: int
    saved: frozenset


X86_64 = Machine(
    names=dict(enumerate("rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split())),
    stack_pointer=7,
    return_address=16,
    saved=frozenset({3, 6, 12, 13, 14, 15}),
)
MACHINES = {"i386:x86-64": X86_64}  # by gdb's name of the architecture


class Caller(NamedTuple):
    """The calling frame: the canonical frame address, the registers that are known, and the function left."""

    frame_address: int
    registers: Registers
    function: int  # where the function that is left begins


Rule = tuple  # (kind, operand)


class Row:
    """The rules that hold at one address: how to find the frame address, and where registers were saved."""

    def __init__(self) -> None:
        self.frame: tuple[int, int] | bytes = (0, 0)  # register and offset, or an expression
        self.rules: dict[int, Rule] = {}

    def copy(self) -> Row:
        other = Row()
        other.frame, other.rules = self.frame, dict(self.rules)
        return other


def row_at(function: Function, pc: int) -> Row:
    """Run the table's instructions up to `pc`."""
    row = Row()
    _run(function, function.initial, row, None, pc)
    return _run(function, function.instructions, row, row.copy(), pc)


def _run(function: Function, program: bytes, row: Row, initial: Row | None, pc: int) -> Row:
    place, remembered, code = function.begin, [], Reader(program, 0)
    while code.more():
        opcode = code.number("B")
        primary, low = opcode & 0xC0, opcode & 0x3F
        advance = _advance(primary, low, opcode, code)
        if advance is not None:
            place += advance * function.code_factor
            if place > pc:
                break
        elif opcode == 0x0A:  # remember_state
            remembered.append(row.copy())
        elif opcode == 0x0B:  # restore_state
            if not remembered:
                raise Unsupported("restores a state that was not remembered")
            row = remembered.pop()
        elif primary == 0xC0 or opcode == 0x06:  # restore, restore_extended
            register = low if primary else code.uleb()
            rule = initial.rules.get(register) if initial else None
            row.rules.pop(register, None)
            if rule is not None:
                row.rules[register] = rule
        else:
            _define(function, opcode, code, row)
    return row


def _advance(primary: int, low: int, opcode: int, code: Reader) -> int | None:
    if primary == 0x40:
        return low
    form = {0x02: "B", 0x03: "H", 0x04: "I"}.get(opcode)
    return code.number(form) if form else None


def _define(function: Function, opcode: int, code: Reader, row: Row) -> None:
    """The instructions that set the frame's rule (0c to 0f, 12, 13) or a register's."""
    factor = function.data_factor
    if opcode & 0xC0 == 0x80:
        row.rules[opcode & 0x3F] = ("at", code.uleb() * factor)
    elif opcode == 0x00:
        pass
    elif opcode == 0x2E:  # GNU_args_size
        code.uleb()
    elif opcode in (0x0C, 0x12):
        register = code.uleb()
        row.frame = (register, code.uleb() if opcode == 0x0C else code.sleb() * factor)
    elif opcode == 0x0F:
        row.frame = code.take(code.uleb())
    elif opcode in (0x0D, 0x0E, 0x13):
        if isinstance(row.frame, bytes):
            raise Unsupported("changes an expression")
        register, offset = row.frame
        if opcode == 0x0D:
            row.frame = (code.uleb(), offset)
        else:
            row.frame = (register, code.uleb() if opcode == 0x0E else code.sleb() * factor)
    else:
        register = code.uleb()
        row.rules[register] = _rule(opcode, code, factor)


def _rule(opcode: int, code: Reader, factor: int) -> Rule:
    if opcode == 0x05:
        return ("at", code.uleb() * factor)
    if opcode == 0x11:
        return ("at", code.sleb() * factor)
    if opcode == 0x14:
        return ("is", code.uleb() * factor)
    if opcode == 0x15:
        return ("is", code.sleb() * factor)
    if opcode == 0x07:
        return ("undefined", None)
    if opcode == 0x08:
        return ("same", None)
    if opcode == 0x09:
        return ("register", code.uleb())
    if opcode in (0x10, 0x16):
        return ("at expression" if opcode == 0x10 else "is expression", code.take(code.uleb()))
    raise Unsupported("instruction %#x" % opcode)


def caller(function: Function, pc: int, registers: Registers, read: Read, machine: Machine) -> Caller | None:
    """The frame that called; None at the end of the stack. `pc`: the address whose rules hold, for a frame that
    has called another one an address inside its call instruction.
    """
    row = row_at(function, pc)
    if isinstance(row.frame, bytes):
        address = evaluate(row.frame, registers, read)
    else:
        address = (registers[row.frame[0]] + row.frame[1]) & MASK
    found = {number: registers[number] for number in machine.saved if number in registers}
    found[machine.stack_pointer] = address
    for number, (kind, operand) in row.rules.items():
        value = _restored(kind, operand, number, address, registers, read)
        if value is None:
            found.pop(number, None)
        else:
            found[number] = value
    back = found.pop(function.return_address, None)
    if not back:
        return None
    found[machine.return_address] = back
    return Caller(address, found, function.begin)


def _restored(kind: str, operand: Any, number: int, frame: int, registers: Registers, read: Read) -> int | None:
    if kind == "at":
        return word(read, frame + operand)
    if kind == "is":
        return (frame + operand) & MASK
    if kind == "same":
        return registers.get(number)
    if kind == "register":
        return registers.get(operand)
    if kind == "at expression":
        return word(read, evaluate(operand, registers, read, frame))
    if kind == "is expression":
        return evaluate(operand, registers, read, frame)
    return None


def word(read: Read, address: int) -> int:
    return int.from_bytes(read(address & MASK, 8), "little")


CONSTANTS = {0x08: "B", 0x09: "b", 0x0A: "H", 0x0B: "h", 0x0C: "I", 0x0D: "i", 0x0E: "Q", 0x0F: "q"}
OPERATIONS: dict[int, Callable[[int, int], Union[int, bool]]] = {
    0x1A: lambda left, right: left & right,
    0x1C: lambda left, right: left - right,
    0x1E: lambda left, right: left * right,
    0x21: lambda left, right: left | right,
    0x22: lambda left, right: left + right,
    0x24: lambda left, right: left << min(right, 64),
    0x25: lambda left, right: left >> min(right, 64),
    0x29: lambda left, right: left == right,
    0x2A: lambda left, right: left >= right,
    0x2B: lambda left, right: left > right,
    0x2C: lambda left, right: left <= right,
    0x2D: lambda left, right: left < right,
    0x2E: lambda left, right: left != right,
}


def evaluate(expression: bytes, registers: Registers, read: Read, *stack_start: int) -> int:
    """A DWARF expression without branches, as the PLT and signal trampolines have them."""
    stack, code = list(stack_start), Reader(expression, 0)
    try:
        while code.more():
            opcode = code.number("B")
            if 0x30 <= opcode <= 0x4F:
                stack.append(opcode - 0x30)
            elif 0x70 <= opcode <= 0x8F:
                stack.append((registers[opcode - 0x70] + code.sleb()) & MASK)
            elif opcode == 0x92:
                stack.append((registers[code.uleb()] + code.sleb()) & MASK)
            elif opcode in CONSTANTS:
                stack.append(code.number(CONSTANTS[opcode]))
            elif opcode in (0x10, 0x11):
                stack.append(code.uleb() if opcode == 0x10 else code.sleb())
            elif opcode == 0x23:
                stack.append((stack.pop() + code.uleb()) & MASK)
            elif opcode == 0x06:
                stack.append(word(read, stack.pop()))
            elif opcode == 0x12:
                stack.append(stack[-1])
            elif opcode in OPERATIONS:
                right = stack.pop()
                stack.append(int(OPERATIONS[opcode](stack.pop(), right)) & MASK)
            else:
                raise Unsupported("operation %#x" % opcode)
        return stack[-1]
    except IndexError:
        raise Unsupported("the expression's stack is empty") from None
