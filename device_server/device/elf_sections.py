"""Sections of a shared object, which no loader reads: they must tell the same as what it reads.

What people and tools see of an object is its sections. An object whose sections show something else
than what is mapped was not made by a linker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from device_server.device.elf_image import EXECUTE, WRITE, Image, Refused
from device_server.device.elf_tables import SYMTAB, Tables

_SECTIONS: Final = 256
_DYNAMIC, _NOBITS, _DYNSYM = 6, 8, 11
_SHF_WRITE, _SHF_ALLOC, _SHF_EXECUTE, _SHF_TLS = 1, 2, 4, 0x400
_CODE_LISTS: Final = {14, 15, 16}
"""SHT_INIT_ARRAY and its like: functions to call as the object is loaded, or left."""


class _Section(NamedTuple):
    kind: int
    flags: int
    address: int
    offset: int
    nbytes: int


def check_sections(image: Image, tables: Tables) -> None:
    """See that sections, where there are any, agree with what is mapped.

    Raises:
        Refused: they do not.
        struct.error: they lie outside of the file.
    """
    found = _sections(image)
    for number, section in enumerate(found):
        if section.kind in _CODE_LISTS or section.flags & _SHF_TLS:
            raise Refused(f"section {number} is of a kind that is not allowed")
        if section.flags & _SHF_ALLOC and section.nbytes:
            _check_section(image, section, f"section {number}")
    dynamic = image.dynamic
    _check_only(found, _DYNAMIC, dynamic.address, dynamic.nbytes)
    nbytes = tables.symbols * tables.symbol_nbytes
    _check_only(found, _DYNSYM, tables.entries[SYMTAB], nbytes)


def _sections(image: Image) -> list[_Section]:
    (start,) = image.words(40 if image.wide else 32, "P")
    entry_nbytes, count, _ = image.words(58 if image.wide else 46, "HHH")
    if not start and not count:
        return []
    if entry_nbytes != (64 if image.wide else 40) or not 0 < count <= _SECTIONS:
        raise Refused(f"{count} sections in rows of {entry_nbytes} bytes")
    rows = (image.words(start + row * entry_nbytes, "IIPPPP") for row in range(count))
    return [_Section(*row[1:]) for row in rows]


def _check_section(image: Image, section: _Section, name: str) -> None:
    end = section.address + section.nbytes
    for load in image.loads:
        if load.address <= section.address and end <= load.end:
            break
    else:
        raise Refused(f"{name} is said to be mapped, but is not")
    rights = (section.flags & _SHF_WRITE and WRITE) | (section.flags & _SHF_EXECUTE and EXECUTE)
    if rights & ~load.flags:
        raise Refused(f"{name} has rights that its segment has not")
    if section.kind == _NOBITS:
        right = section.address >= load.address + load.nbytes
    else:
        at = section.offset - load.offset
        right = at == section.address - load.address and load.holds(section.address, section.nbytes)
    if not right:
        raise Refused(f"{name} lies elsewhere in the file than where it is mapped")


def _check_only(found: Sequence[_Section], kind: int, address: int, nbytes: int) -> None:
    """A section of a kind is there once, where the loader has it."""
    if not found:
        return
    places = [(section.address, section.nbytes) for section in found if section.kind == kind]
    if places != [(address, nbytes)]:
        what = "dynamic section" if kind == _DYNAMIC else "symbol table"
        raise Refused(f"sections show another {what} than the loader reads")
