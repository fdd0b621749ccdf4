"""Object files that a linker has little to do for: x86-64 code that calls, and speaks of itself.

Relocations are distances between places of the object, or calls of functions that the loader finds;
names are those functions' and those of the functions it exports. Layouts are those of the System V
ABI (gABI chapters 4 and 5) and of its x86-64 supplement.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

X86_64: Final = 62
_RELOCATABLE: Final = 1

PROGBITS, _SYMTAB, _RELA, NOBITS = 1, 2, 4, 8
WRITE, ALLOC, EXECUTE = 1, 2, 4
_KNOWN_FLAGS: Final = WRITE | ALLOC | EXECUTE | 0x10 | 0x20
"""And those of constants that a linker may merge, and need not."""

_RESERVED: Final = 0xFF00
"""Section numbers from here on mean something else than a section."""
GLOBAL: Final = 1
_DEFAULT, _FUNCTION = 0, 2
_PC32, _PLT32 = 2, 4


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


@dataclass(slots=True)
class PlainObject:
    """What an object file says: sections by number, symbols, relocations as (section, entries)."""

    sections: list[Section] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    relocations: list[tuple[int, list[tuple[int, int, int, int]]]] = field(default_factory=list)


def plain_object(code: bytes) -> PlainObject | None:
    """What an object file says; None if it has sections, symbols or relocations of other kinds."""
    if code[:6] != b"\x7fELF\2\1" or struct.unpack_from("<HH", code, 16) != (_RELOCATABLE, X86_64):
        return None
    made = _read(code)
    return made if made is not None and _is_plain(made) else None


def _read(code: bytes) -> PlainObject | None:
    """Sections, symbols and relocations; None if memory is wanted for a section of another kind."""
    (start,) = struct.unpack_from("<Q", code, 40)
    count, names = struct.unpack_from("<HH", code, 60)
    rows = [struct.unpack_from("<IIQQQQIIQQ", code, start + 64 * at) for at in range(count)]
    texts = rows[names][4]
    made = PlainObject()
    for name, kind, flags, _, at, nbytes, link, info, align, entry in rows:
        loaded = kind in (PROGBITS, NOBITS) and flags & ALLOC
        if flags & ALLOC and (not loaded or flags & ~_KNOWN_FLAGS):
            return None
        content = bytearray(code[at : at + nbytes]) if loaded and kind == PROGBITS else bytearray()
        title = _text(code, texts + name)
        made.sections.append(Section(title, kind, flags, content, nbytes, max(1, align)))
        if kind == _SYMTAB:
            strings = rows[link][4]
            made.symbols = [_symbol(code, each, strings) for each in range(at, at + nbytes, entry)]
        elif kind == _RELA:
            made.relocations.append((info, list(_entries(code[at : at + nbytes]))))
    return made


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()


def _symbol(code: bytes, at: int, strings: int) -> Symbol:
    name, info, other, section, value, nbytes = struct.unpack_from("<IBBHQQ", code, at)
    return Symbol(_text(code, strings + name), section, value, nbytes, info, other == _DEFAULT)


def _entries(table: bytes) -> Iterator[tuple[int, int, int, int]]:
    """(offset, symbol, type, addend)"""
    for offset, info, addend in struct.iter_unpack("<QQq", table):
        yield offset, info >> 32, info & 0xFFFFFFFF, addend


def _is_plain(made: PlainObject) -> bool:
    """Whether all names are plain, and relocations distances in the object or calls out of it."""
    for section, entries in made.relocations:
        if not made.sections[section].is_loaded:
            return False
        for _, number, kind, _ in entries:
            if not _is_near(made, made.symbols[number], kind):
                return False
    return all(_is_named(made, symbol) for symbol in made.symbols if symbol.info >> 4)


def _is_near(made: PlainObject, symbol: Symbol, kind: int) -> bool:
    """Whether a relocation is one that is known here, of something that is there."""
    if symbol.section == 0:
        return kind == _PLT32 and symbol.info == GLOBAL << 4
    return kind in (_PC32, _PLT32) and _is_there(made, symbol)


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
