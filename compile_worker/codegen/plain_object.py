"""Object files that a linker has little to do for: code that calls, and speaks of itself.

Relocations lead to places of the object, or call functions that the loader finds; names are those
functions' and those of the functions it exports. Layouts are those of the System V ABI (gABI
chapters 4 and 5) and of the processors' supplements.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from compile_worker.codegen.elf_tables import (
    NARROW,
    SectionRow,
    class_of,
    section_rows,
    text_at,
)
from compile_worker.codegen.processors import PROCESSORS, Distance, ElfMachine

_RELOCATABLE: Final = 1

PROGBITS, _SYMTAB, RELA, NOBITS, REL = 1, 2, 4, 8, 9
_EXIDX: Final = 0x70000001
_CANNOT_UNWIND: Final = 1
WRITE, ALLOC, EXECUTE = 1, 2, 4
_KNOWN_FLAGS: Final = WRITE | ALLOC | EXECUTE | 0x10 | 0x20
"""And those of constants that a linker may merge, and need not."""

_RESERVED: Final = 0xFF00
"""Section numbers from here on mean something else than a section."""
GLOBAL: Final = 1
_DEFAULT, _FUNCTION = 0, 2


@dataclass(slots=True)
class Section:
    """A section of the object, or of what is made; `address` is where it goes."""

    name: str
    kind: int
    flags: int
    content: bytearray
    nbytes: int
    align: int = 1
    link: str = ""
    info: int = 0
    entry_nbytes: int = 0
    address: int = 0

    @property
    def is_loaded(self) -> bool:
        return bool(self.flags & ALLOC)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name of the object: its section (0: undefined) and place there; `info` as in the file."""

    name: str
    section: int
    value: int
    nbytes: int
    info: int
    is_default: bool

    @property
    def is_exported(self) -> bool:
        return self.info == GLOBAL << 4 | _FUNCTION and self.is_default and self.section != 0


class Relocation(NamedTuple):
    """What is to be written at an offset of a section: a reference of a kind to symbol + addend."""

    section: int
    offset: int
    symbol: int
    kind: int
    addend: int


@dataclass(slots=True)
class PlainObject:
    """What an object file says: its processor, sections and symbols by number, relocations."""

    processor: ElfMachine
    flags: int
    sections: list[Section] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    relocations: list[Relocation] = field(default_factory=list)


class _Special(Exception):
    """The object has something that is not known here."""


def plain_object(code: bytes) -> PlainObject | None:
    """What an object file says; None if it has sections, symbols or relocations of other kinds."""
    if code[:4] != b"\x7fELF" or code[5:6] != b"\1":
        return None
    elf = class_of(code)
    kind, number, _, _, _, _, flags, *_ = elf.header.unpack(code, 16)
    processor = PROCESSORS.get(number)
    if kind != _RELOCATABLE or processor is None or processor.elf is not elf:
        return None
    made = PlainObject(processor, flags)
    try:
        _read(code, made)
    except _Special:
        return None
    return made if _is_plain(made) else None


def _read(code: bytes, made: PlainObject) -> None:
    """Fill in sections, symbols and relocations."""
    rows, names = section_rows(code)
    forgotten = {at for at, row in enumerate(rows) if _unwinds_nothing(code, row)}
    for at, row in enumerate(rows):
        name = text_at(code, rows[names].offset + row.name)
        made.sections.append(_section(code, name, row, is_forgotten=at in forgotten))
        if row.kind == _SYMTAB:
            made.symbols = _symbols(code, row, rows[row.link].offset)
    for row in rows:
        if row.kind in (RELA, REL) and row.info not in forgotten:
            made.relocations += _relocations(code, row, made)


def _unwinds_nothing(code: bytes, row: SectionRow) -> bool:
    """Whether a section is armv7's table of how to unwind, and says of all code that one cannot."""
    if row.kind != _EXIDX or class_of(code) is not NARROW:
        return False
    pairs = struct.iter_unpack("<II", code[row.offset : row.offset + row.nbytes])
    return all(how == _CANNOT_UNWIND for _, how in pairs)


def _section(code: bytes, name: str, row: SectionRow, *, is_forgotten: bool) -> Section:
    loaded = row.kind in (PROGBITS, NOBITS) and row.flags & ALLOC
    if is_forgotten:
        return Section(name, row.kind, 0, bytearray(), 0)
    if row.flags & ALLOC and (not loaded or row.flags & ~_KNOWN_FLAGS):
        raise _Special(name)
    held = code[row.offset : row.offset + row.nbytes] if loaded and row.kind == PROGBITS else b""
    return Section(name, row.kind, row.flags, bytearray(held), row.nbytes, max(1, row.align))


def _symbols(code: bytes, row: SectionRow, strings: int) -> list[Symbol]:
    return [
        Symbol(text_at(code, strings + name), section, value, nbytes, info, other == _DEFAULT)
        for name, info, other, section, value, nbytes in class_of(code).symbol.all(
            code, row.offset, row.nbytes
        )
    ]


def _relocations(code: bytes, row: SectionRow, made: PlainObject) -> list[Relocation]:
    elf = made.processor.elf
    found = []
    for offset, info, *rest in elf.relocation.all(code, row.offset, row.nbytes):
        kind = info & (1 << elf.symbol_bits) - 1
        addend = rest[0] if rest else _in_place(made, made.sections[row.info], offset, kind)
        found.append(Relocation(row.info, offset, info >> elf.symbol_bits, kind, addend))
    return found


def _in_place(made: PlainObject, section: Section, offset: int, kind: int) -> int:
    """The addend of a relocation that has it in the place itself."""
    reference = made.processor.near.get(kind)
    if not isinstance(reference, Distance) or offset + 4 > len(section.content):
        raise _Special(f"relocation {kind}")
    (word,) = struct.unpack_from("<I", section.content, offset)
    return reference.addend(word)


def _is_plain(made: PlainObject) -> bool:
    """Whether all names are plain, and relocations lead into the object or call out of it."""
    return all(_is_known(made, each) for each in made.relocations) and all(
        _is_named(made, symbol) for symbol in made.symbols if symbol.info >> 4
    )


def _is_known(made: PlainObject, relocation: Relocation) -> bool:
    """Whether a relocation is one that is known here, of something that is there."""
    symbol = made.symbols[relocation.symbol]
    if not made.sections[relocation.section].is_loaded:
        return False
    if symbol.section == 0:
        return relocation.kind in made.processor.calls and symbol.info == GLOBAL << 4
    return relocation.kind in made.processor.near and _is_there(made, symbol)


def _is_named(made: PlainObject, symbol: Symbol) -> bool:
    """Whether a name that is not local is an undefined or exported function, or hidden."""
    if symbol.section == 0:
        return symbol.info == GLOBAL << 4
    return _is_there(made, symbol) and (symbol.is_exported or not symbol.is_default)


def _is_there(made: PlainObject, symbol: Symbol) -> bool:
    if symbol.section >= _RESERVED:
        return False
    section = made.sections[symbol.section]
    return section.is_loaded and section.nbytes > 0
