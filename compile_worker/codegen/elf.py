"""Just enough of the ELF format to say what an object file leaves undefined.

Layout: System V gABI, chapters "ELF Header", "Sections" and "Symbol Table"; 32 and 64 bit, little
endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

_SYMBOL_TABLE: Final = 2
_WIDE: Final = 2


@dataclass(frozen=True, slots=True)
class _Section:
    kind: int
    offset: int
    nbytes: int
    link: int
    entry_nbytes: int


def undefined_symbols(code: bytes) -> frozenset[str]:
    """Names that an ELF file's full symbol table refers to and does not define."""
    sections = _sections(code)
    names: set[str] = set()
    for section in sections:
        if section.kind == _SYMBOL_TABLE:
            names |= _undefined_in(code, section, sections[section.link])
    return frozenset(names)


def _sections(code: bytes) -> list[_Section]:
    wide = code[4] == _WIDE
    (start,) = struct.unpack_from("<Q", code, 40) if wide else struct.unpack_from("<I", code, 32)
    size, count = struct.unpack_from("<HH", code, 58 if wide else 46)
    layout = "<IIQQQQIIQQ" if wide else "<IIIIIIIIII"
    rows = (struct.unpack_from(layout, code, start + i * size) for i in range(count))
    return [_Section(r[1], r[4], r[5], r[6], r[9]) for r in rows]


def _undefined_in(code: bytes, symbols: _Section, strings: _Section) -> set[str]:
    wide = symbols.entry_nbytes == struct.calcsize("<IBBHQQ")
    found = set()
    for at in range(symbols.offset, symbols.offset + symbols.nbytes, symbols.entry_nbytes):
        if wide:
            name, _, _, section = struct.unpack_from("<IBBH", code, at)
        else:
            name, _, _, _, _, section = struct.unpack_from("<IIIBBH", code, at)
        if name and section == 0:
            begin = strings.offset + name
            found.add(code[begin : code.index(b"\0", begin)].decode())
    return found
