"""A core file: the memory and the threads of a process that died (ELF core of x86-64 Linux, elf(5), core(5)).

Notes: NT_PRSTATUS (elf_prstatus: signal, thread, registers), NT_PRPSINFO (command), NT_SIGINFO, NT_FILE (what is
mapped from where), as the kernel's fs/binfmt_elf.c writes them, and gdb's generate-core-file too.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchbench_dbg.crash.snapshot import ThreadState, Unreadable
from torchbench_dbg.crash.watcher import Fault
from torchbench_dbg.errors import CoreError
from torchbench_dbg.trace import elf
from torchbench_dbg.trace.architecture import X8664Registers
from torchbench_dbg.trace.probes import Mapping

_ET_CORE, _EM_X86_64, _PT_LOAD, _PT_NOTE = 4, 62, 1, 4
_NT_PRSTATUS, _NT_PRPSINFO, _NT_SIGINFO, _NT_FILE = 1, 3, 0x53494749, 0x46494C45
_REGISTERS_AT, _NAME_AT, _COMMAND_AT = 112, 40, 56  # in elf_prstatus and elf_prpsinfo
_MOST = 1 << 16  # threads, segments, files
_STACK = "[stack]"
_COMPRESSED = (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"\x1f\x8b", b"\xfd7zX")  # zstd, lz4, gzip, xz


@dataclass(frozen=True, slots=True)
class _Segment:
    address: int
    offset: int  # in the core file
    in_file: int  # bytes
    size: int
    flags: int


@dataclass(slots=True)
class CoreFile:
    """Use `open_core`. `fault` is None of a core that was taken from a living process."""

    path: Path
    pid: int = 0
    command: str = ""
    fault: Fault | None = None
    threads: list[ThreadState] = field(default_factory=list)
    mappings: list[Mapping] = field(default_factory=list)
    failing: int = 0  # thread
    cut: bool = False  # the file is shorter than it says
    notes: list[str] = field(default_factory=list)
    _data: mmap.mmap | bytes = b""
    _segments: list[_Segment] = field(default_factory=list)

    def read(self, address: int, length: int) -> bytes:
        """Of the core, else (code and constants are often not in it) of the file that was mapped there."""
        pieces, end = [], address + length
        while address < end:
            piece = self._in_core(address, end - address) or self._in_file(address, end - address)
            if not piece:
                raise Unreadable(f"{address:#x}")
            pieces.append(piece)
            address += len(piece)
        return b"".join(pieces)

    def read_dumped(self, address: int, length: int) -> bytes:
        """Of the core alone; b"" if it is not there."""
        return self._in_core(address, length)

    def _in_core(self, address: int, length: int) -> bytes:
        for segment in self._segments:
            if segment.address <= address < segment.address + segment.in_file:
                skip = address - segment.address
                start = segment.offset + skip
                return bytes(self._data[start : start + min(length, segment.in_file - skip)])
        return b""

    def _in_file(self, address: int, length: int) -> bytes:
        for mapping in self.mappings:
            if mapping.start <= address < mapping.end and mapping.path.startswith("/"):
                try:
                    with open(mapping.path, "rb") as file:
                        return os.pread(
                            file.fileno(), min(length, mapping.end - address), address - mapping.start + mapping.offset
                        )
                except OSError:
                    return b""
        return b""


def open_core(path: Path) -> CoreFile:
    """Read a core file's headers. CoreError says what is wrong with it."""
    core = CoreFile(path=path)
    try:
        with open(path, "rb") as file:
            core._data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    except OSError as error:
        raise CoreError(f"{path} can't be read: {error.strerror}.", hint=_FIND) from error
    except ValueError as error:
        raise CoreError(f"{path} is empty.", hint=_FIND) from error
    try:
        _read(core)
    except (struct.error, IndexError, OverflowError) as error:
        raise CoreError(f"{path} is damaged: {error}.", hint=_FIND) from error
    if not core.threads:
        raise CoreError(f"{path} has no threads in it: it was cut off, or is no core of a process.", hint=_FIND)
    return core


_FIND = "cat /proc/sys/kernel/core_pattern says where cores go; coredumpctl dump -o core writes the last of systemd's"


def _read(core: CoreFile) -> None:
    data = core._data
    if data[:4] != b"\x7fELF":
        what = "a compressed file" if data[:4].startswith(_COMPRESSED) else "no core file"
        raise CoreError(f"{core.path} is {what}: it does not begin as ELF files do.", hint=_FIND)
    if data[4:6] != b"\x02\x01":
        raise CoreError(f"{core.path} is not of a 64-bit little-endian machine.")
    kind, machine = struct.unpack_from("<HH", data, 16)
    if kind != _ET_CORE:
        raise CoreError(f"{core.path} is a program or a library, not a core file.", hint="tdbg core core.1234")
    if machine != _EM_X86_64:
        raise CoreError(f"{core.path} is of another kind of processor (ELF machine {machine}); tdbg reads x86-64's.")
    (headers,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    notes = []
    for place in range(min(count, _MOST)):
        kind, flags, offset, address, _, in_file, in_memory, _ = struct.unpack_from(
            "<IIQQQQQQ", data, headers + place * size
        )
        if offset + in_file > len(data):
            core.cut = True
            in_file = max(0, len(data) - offset)
        if kind == _PT_NOTE:
            notes.append((offset, in_file))
        elif kind == _PT_LOAD:
            core._segments.append(_Segment(address, offset, in_file, in_memory, flags))
    files: list[Mapping] = []
    for note, content in (each for place in notes for each in _notes(data, *place)):
        _take(core, note, content, files)
    core.mappings = _mappings(core, files)
    core.failing = core.threads[0].native_id if core.threads else 0
    if core.cut:
        core.notes.append("the core file is cut off: what was behind its end is missing (ulimit -c, a full disk?)")


def _notes(data: mmap.mmap | bytes, offset: int, size: int) -> Iterator[tuple[int, bytes]]:
    end = min(offset + size, len(data))
    while offset + 12 <= end:
        name, length, kind = struct.unpack_from("<III", data, offset)
        offset += 12 + (name + 3) // 4 * 4
        if offset + length > end:
            return
        yield kind, bytes(data[offset : offset + length])
        offset += (length + 3) // 4 * 4


def _take(core: CoreFile, kind: int, content: bytes, files: list[Mapping]) -> None:
    if kind == _NT_PRSTATUS and len(core.threads) < _MOST:
        block = X8664Registers.from_buffer_copy(content, _REGISTERS_AT)
        (number,), (tid,) = struct.unpack_from("<h", content, 12), struct.unpack_from("<i", content, 32)
        values = {name: int(getattr(block, name)) for name, *_ in block._fields_}
        core.threads.append(ThreadState(native_id=tid, name="", registers=values))
        if len(core.threads) == 1:
            core.pid = core.pid or tid
            if number:
                core.fault = Fault(signal=number, code=0, address=0, sender=0, registers=bytes(block))
    elif kind == _NT_PRPSINFO:
        core.pid = struct.unpack_from("<i", content, 24)[0] or core.pid
        core.command = content[_COMMAND_AT : _COMMAND_AT + 80].partition(b"\0")[0].decode(errors="replace").strip()
    elif kind == _NT_SIGINFO and core.fault is not None and len(core.threads) == 1:
        number, _, code, _, address = struct.unpack_from("<iiiiQ", content)
        if number == core.fault.signal:
            sender = address & 0xFFFFFFFF if code <= 0 else 0
            core.fault = Fault(
                signal=number, code=code, address=address if code > 0 else 0, sender=sender,
                registers=core.fault.registers,
            )  # fmt: skip
    elif kind == _NT_FILE:
        files.extend(_files(content))


def _files(content: bytes) -> Iterator[Mapping]:
    count, page = struct.unpack_from("<QQ", content)
    names = content[16 + 24 * count :].split(b"\0")
    for place in range(min(count, _MOST)):
        start, end, offset = struct.unpack_from("<QQQ", content, 16 + 24 * place)
        name = os.fsdecode(names[place])
        yield Mapping(start=start, end=end, permissions="r--p", offset=offset * page, path=name)


def _mappings(core: CoreFile, files: list[Mapping]) -> list[Mapping]:
    """The segments, each with the file that it was mapped from."""
    found = []
    by_start = {file.start: file for file in files}
    stack = core.threads[0].registers["rsp"] if core.threads else 0
    for segment in core._segments:
        letters = "".join(letter if segment.flags & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
        end = segment.address + segment.size
        file = by_start.get(segment.address) or next((f for f in files if f.start <= segment.address < f.end), None)
        path = file.path if file else _STACK if segment.address <= stack < end and len(core.threads) == 1 else ""
        offset = file.offset + segment.address - file.start if file else 0
        found.append(Mapping(start=segment.address, end=end, permissions=letters + "p", offset=offset, path=path))
    for file in files:
        if not any(mapping.start <= file.start < mapping.end for mapping in found):
            found.append(replace(file, permissions=_permissions(file)))
    return sorted(found, key=lambda mapping: mapping.start)


def _permissions(file: Mapping) -> str:
    """Of a part of a file that the core leaves out, which can be read again from the file: code or constants."""
    try:
        with elf.opened(Path(file.path)) as opened:
            parts = [(part.offset & ~0xFFF, part.offset + part.file_size) for part in opened.executable_segments]
    except (OSError, ValueError):
        return "r-xp"  # gone: it may have been code, and a stack leads through it
    return "r-xp" if any(start <= file.offset < end for start, end in parts) else "r--p"


def changed_files(core: CoreFile) -> Iterator[str]:
    """What is said of each mapped program or library that is gone, or is another file by now (by its build-id)."""
    for path in sorted({mapping.path for mapping in core.mappings if mapping.path.startswith("/")}):
        parts = [mapping for mapping in core.mappings if mapping.path == path]
        if not os.path.exists(path):
            if any("x" in mapping.permissions for mapping in parts):
                yield f"{path} is not on this machine: its functions have no names"
            continue
        then, now = _build_id_in_memory(core, parts[0].start), _build_id_of(path)
        if then and now and then != now:
            yield f"{path} is another file now (build-id {now[:12]}, it was {then[:12]}): its names may be wrong"


def _build_id_of(path: str) -> str | None:
    try:
        with elf.opened(Path(path)) as file:
            return file.build_id
    except (OSError, ValueError):
        return None


def _build_id_in_memory(core: CoreFile, base: int) -> str | None:
    """By the note segment of the ELF header that was mapped, as far as the core has it."""
    head = core.read_dumped(base, 64)
    if len(head) < 64:
        return None
    (headers,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    for place in range(min(count, 64)):
        header = core.read_dumped(base + headers + place * size, 56)
        if len(header) < 56:
            return None
        kind, _, _, address, _, length, _, _ = struct.unpack("<IIQQQQQQ", header)
        if kind == _PT_NOTE:
            content = core.read_dumped(base + address, min(length, 4096))
            for note, value in _notes(content, 0, len(content)):
                if note == 3 and len(value) >= 8:
                    return value.hex()
    return None
