"""The bytes of a shared object: headers, what is loaded, names and headers of the sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from compile_worker.codegen.elf_tables import ElfClass
from compile_worker.codegen.plain_object import ALLOC, EXECUTE, WRITE, PlainObject, Section

STRTAB: Final = 3
_SHARED: Final = 3
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_READ_EXECUTE, _READ_WRITE = 5, 6
_SEGMENTS: Final = 4


@dataclass(frozen=True, slots=True)
class Layout:
    """Where what is only read ends, and what is written begins and ends, in memory.

    What is written lies a page earlier in the file, so that both are of one piece there.
    """

    end: int
    begin: int
    data_end: int
    memory_end: int
    page_nbytes: int


def start_of(elf: ElfClass) -> int:
    """Where sections may begin: after the headers of file and segments."""
    return elf.header_nbytes + _SEGMENTS * elf.segment.nbytes


def file_of(
    found: PlainObject, sections: Sequence[Section], dynamic: Section, layout: Layout
) -> bytes:
    """A shared object of sections that have their addresses, with an object's processor."""
    elf, page = found.processor.elf, layout.page_nbytes
    made = bytearray(layout.data_end - page)
    for section in sections:
        at = _offset(section, page)
        made[at : at + len(section.content)] = section.content
    headers, names = _section_headers(elf, sections, len(made), page)
    start = len(made) + len(names) + (-(len(made) + len(names))) % 8
    made += names + bytes(start - len(made) - len(names)) + headers
    ident = b"\x7fELF" + bytes([elf.number, 1, 1])
    count = len(sections) + 2
    header = elf.header.pack(
        *(_SHARED, found.processor.number, 1, 0, elf.header_nbytes, start, found.flags),
        *(elf.header_nbytes, elf.segment.nbytes, _SEGMENTS),
        *(elf.section.nbytes, count, count - 1),
    )
    front = ident.ljust(16, b"\0") + header + _segments(elf, dynamic, layout)
    made[: len(front)] = front
    return bytes(made)


def _segments(elf: ElfClass, dynamic: Section, layout: Layout) -> bytes:
    page, begin = layout.page_nbytes, layout.begin
    data_nbytes, memory_nbytes = layout.data_end - begin, layout.memory_end - begin
    size, end = dynamic.nbytes, layout.end
    segments = (
        (_LOAD, _READ_EXECUTE, 0, 0, end, end, page),
        (_LOAD, _READ_WRITE, begin - page, begin, data_nbytes, memory_nbytes, page),
        (_DYNAMIC, _READ_WRITE, dynamic.address - page, dynamic.address, size, size, 8),
        (_STACK, _READ_WRITE, 0, 0, 0, 0, 16),
    )
    return b"".join(
        elf.segment.pack(kind, flags, at, address, address, nbytes, memory, align)
        for kind, flags, at, address, nbytes, memory, align in segments
    )


def _section_headers(
    elf: ElfClass, sections: Sequence[Section], names_at: int, page_nbytes: int
) -> tuple[bytes, bytes]:
    """The table of sections, and the text of their names, which is one of them itself."""
    numbers = {section.name: 1 + at for at, section in enumerate(sections)}
    names, table = bytearray(b"\0"), bytearray(elf.section.nbytes)
    for section in sections:
        table += elf.section.pack(
            *(len(names), section.kind, section.flags & (ALLOC | EXECUTE | WRITE)),
            *(section.address, _offset(section, page_nbytes), section.nbytes),
            *(numbers.get(section.link, 0), section.info, section.align, section.entry_nbytes),
        )
        names += section.name.encode() + b"\0"
    own = len(names)
    names += b".shstrtab\0"
    table += elf.section.pack(own, STRTAB, 0, 0, names_at, len(names), 0, 0, 1, 0)
    return bytes(table), bytes(names)


def _offset(section: Section, page_nbytes: int) -> int:
    """Where a section lies in the file."""
    return section.address - (page_nbytes if section.flags & WRITE else 0)
