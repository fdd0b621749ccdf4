"""ELF's tables as they lie in little-endian files of 32 and of 64 bits.

Rows are packed and unpacked in the order of the 64-bit files' fields. Layouts are those of the
System V ABI (gABI chapters 4 and 5).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_CLASS: Final = 4
_WIDE_CLASS: Final = 2


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table; `order` says which of the 64-bit row's fields lies where, if not there."""

    layout: struct.Struct
    order: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        return self.layout.size

    def pack(self, *fields: int) -> bytes:
        """The bytes of a row."""
        return self.layout.pack(*(map(fields.__getitem__, self.order) if self.order else fields))

    def unpack(self, code: bytes, at: int) -> tuple[int, ...]:
        """The fields of the row at an offset of a file."""
        (fields,) = self.all(code, at, self.nbytes)
        return fields

    def all(self, code: bytes, at: int, nbytes: int) -> Iterator[tuple[int, ...]]:
        """The fields of every row of a table."""
        rows = self.layout.iter_unpack(code[at : at + nbytes])
        if not self.order:
            return rows
        back = [self.order.index(field) for field in range(len(self.order))]
        return (tuple(map(row.__getitem__, back)) for row in rows)


@dataclass(frozen=True, slots=True)
class ElfClass:
    """How the files of one class, of 32 or of 64 bits, are written.

    header: of the file, without its first 16 bytes.
    relocation: (offset, info, addend), or without addend where that lies in place.
    """

    number: int
    header: TableRow
    segment: TableRow
    section: TableRow
    symbol: TableRow
    relocation: TableRow
    dynamic: TableRow

    @property
    def word_nbytes(self) -> int:
        """Bytes of an address."""
        return 4 * self.number

    @property
    def symbol_bits(self) -> int:
        """How far a relocation's symbol is shifted in its info, the type below."""
        return 32 if self.number == _WIDE_CLASS else 8

    @property
    def header_nbytes(self) -> int:
        return 16 + self.header.nbytes


WIDE: Final = ElfClass(
    number=_WIDE_CLASS,
    header=TableRow(struct.Struct("<HHIQQQIHHHHHH")),
    segment=TableRow(struct.Struct("<IIQQQQQQ")),
    section=TableRow(struct.Struct("<IIQQQQIIQQ")),
    symbol=TableRow(struct.Struct("<IBBHQQ")),
    relocation=TableRow(struct.Struct("<QQq")),
    dynamic=TableRow(struct.Struct("<QQ")),
)
NARROW: Final = ElfClass(
    number=1,
    header=TableRow(struct.Struct("<HHIIIIIHHHHHH")),
    segment=TableRow(struct.Struct("<IIIIIIII"), (0, 2, 3, 4, 5, 6, 1, 7)),
    section=TableRow(struct.Struct("<IIIIIIIIII")),
    symbol=TableRow(struct.Struct("<IIIBBH"), (0, 4, 5, 1, 2, 3)),
    relocation=TableRow(struct.Struct("<II"), (0, 1)),
    dynamic=TableRow(struct.Struct("<II")),
)


def class_of(code: bytes) -> ElfClass:
    """The class of an ELF file."""
    return WIDE if code[_CLASS] == _WIDE_CLASS else NARROW


@dataclass(frozen=True, slots=True)
class SectionRow:
    """What is asked of a row of the table of sections; `name` is the offset of its text."""

    name: int
    kind: int
    flags: int
    offset: int
    nbytes: int
    link: int
    info: int
    align: int


def section_rows(code: bytes) -> tuple[list[SectionRow], int]:
    """The table of sections of a file, and which of them has their names."""
    elf = class_of(code)
    _, _, _, _, _, start, _, _, _, _, _, count, names = elf.header.unpack(code, 16)
    rows = elf.section.all(code, start, count * elf.section.nbytes)
    return [SectionRow(*row[:3], *row[4:9]) for row in rows], names  # no address, no entry's size


def text_at(code: bytes, at: int) -> str:
    """The text that begins at an offset of a file."""
    return code[at : code.index(b"\0", at)].decode()
