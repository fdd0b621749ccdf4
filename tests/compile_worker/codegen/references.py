"""Where the references of a linked object lead, decoded from its instructions in words.

Linkers lay out a shared object as they like; what must be the same is what every reference of the
object file leads to: a function of the runtime by its stub, a place in code or memory, a constant.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_X86, _AARCH64 = 62, 183
_WIDE: Final = 2


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    address: int
    offset: int
    nbytes: int


class ElfFile:
    """An ELF file's bytes and what its tables say."""

    def __init__(self, code: bytes) -> None:
        self.code = code
        self.wide = code[4] == _WIDE
        (self.machine,) = struct.unpack_from("<H", code, 18)
        (start,) = self._at("<Q", 40) if self.wide else self._at("<I", 32)
        count, names = struct.unpack_from("<HH", code, 60 if self.wide else 48)
        layout = "<IIQQQQIIQQ" if self.wide else "<IIIIIIIIII"
        size = struct.calcsize(layout)
        rows = [struct.unpack_from(layout, code, start + size * at) for at in range(count)]
        texts = rows[names][4]
        found = [_Section(self._text(texts + r[0]), r[1], r[3], r[4], r[5]) for r in rows]
        self.sections: Mapping[str, _Section] = {section.name: section for section in found}

    def _at(self, layout: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(layout, self.code, offset)

    def _text(self, at: int) -> str:
        return self.code[at : self.code.index(b"\0", at)].decode()

    def word(self, address: int) -> int:
        """The 32-bit word at an address of the linked object."""
        for section in self.sections.values():
            if section.address and 0 <= address - section.address <= section.nbytes - 4:
                (word,) = self._at("<I", section.offset + address - section.address)
                return word
        raise ValueError(f"{address:#x} is in no section")

    def relocations(self, name: str) -> Iterator[tuple[int, int, int]]:
        """(offset, symbol, type) of every row of a section."""
        at = self.sections[name]
        table = self.code[at.offset : at.offset + at.nbytes]
        if self.wide:
            for offset, info, _ in struct.iter_unpack("<QQq", table):
                yield offset, info >> 32, info & 0xFFFFFFFF
        else:
            for offset, info in struct.iter_unpack("<II", table):
                yield offset, info >> 8, info & 0xFF

    def symbols(self) -> list[tuple[str, bool, int]]:
        """(name, whether it is defined, info) of every dynamic symbol."""
        at, names = self.sections[".dynsym"], self.sections[".dynstr"].offset
        found = []
        for row in range(at.offset, at.offset + at.nbytes, 24 if self.wide else 16):
            if self.wide:
                name, info, _, section = self._at("<IBBH", row)
            else:
                name, _, _, info, _, section = self._at("<IIIBBH", row)
            found.append((self._text(names + name), section != 0, info))
        return found

    def stubs(self) -> dict[int, str]:
        """The function that every stub jumps to, by the stub's address."""
        slots = {}
        for name in (".rela.plt", ".rel.plt", ".rela.dyn", ".rel.dyn"):
            if name in self.sections:
                for slot, symbol, _ in self.relocations(name):
                    slots[slot] = self.symbols()[symbol][0]
        plt = self.sections[".plt"]
        content = self.code[plt.offset : plt.offset + plt.nbytes]
        found = {
            plt.address + at: slots.get(slot_of_stub(self.machine, content[at:], plt.address + at))
            for at in range(0, plt.nbytes - 7, 4)
        }
        return {place: name for place, name in found.items() if name}


def slot_of_stub(machine: int, code: bytes, place: int) -> int:
    """The address that a jump at a place reads its goal from; 0 where there is no jump."""
    first, second, third = _words("<3I", code.ljust(12, b"\0"))
    if machine == _X86:
        (distance,) = _words("<i", code[2:])
        return place + 6 + distance if first & 0xFFFF == 0x25FF else 0
    if machine == _AARCH64:
        if first & 0x9F00001F == 0x90000010 and second & 0xFFC003FF == 0xF9400211:
            return _page(first, place) + (second >> 10 & 0xFFF) * 8
        return 0
    if first >> 12 != 0xE28FC or second >> 12 != 0xE28CC:
        return 0
    return place + 8 + _rotated(first) + _rotated(second) + (third & 0xFFF)


def _words(layout: str, code: bytes) -> tuple[int, ...]:
    return struct.unpack_from(layout, code)


def _page(adrp: int, place: int) -> int:
    pages = (adrp >> 5 & 0x7FFFF) << 2 | adrp >> 29 & 3
    return (place & ~0xFFF) + (_signed(pages, 21) << 12)


def _rotated(word: int) -> int:
    """An immediate of 32-bit ARM: 8 bits turned right by twice the 4 above."""
    value, turn = word & 0xFF, (word >> 8 & 15) * 2
    return (value >> turn | value << 32 - turn) & 0xFFFFFFFF


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


def goals(source: bytes, made: bytes) -> dict[int, str]:
    """For every relocation of an object file's code: where the linked object has it lead."""
    before, after = ElfFile(source), ElfFile(made)
    start, name = after.sections[".text"].address, ".rela.text" if before.wide else ".rel.text"
    held = before.sections[".text"].offset
    pages: dict[int, int] = {}
    found = {}
    stubs = after.stubs()
    for offset, _, kind in before.relocations(name):
        place = start + offset
        word = after.word(place)
        if after.machine == _X86:
            goal = place + 4 + _signed(word, 32)
        elif after.machine == _AARCH64:
            if kind == 275:  # R_AARCH64_ADR_PREL_PG_HI21
                pages[word & 31] = _page(word, place)
                continue
            goal = _aarch64_goal(word, place, pages)
        elif word >> 24 == 0xEB and kind == 28:  # R_ARM_CALL
            goal = place + 8 + _signed(word, 24) * 4
        else:
            (addend,) = struct.unpack_from("<i", source, held + offset)
            goal = place + _signed(word, 32) - addend
        found[offset] = stubs.get(goal) or _what_is_at(after, goal)
    return found


def _aarch64_goal(word: int, place: int, pages: Mapping[int, int]) -> int:
    """Of a bl, or of an add, load or store after an adrp."""
    if word >> 26 == 0b100101:
        return place + _signed(word, 26) * 4
    vector = word >> 26 & word >> 23 & 1
    unit = 1 if word >> 24 & 0x1F == 0x11 else 1 << (word >> 30 | vector << 2)
    return pages[word >> 5 & 31] + (word >> 10 & 0xFFF) * unit


def _what_is_at(made: ElfFile, goal: int) -> str:
    near = [(goal - at.address, at) for at in made.sections.values() if at.address]
    offset, section = min((each for each in near if each[0] >= 0), key=lambda each: each[0])
    if section.name.startswith(".rodata"):
        return f"constant {made.word(goal):08x}"
    return f"{section.name}+{offset}"
