"""Finds a frame's caller where there are no unwind tables: from what the function did before it came here.

Hand-written BLAS and math kernels (MKL's among them) have no tables. gdb guesses there; before version 17 or so its
guess is wrong as soon as a function pushes more than the frame pointer. x86-64 only. Nothing here imports gdb.
"""

from __future__ import annotations

from collections.abc import Callable

from tdbg_call_frames import Caller, Registers, word
from tdbg_unwind_tables import MASK, Read

MOST_CODE = 128  # bytes of a prologue
MOST_WORDS = 1024  # of the stack that are searched for a return address
LARGEST_FRAME = 1 << 20  # bytes
DIRECT_CALL = 0xE8
RBP, RSP, RIP = 6, 7, 16
DWARF_NUMBERS = (0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15)  # by the number in a push instruction


class Prologue:
    """What the instructions from the function's start to here did to the stack."""

    def __init__(self) -> None:
        self.pushed: list[int] = []  # registers by their DWARF numbers, in order
        self.reserved = 0  # bytes
        self.frame_pointer: int | None = None  # bytes pushed when rbp became the frame pointer


def read_prologue(code: bytes) -> Prologue:
    """Follow the instructions that make a frame, up to the first of another kind or the end of `code`."""
    found, at = Prologue(), 0
    while at < len(code):
        rest = code[at:]
        prefix = rest[0] == 0x41
        opcode = rest[1] if prefix and len(rest) > 1 else rest[0]
        if rest.startswith(b"\xf3\x0f\x1e\xfa"):  # endbr64
            at += 4
        elif 0x50 <= opcode <= 0x57:  # push
            found.pushed.append(DWARF_NUMBERS[opcode - 0x50 + (8 if prefix else 0)])
            at += 1 + prefix
        elif rest.startswith((b"\x48\x89\xe5", b"\x48\x8b\xec")):  # mov %rsp, %rbp
            found.frame_pointer = 8 * len(found.pushed) + found.reserved
            at += 3
        elif rest.startswith(b"\x48\x83\xec") and len(rest) >= 4:  # sub $8-bit, %rsp
            found.reserved += rest[3]
            at += 4
        elif rest.startswith(b"\x48\x81\xec") and len(rest) >= 7:  # sub $32-bit, %rsp
            found.reserved += int.from_bytes(rest[3:7], "little")
            at += 7
        else:
            break
    return found


def caller_by_prologue(start: int, pc: int, registers: Registers, read: Read) -> Caller:
    """The caller of a function that begins at `start` and stands at `pc`."""
    prologue = read_prologue(read(start, min(pc - start, MOST_CODE)) if pc > start else b"")
    if prologue.frame_pointer is not None:
        frame = registers[RBP] + prologue.frame_pointer + 8
    else:
        frame = registers[RSP] + 8 * len(prologue.pushed) + prologue.reserved + 8
    found = dict(registers)
    for place, register in enumerate(prologue.pushed):
        found[register] = word(read, frame - 16 - 8 * place)
    found[RSP] = frame & MASK
    found[RIP] = word(read, frame - 8)
    return Caller(frame & MASK, found, start)


def caller_by_search(
    pc: int, registers: Registers, read: Read, is_code: Callable[[int], bool], is_near: Callable[[int], bool]
) -> Caller | None:
    """The first word on the stack that is an address behind a call instruction which can lead here.

    For generated code, which has no symbols. Old return addresses lie around on the stack, therefore a direct call
    counts only if its target `is_near` (in the same code); generated code is called through pointers.
    """
    for place in range(MOST_WORDS):
        address = registers[RSP] + 8 * place
        value = word(read, address)
        if not is_code(value):
            continue
        code = read(value - 7, 7)
        if calls_through_pointer(code) or (code[2] == DIRECT_CALL and is_near(direct_target(code, value))):
            known = {RSP: address + 8, RIP: value}
            frame_pointer = saved_frame_pointer(address, registers, read)
            return Caller(address + 8, known if frame_pointer is None else {**known, RBP: frame_pointer}, pc)
    return None


def saved_frame_pointer(address: int, registers: Registers, read: Read) -> int | None:
    """The caller's rbp: pushed first or (by oneDNN, xbyak's user) second, or still in its register."""
    for value in (word(read, address - 8), word(read, address - 16), registers.get(RBP, 0)):
        if address < value < address + LARGEST_FRAME and value % 8 == 0:
            return value
    return None


def direct_target(code: bytes, end: int) -> int:
    """Where a direct call leads whose instruction ends at `end`."""
    return (end + int.from_bytes(code[3:7], "little", signed=True)) & MASK


def follows_call(code: bytes) -> bool:
    """Whether these seven bytes end in a call: direct (e8), or through a register or memory (ff /2)."""
    return code[2] == DIRECT_CALL or calls_through_pointer(code)


def calls_through_pointer(code: bytes) -> bool:
    for length in (2, 3, 4, 6, 7):
        opcode, mode, scale = code[7 - length], code[8 - length], code[9 - length : 10 - length]
        if opcode == 0xFF and mode & 0x38 == 0x10 and _call_length(mode, scale) == length:
            return True
    return False


def _call_length(mode: int, scale: bytes) -> int:
    """Bytes of `ff /2` with that mode byte: a register, memory at a register, with 1 or 4 bytes of displacement."""
    kind, base = mode >> 6, mode & 7
    if kind == 3:
        return 2
    with_scale = 1 if base == 4 else 0
    if kind == 0:
        far = base == 5 or (with_scale and scale and scale[0] & 7 == 5)
        return 2 + with_scale + (4 if far else 0)
    return 2 + with_scale + (1 if kind == 1 else 4)
