"""Which instruction set an x86-64 instruction is of, by its first bytes.

Source: Intel's Software Developer's Manual, volume 2, chapter 2 (prefixes) and appendix A (opcode maps).
"""

from __future__ import annotations

_PREFIXES = frozenset(b"\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65\x67\xf0")


def instruction_set(code: bytes) -> str:
    """ "AVX-512", "AVX", "SSE4", "ud2", ...; "" for one that every x86-64 processor has, or that is not known."""
    at = 0
    prefixes = b""
    while at < len(code) and code[at] in _PREFIXES:
        prefixes += code[at : at + 1]
        at += 1
    if at < len(code) and 0x40 <= code[at] <= 0x4F:  # REX
        at += 1
    rest = code[at:]
    if rest[:1] == b"\x62":
        return "AVX-512"
    if rest[:1] in (b"\xc4", b"\xc5"):
        return _vex(rest)
    if rest[:1] != b"\x0f":
        return ""
    return _two_bytes(rest[1:], prefixes)


def _vex(code: bytes) -> str:
    opcode_map = code[1] & 0x1F if code[0] == 0xC4 and len(code) > 1 else 1
    opcode = code[3 if code[0] == 0xC4 else 2 :][:1]
    if opcode_map == 2 and opcode and 0x96 <= opcode[0] <= 0xBF:
        return "FMA"
    if opcode_map == 2 and opcode and opcode[0] in (0x49, 0x4B, 0x5C, 0x5E):
        return "AMX"
    return "AVX2" if opcode_map in (2, 3) else "AVX"


def _two_bytes(code: bytes, prefixes: bytes) -> str:
    if code[:1] == b"\x0b":
        return "ud2"
    if code[:1] in (b"\xff", b"\xb9"):
        return "ud"
    if code[:1] in (b"\x38", b"\x3a"):
        return "SSSE3 or SSE4"
    if code[:1] == b"\x0f":
        return "3DNow!"
    if code[:1] == b"\xb8" and b"\xf3" in prefixes:
        return "POPCNT"
    return ""


# The flag of /proc/cpuinfo that a processor with the instruction set has.
FLAGS = {
    "AVX-512": "avx512f", "AVX2": "avx2", "AVX": "avx", "FMA": "fma", "AMX": "amx_tile", "SSSE3 or SSE4": "sse4_2",
    "3DNow!": "3dnow", "POPCNT": "popcnt",
}  # fmt: skip
