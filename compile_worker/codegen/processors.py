"""What the linker of plain objects knows of a processor: references, and stubs for calls.

    reference        what is written                                    where it is read
    distance         goal - place                                       calls, addresses of data
    page distance    page of the goal - page of the place               aarch64: adrp
    place in a page  the goal's last 12 bits                            aarch64: add, ldr, str

Numbers are those of the System V ABI's supplements: x86-64 chapter 4.4, "ELF for the Arm 64-bit
Architecture" chapter 5.7, "ELF for the Arm Architecture" chapter 5.6.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from compile_worker.codegen.elf_tables import NARROW, WIDE, ElfClass

_IN_PAGE: Final = 0xFFF


class OutOfReach(Exception):
    """A reference cannot be written: its goal is too far away, or not aligned."""


class Reference(Protocol):
    """A field of a 32-bit word that leads somewhere."""

    def written(self, word: int, goal: int, place: int, /) -> int:
        """The word at `place` after its field leads to `goal`.

        Raises:
            OutOfReach: it cannot.
        """


@dataclass(frozen=True, slots=True)
class Distance:
    """The last `bits` of a word: a distance in units of `unit` bytes."""

    bits: int
    unit: int = 1

    def addend(self, word: int) -> int:
        """What a word holds before it leads anywhere: where that is not in a table."""
        value = word & (1 << self.bits) - 1
        return (value - (value >> self.bits - 1 << self.bits)) * self.unit

    def written(self, word: int, goal: int, place: int) -> int:
        value = _quotient(goal - place, self.unit, self.bits)
        mask = (1 << self.bits) - 1
        return word & ~mask | value & mask


@dataclass(frozen=True, slots=True)
class PageDistance:
    """An adrp: 21 bits of pages, their last two at bit 29, the others at bit 5."""

    def written(self, word: int, goal: int, place: int) -> int:
        pages = _quotient((goal & ~_IN_PAGE) - (place & ~_IN_PAGE), 1 << 12, 21)
        return word & 0x9F00001F | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


@dataclass(frozen=True, slots=True)
class InPage:
    """12 bits at bit 10: the goal's place in its page, in units of what is read or written."""

    unit: int = 1

    def written(self, word: int, goal: int, _place: int) -> int:
        return word & ~(_IN_PAGE << 10) | _quotient(goal & _IN_PAGE, self.unit, 13) << 10


def _quotient(value: int, unit: int, bits: int) -> int:
    """A value in units, if it is whole and fits into a signed number of so many bits."""
    if value % unit or not -(1 << bits - 1) <= value // unit < 1 << bits - 1:
        raise OutOfReach(f"{value} in {bits} bits of {unit}")
    return value // unit


@dataclass(frozen=True, slots=True)
class ElfMachine:
    """A processor for whose objects shared ones are made.

    calls: references that may lead to a stub, and from there to a function that the loader finds.
    near: references to places of the object itself.
    page_nbytes: the most that memory is mapped by.
    fills_slot: the relocation by which the loader writes a symbol's address to a slot.
    stub: the code at an address that jumps to where a slot, not before it, says.
    """

    number: int
    elf: ElfClass
    page_nbytes: int
    calls: Mapping[int, Reference]
    near: Mapping[int, Reference]
    fills_slot: int
    stub_nbytes: int
    stub: Callable[[int, int], bytes]


def _x86_stub(at: int, slot: int) -> bytes:
    """A stub.

    jmp *slot(%rip)
    xchg %ax, %ax
    """
    return b"\xff\x25" + struct.pack("<i", slot - at - 6) + b"\x66\x90"


def _aarch64_stub(at: int, slot: int) -> bytes:
    """A stub.

    adrp x16, slot
    ldr  x17, [x16, slot]
    br   x17
    nop
    """
    page = PageDistance().written(0x90000010, slot, at)
    load = InPage(8).written(0xF9400211, slot, at)
    return struct.pack("<4I", page, load, 0xD61F0220, 0xD503201F)


def _arm_stub(at: int, slot: int) -> bytes:
    """A stub; pc is 8 bytes on.

    add ip, pc, #distance & 0xff00000
    add ip, ip, #distance & 0xff000
    ldr pc, [ip, #distance & 0xfff]
    """
    distance = slot - at - 8
    if not 0 <= distance < 1 << 28:
        raise OutOfReach(f"{distance} in 28 bits")
    return struct.pack(
        "<3I",
        0xE28FC600 | distance >> 20,
        0xE28CCA00 | distance >> 12 & 0xFF,
        0xE59CF000 | distance & _IN_PAGE,
    )


_X86_PLT32: Final = {4: Distance(32)}
_AARCH64_CALLS: Final = {282: Distance(26, 4), 283: Distance(26, 4)}
_ARM_CALLS: Final = {28: Distance(24, 4), 29: Distance(24, 4)}

PROCESSORS: Final[Mapping[int, ElfMachine]] = {
    each.number: each
    for each in (
        ElfMachine(
            number=62,
            elf=WIDE,
            page_nbytes=0x1000,
            calls=_X86_PLT32,
            near={**_X86_PLT32, 2: Distance(32)},
            fills_slot=6,
            stub_nbytes=8,
            stub=_x86_stub,
        ),
        ElfMachine(
            number=183,
            elf=WIDE,
            page_nbytes=0x10000,
            calls=_AARCH64_CALLS,
            near={
                **_AARCH64_CALLS,
                **{275: PageDistance(), 277: InPage()},
                **{278: InPage(), 284: InPage(2), 285: InPage(4), 286: InPage(8), 299: InPage(16)},
            },
            fills_slot=1025,
            stub_nbytes=16,
            stub=_aarch64_stub,
        ),
        ElfMachine(
            number=40,
            elf=NARROW,
            page_nbytes=0x10000,
            calls=_ARM_CALLS,
            near={**_ARM_CALLS, 3: Distance(32)},
            fills_slot=21,
            stub_nbytes=12,
            stub=_arm_stub,
        ),
    )
}
"""By the number that their files have in `e_machine`."""
