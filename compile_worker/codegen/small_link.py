"""x86-64 objects as plain as ours to shared objects, without starting a linker.

    kernel.o: .text .rodata .bss        one segment to execute: tables, stubs, .text, .rodata
      call VTAPushGEMMOp          ->      call stub:  jmp *slot
      lea .rodata(%rip)                 one to write: .dynamic, slots (the loader fills them), .bss

For an object that needs anything else the answer is None, and a real linker has to do it. Layouts
are those of the System V ABI (gABI chapters 4 and 5) and of its x86-64 supplement.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from compile_worker.codegen.plain_object import (
    ALLOC,
    EXECUTE,
    GLOBAL,
    NOBITS,
    PROGBITS,
    WRITE,
    X86_64,
    PlainObject,
    Section,
    plain_object,
)

_SHARED: Final = 3
_STRTAB, _RELA, _HASH, _DYNAMIC, _DYNSYM = 3, 4, 5, 6, 11
_GLOB_DAT: Final = 6

_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_RELA, _DT_RELASZ, _DT_RELAENT = 4, 5, 6, 7, 8, 9
_DT_STRSZ, _DT_SYMENT = 10, 11

_HEADER, _SEGMENT, _SYMBOL, _ADDEND, _SLOT, _STUB = 64, 56, 24, 24, 8, 8
_PAGE: Final = 0x1000
_SEGMENTS: Final = 4


def small_shared_object(code: bytes) -> bytes | None:
    """The shared object of an x86-64 object file; None if it takes more than is known here."""
    found = plain_object(code)
    return None if found is None else _Writer(found).write()


class _Writer:
    """Lays one object out, and connects it."""

    def __init__(self, found: PlainObject) -> None:
        self._found = found
        used = {number for _, entries in found.relocations for _, number, _, _ in entries}
        self._wanted = [n for n, s in enumerate(found.symbols) if n in used and s.section == 0]
        self._exported = [n for n, s in enumerate(found.symbols) if s.is_exported]
        loaded = [s for s in found.sections if s.is_loaded and s.nbytes]
        self._fixed = [s for s in loaded if not s.flags & WRITE]
        self._written = [s for s in loaded if s.flags & WRITE and s.kind == PROGBITS]
        self._zeroed = [s for s in loaded if s.flags & WRITE and s.kind == NOBITS]

    def write(self) -> bytes:
        count = 1 + len(self._wanted) + len(self._exported)
        strings = self._strings()
        calls = len(self._wanted)
        tables = [
            _made(".hash", _HASH, 4 * (3 + count), 8, link=".dynsym", entry=4),
            _made(".dynsym", _DYNSYM, _SYMBOL * count, 8, link=".dynstr", entry=_SYMBOL, info=1),
            _made(".dynstr", _STRTAB, len(strings), 1),
            _made(".rela.dyn", _RELA, _ADDEND * calls, 8, link=".dynsym", entry=_ADDEND),
            _made(".plt", PROGBITS, _STUB * calls, 16, flags=ALLOC | EXECUTE, entry=_STUB),
        ]
        dynamic = _made(".dynamic", _DYNAMIC, 16 * 9, 8, link=".dynstr", entry=16, flags=3)
        slots = _made(".got", PROGBITS, _SLOT * calls, 8, flags=ALLOC | WRITE, entry=_SLOT)
        fixed = [*tables, *self._fixed]
        written = [dynamic, slots, *self._written]
        end = _place(fixed, _HEADER + _SEGMENT * _SEGMENTS)
        begin = end + (-end) % 8 + _PAGE  # in memory; in the file a page before
        data_end = _place(written, begin)
        memory_end = _place(self._zeroed, data_end)
        everything = [*fixed, *written, *self._zeroed]
        by_name = {section.name: section for section in (*tables, dynamic, slots)}
        self._fill(by_name, everything, strings)
        self._connect(by_name)
        return _file(everything, end, begin, data_end, memory_end, dynamic)

    def _strings(self) -> bytes:
        names = [self._found.symbols[n].name for n in (*self._wanted, *self._exported)]
        return b"\0" + b"".join(name.encode() + b"\0" for name in names)

    def _fill(self, at: dict[str, Section], everything: Sequence[Section], strings: bytes) -> None:
        """The tables that the loader reads, and a stub for every function it has to find."""
        numbers = [*self._wanted, *self._exported]
        count = 1 + len(numbers)
        chain = [*range(2, count), 0] if numbers else []
        at[".hash"].content += struct.pack(f"<{3 + count}I", 1, count, int(count > 1), 0, *chain)
        at[".dynstr"].content += strings
        symbols, name = bytearray(_SYMBOL), 1
        for number in numbers:
            symbol = self._found.symbols[number]
            home = self._found.sections[symbol.section] if symbol.section else None
            section = 1 + everything.index(home) if home else 0
            value = home.address + symbol.value if home else 0
            kind = symbol.info if home else GLOBAL << 4
            symbols += struct.pack("<IBBHQQ", name, kind, 0, section, value, symbol.nbytes)
            name += len(symbol.name.encode()) + 1
        at[".dynsym"].content += symbols
        for position in range(len(self._wanted)):
            slot = at[".got"].address + _SLOT * position
            stub = at[".plt"].address + _STUB * position
            at[".rela.dyn"].content += struct.pack("<QQq", slot, position + 1 << 32 | _GLOB_DAT, 0)
            at[".plt"].content += b"\xff\x25" + struct.pack("<i", slot - stub - 6) + b"\x66\x90"
        at[".got"].content += bytes(at[".got"].nbytes)
        entries = [
            (_DT_HASH, at[".hash"].address),
            (_DT_STRTAB, at[".dynstr"].address),
            (_DT_SYMTAB, at[".dynsym"].address),
            (_DT_STRSZ, len(strings)),
            (_DT_SYMENT, _SYMBOL),
            (_DT_RELA, at[".rela.dyn"].address),
            (_DT_RELASZ, at[".rela.dyn"].nbytes),
            (_DT_RELAENT, _ADDEND),
            (0, 0),
        ]
        for tag, value in entries:
            at[".dynamic"].content += struct.pack("<QQ", tag, value)

    def _connect(self, at: dict[str, Section]) -> None:
        """Put the distances where the relocations want them."""
        stubs = {n: at[".plt"].address + _STUB * i for i, n in enumerate(self._wanted)}
        for number, entries in self._found.relocations:
            section = self._found.sections[number]
            for offset, name, _, addend in entries:
                symbol = self._found.symbols[name]
                goal = stubs.get(name)
                if goal is None:
                    goal = self._found.sections[symbol.section].address + symbol.value
                struct.pack_into(
                    "<i", section.content, offset, goal + addend - section.address - offset
                )


def _made(
    name: str,
    kind: int,
    nbytes: int,
    align: int,
    *,
    link: str = "",
    entry: int = 0,
    info: int = 0,
    flags: int = ALLOC,
) -> Section:
    return Section(name, kind, flags, bytearray(), nbytes, align, link, info, entry)


def _place(sections: Sequence[Section], start: int) -> int:
    """Give sections their addresses, one after the other; the end."""
    for section in sections:
        section.address = start + (-start) % section.align
        start = section.address + section.nbytes
    return start


def _file(
    sections: Sequence[Section],
    end: int,
    begin: int,
    data_end: int,
    memory_end: int,
    dynamic: Section,
) -> bytes:
    """The bytes of the file: headers, what is loaded, names and headers of the sections."""
    made = bytearray(data_end - _PAGE)
    for section in sections:
        at = section.address - (_PAGE if section.flags & WRITE else 0)
        made[at : at + len(section.content)] = section.content
    segments = (
        (1, 5, 0, 0, end, end, _PAGE),
        (1, 6, begin - _PAGE, begin, data_end - begin, memory_end - begin, _PAGE),
        (2, 6, dynamic.address - _PAGE, dynamic.address, dynamic.nbytes, dynamic.nbytes, 8),
        (0x6474E551, 6, 0, 0, 0, 0, 16),
    )
    for position, (kind, flags, at, address, nbytes, memory, align) in enumerate(segments):
        fields = (kind, flags, at, address, address, nbytes, memory, align)
        struct.pack_into("<IIQQQQQQ", made, _HEADER + _SEGMENT * position, *fields)
    headers, names = _section_headers(sections, len(made))
    start = len(made) + len(names) + (-(len(made) + len(names))) % 8
    made += names + bytes(start - len(made) - len(names)) + headers
    count = len(sections) + 2
    struct.pack_into(
        "<16sHHIQQQIHHHHHH",
        made,
        0,
        b"\x7fELF\2\1\1",
        *(_SHARED, X86_64, 1, 0, _HEADER, start, 0),
        *(_HEADER, _SEGMENT, _SEGMENTS, 64, count, count - 1),
    )
    return bytes(made)


def _section_headers(sections: Sequence[Section], names_at: int) -> tuple[bytes, bytes]:
    """The table of sections, and the text of their names, which is one of them itself."""
    numbers = {section.name: 1 + at for at, section in enumerate(sections)}
    names, table = bytearray(b"\0"), bytearray(64)
    for section in sections:
        at = section.address - (_PAGE if section.flags & WRITE else 0)
        table += struct.pack(
            "<IIQQQQIIQQ",
            *(len(names), section.kind, section.flags & 7, section.address, at, section.nbytes),
            *(numbers.get(section.link, 0), section.info, section.align, section.entry_nbytes),
        )
        names += section.name.encode() + b"\0"
    table += struct.pack(
        "<IIQQQQIIQQ", len(names), _STRTAB, 0, 0, names_at, len(names) + 10, 0, 0, 1, 0
    )
    return bytes(table), bytes(names + b".shstrtab\0")
