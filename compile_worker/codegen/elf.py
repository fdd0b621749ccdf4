"""What an ELF file leaves undefined, as its full symbol table says."""

from __future__ import annotations

from typing import Final

from compile_worker.codegen.elf_tables import class_of, section_rows, text_at

_SYMBOL_TABLE: Final = 2


def undefined_symbols(code: bytes) -> frozenset[str]:
    """Names that an ELF file's full symbol table refers to and does not define."""
    sections, _ = section_rows(code)
    names = set()
    for section in sections:
        if section.kind == _SYMBOL_TABLE:
            strings = sections[section.link].offset
            for row in class_of(code).symbol.all(code, section.offset, section.nbytes):
                name, _, _, home, _, _ = row
                if name and home == 0:
                    names.add(text_at(code, strings + name))
    return frozenset(names)
