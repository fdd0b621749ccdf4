"""Objects as plain as ours to shared objects, without starting a linker.

    kernel.o: .text .rodata .bss        one segment to execute: tables, stubs, .text, .rodata
      call PushGEMMOp             ->      call stub:  jump to where its slot says
      address of .rodata                one to write: .dynamic, slots (the loader fills them), .bss

For an object that needs anything else the answer is None, and a real linker has to do it. Layouts
are those of the System V ABI (gABI chapters 4 and 5).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from compile_worker.codegen.elf_tables import WIDE
from compile_worker.codegen.plain_object import (
    ALLOC,
    EXECUTE,
    GLOBAL,
    NOBITS,
    PROGBITS,
    REL,
    RELA,
    WRITE,
    PlainObject,
    Section,
    plain_object,
)
from compile_worker.codegen.processors import OutOfReach
from compile_worker.codegen.shared_file import STRTAB, Layout, file_of, start_of

_HASH, _DYNAMIC, _DYNSYM = 5, 6, 11

_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT = 4, 5, 6, 10, 11
_DYNAMICS: Final = 9
_RELOCATIONS: Final = {RELA: (".rela.dyn", 7, 8, 9), REL: (".rel.dyn", 17, 18, 19)}
"""Their section, and the entries that say their place, size and the size of one."""


def small_shared_object(code: bytes) -> bytes | None:
    """The shared object of an object file; None if it takes more than is known here."""
    found = plain_object(code)
    if found is None:
        return None
    try:
        return _Writer(found).write()
    except OutOfReach:
        return None


class _Writer:
    """Lays one object out, and connects it."""

    def __init__(self, found: PlainObject) -> None:
        self._found = found
        self._processor = found.processor
        self._elf = found.processor.elf
        self._form = RELA if self._elf is WIDE else REL
        used = {relocation.symbol for relocation in found.relocations}
        self._wanted = [n for n, s in enumerate(found.symbols) if n in used and s.section == 0]
        self._exported = [n for n, s in enumerate(found.symbols) if s.is_exported]
        loaded = [s for s in found.sections if s.is_loaded and s.nbytes]
        self._fixed = [s for s in loaded if not s.flags & WRITE]
        self._written = [s for s in loaded if s.flags & WRITE and s.kind == PROGBITS]
        self._zeroed = [s for s in loaded if s.flags & WRITE and s.kind == NOBITS]

    def write(self) -> bytes:
        strings = self._strings()
        tables, dynamic, slots = self._tables(len(strings))
        fixed = [*tables, *self._fixed]
        written = [dynamic, slots, *self._written]
        page_nbytes = self._processor.page_nbytes
        end = _place(fixed, start_of(self._elf))
        begin = end + (-end) % 8 + page_nbytes  # in memory; in the file a page before
        data_end = _place(written, begin)
        memory_end = _place(self._zeroed, data_end)
        everything = [*fixed, *written, *self._zeroed]
        by_name = {section.name: section for section in (*tables, dynamic, slots)}
        self._fill(by_name, everything, strings)
        self._connect(by_name)
        layout = Layout(end, begin, data_end, memory_end, page_nbytes)
        return file_of(self._found, everything, dynamic, layout)

    def _tables(self, strings_nbytes: int) -> tuple[list[Section], Section, Section]:
        """Sections, still empty: what is only read, the dynamic section, and the slots."""
        elf, word, calls = self._elf, self._elf.word_nbytes, len(self._wanted)
        count = 1 + calls + len(self._exported)
        symbol, relocation = elf.symbol.nbytes, elf.relocation.nbytes
        entry, stub = elf.dynamic.nbytes, self._processor.stub_nbytes
        name = _RELOCATIONS[self._form][0]
        tables = [
            _made(".hash", _HASH, 4 * (3 + count), 8, link=".dynsym", entry=4),
            _made(".dynsym", _DYNSYM, symbol * count, 8, link=".dynstr", entry=symbol, info=1),
            _made(".dynstr", STRTAB, strings_nbytes, 1),
            _made(name, self._form, relocation * calls, 8, link=".dynsym", entry=relocation),
            _made(".plt", PROGBITS, stub * calls, 16, flags=ALLOC | EXECUTE, entry=stub),
        ]
        size, both = entry * _DYNAMICS, ALLOC | WRITE
        dynamic = _made(".dynamic", _DYNAMIC, size, 8, link=".dynstr", entry=entry, flags=both)
        return tables, dynamic, _made(".got", PROGBITS, word * calls, 8, flags=both, entry=word)

    def _strings(self) -> bytes:
        names = [self._found.symbols[n].name for n in (*self._wanted, *self._exported)]
        return b"\0" + b"".join(name.encode() + b"\0" for name in names)

    def _fill(self, at: dict[str, Section], everything: Sequence[Section], strings: bytes) -> None:
        """The tables that the loader reads, and a stub for every function it has to find."""
        count = 1 + len(self._wanted) + len(self._exported)
        chain = [*range(2, count), 0] if count > 1 else []
        at[".hash"].content += struct.pack(f"<{3 + count}I", 1, count, int(count > 1), 0, *chain)
        at[".dynstr"].content += strings
        at[".dynsym"].content += self._symbols(everything)
        relocations, *tags = _RELOCATIONS[self._form]
        elf, processor = self._elf, self._processor
        for position in range(len(self._wanted)):
            slot = at[".got"].address + elf.word_nbytes * position
            stub = at[".plt"].address + processor.stub_nbytes * position
            info = position + 1 << elf.symbol_bits | processor.fills_slot
            at[relocations].content += elf.relocation.pack(slot, info, 0)
            at[".plt"].content += processor.stub(stub, slot)
        at[".got"].content += bytes(at[".got"].nbytes)
        entries = [
            (_DT_HASH, at[".hash"].address),
            (_DT_STRTAB, at[".dynstr"].address),
            (_DT_SYMTAB, at[".dynsym"].address),
            (_DT_STRSZ, len(strings)),
            (_DT_SYMENT, elf.symbol.nbytes),
            (tags[0], at[relocations].address),
            (tags[1], at[relocations].nbytes),
            (tags[2], elf.relocation.nbytes),
            (0, 0),
        ]
        for tag, value in entries:
            at[".dynamic"].content += elf.dynamic.pack(tag, value)

    def _symbols(self, everything: Sequence[Section]) -> bytes:
        """The table of the functions that the loader finds, and then of those it is to find."""
        row, name = self._elf.symbol, 1
        made = bytearray(row.nbytes)
        for number in (*self._wanted, *self._exported):
            symbol = self._found.symbols[number]
            home = self._found.sections[symbol.section] if symbol.section else None
            section = 1 + everything.index(home) if home else 0
            value = home.address + symbol.value if home else 0
            kind = symbol.info if home else GLOBAL << 4
            made += row.pack(name, kind, 0, section, value, symbol.nbytes)
            name += len(symbol.name.encode()) + 1
        return bytes(made)

    def _connect(self, at: dict[str, Section]) -> None:
        """Have every reference lead to its goal."""
        size = self._processor.stub_nbytes
        stubs = {n: at[".plt"].address + size * i for i, n in enumerate(self._wanted)}
        for each in self._found.relocations:
            section = self._found.sections[each.section]
            symbol = self._found.symbols[each.symbol]
            start = stubs.get(each.symbol)
            if start is None:
                start = self._found.sections[symbol.section].address + symbol.value
            (word,) = struct.unpack_from("<I", section.content, each.offset)
            word = self._processor.near[each.kind].written(
                word, start + each.addend, section.address + each.offset
            )
            struct.pack_into("<I", section.content, each.offset, word)


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
