"""What a loader maps of an ELF shared object, where that leaves no choice.

Loaders map whole pages, a later segment over an earlier one, and none asks whether that was meant.
So every segment has its pages for itself here, whatever the size of a page, in the order of the
file, without holes: then an address means one byte, and it is the one that is looked at. Layouts
are those of the System V ABI (gABI chapters 4 and 5).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from tilefarm.plural import plural


class Machine(Enum):
    """Processors that run kernels: (e_machine, 64-bit)."""

    X86_64 = (62, True)
    AARCH64 = (183, True)
    ARM = (40, False)

    @classmethod
    def of_triple(cls, triple: str) -> Machine:
        """The machine that a target triple names.

        Raises:
            ValueError: none that is known here.
        """
        name = triple.partition("-")[0]
        if name.startswith("arm"):
            return cls.ARM
        known = {"x86_64": cls.X86_64, "aarch64": cls.AARCH64}
        if name not in known:
            raise ValueError(f"no device server for {triple}")
        return known[name]


PAGE_NBYTES: Final[Mapping[Machine, tuple[int, ...]]] = {
    Machine.X86_64: (0x1000,),
    Machine.AARCH64: (0x1000, 0x4000, 0x10000),
    Machine.ARM: (0x1000,),
}
"""The sizes of pages that a processor's system may have chosen."""

_MOST_ALIGN: Final = 0x200000
_WORD_NBYTES: Final = 8
_MOST_MEMORY_NBYTES: Final = 1 << 31
_HEADERS: Final = 16
_SHARED_OBJECT: Final = 3
_EABI: Final = 0x05000000
_EABI_MASK: Final = 0xFF000000
"""Bits of e_flags that only this processor has: version 5 of its conventions."""

LOAD: Final = 1
_DYNAMIC, _NOTE, _PHDR = 2, 4, 6
_EH_FRAME, _STACK, _RELRO, _PROPERTY = 0x6474E550, 0x6474E551, 0x6474E552, 0x6474E553
_EXIDX: Final = 0x70000001
_DESCRIPTIONS: Final = frozenset({_NOTE, _EH_FRAME, _PROPERTY, _EXIDX})
"""Segments that say something about bytes which are mapped anyway."""

_KINDS: Final = frozenset({LOAD, _DYNAMIC, _PHDR, _STACK}) | _DESCRIPTIONS
_KIND_NAMES: Final = {
    3: "PT_INTERP",
    5: "PT_SHLIB",
    7: "PT_TLS",
    _RELRO: "PT_GNU_RELRO (link with -z norelro)",
}

EXECUTE, WRITE, READ = 1, 2, 4
_RIGHTS: Final = {READ, READ | EXECUTE, READ | WRITE}


class Refused(Exception):
    """The reason, on its way out of a nested check."""


class Segment(NamedTuple):
    """A program header: `nbytes` of the file at `offset` are `memory_nbytes` at `address`."""

    kind: int
    flags: int
    offset: int
    address: int
    nbytes: int
    memory_nbytes: int
    align: int

    @property
    def end(self) -> int:
        """Of its memory."""
        return self.address + self.memory_nbytes

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether bytes of memory come from the file here."""
        return self.address <= address and address + nbytes <= self.address + self.nbytes


@dataclass(frozen=True, slots=True)
class Image:
    """An ELF file of which it is known what is mapped.

    Attributes:
        code: the file.
        wide: whether its words have 64 bits.
        loads: what is mapped, by address. No two share a page.
        dynamic: the one that lists the tables; lies in one of `loads`, which is written.
    """

    code: bytes
    wide: bool
    loads: tuple[Segment, ...]
    dynamic: Segment

    def words(self, offset: int, layout: str) -> tuple[int, ...]:
        """Little-endian fields at a file offset; "P" in the layout is a word of the class."""
        return fields(layout, self.wide).unpack_from(self.code, offset)

    def home(self, address: int, nbytes: int) -> Segment:
        """Who maps bytes of the file at an address.

        Raises:
            Refused: nobody.
        """
        for segment in self.loads:
            if segment.holds(address, nbytes):
                return segment
        raise Refused(f"address {address:#x} is in no segment of the file")

    def constant(self, address: int, nbytes: int, what: str) -> int:
        """The file offset of bytes that nothing changes between the file and their use.

        Raises:
            Refused: they are not mapped, or may be written.
        """
        home = self.home(address, nbytes)
        if home.flags & WRITE:
            raise Refused(f"{what} lies where the loader may write before it reads it")
        return home.offset + address - home.address

    def may_be_written(self, address: int, nbytes: int) -> bool:
        """Whether it is memory for data, and not the list of tables."""
        listed, end = self.dynamic, address + nbytes
        if address < listed.end and listed.address < end:
            return False
        for segment in self.loads:
            if segment.flags & WRITE and segment.address <= address and end <= segment.end:
                return True
        return False


@cache
def fields(layout: str, wide: bool) -> struct.Struct:
    """Little-endian fields; "P" in the layout is a word of the file's class."""
    return struct.Struct("<" + layout.replace("P", "Q" if wide else "I"))


def image_of(code: bytes, machine: Machine) -> Image:
    """The image of a file for a machine.

    Raises:
        Refused: a loader could map it in another way than it looks, or it is for something else.
        struct.error: it is cut short.
    """
    wide = _check_ident(code, machine)
    segments = tuple(_segments(code, wide))
    for segment in segments:
        if segment.kind not in _KINDS:
            name = _KIND_NAMES.get(segment.kind, f"of type {segment.kind:#x}")
            raise Refused(f"a segment {name} is not allowed")
    by_kind = {kind: [s for s in segments if s.kind == kind] for kind in _KINDS}
    _check_loads(by_kind[LOAD], len(code), machine)
    _check_stack(by_kind[_STACK])
    if len(by_kind[_DYNAMIC]) != 1:
        raise Refused(f"{len(by_kind[_DYNAMIC])} dynamic sections instead of one")
    image = Image(code, wide, tuple(by_kind[LOAD]), by_kind[_DYNAMIC][0])
    _check_table_of_segments(image, by_kind[_PHDR], len(segments))
    _check_places(image, [s for s in segments if s.kind in _DESCRIPTIONS])
    return image


def _check_ident(code: bytes, machine: Machine) -> bool:
    """Whether its words have 64 bits."""
    if code[:4] != b"\x7fELF":
        raise Refused("not an ELF file")
    number, wide = machine.value
    if code[4:6] != bytes([2 if wide else 1, 1]):
        raise Refused(f"not a {64 if wide else 32}-bit little-endian ELF file")
    kind, found, version, _, _, _, flags, nbytes = fields("HHIPPPIH", wide).unpack_from(code, 16)
    if found != number:
        raise Refused(f"made for machine {found}, but this device is {machine.name} ({number})")
    if kind != _SHARED_OBJECT:
        raise Refused(f"not a shared object (e_type {kind})")
    if code[6:16] != b"\1".ljust(10, b"\0") or version != 1 or nbytes != _header_nbytes(wide):
        raise Refused("its header is not that of a plain System V object, version 1")
    conventions, ours = (flags & _EABI_MASK, _EABI) if machine is Machine.ARM else (flags, 0)
    if conventions != ours:
        raise Refused(f"its code follows other conventions than this device's (flags {flags:#x})")
    return wide


def _header_nbytes(wide: bool) -> int:
    return 64 if wide else 52


def _segments(code: bytes, wide: bool) -> Iterator[Segment]:
    (start,) = fields("P", wide).unpack_from(code, 32 if wide else 28)
    entry_nbytes, count = fields("HH", wide).unpack_from(code, 54 if wide else 42)
    if not 0 < count <= _HEADERS:
        raise Refused(f"{count} program headers; 1 to {_HEADERS} are usual")
    if entry_nbytes != _entry_nbytes(wide):
        raise Refused(f"program headers of {plural(entry_nbytes, 'byte')}")
    if start != _header_nbytes(wide):
        raise Refused("program headers do not follow the header of the file")
    for offset in range(start, start + count * entry_nbytes, entry_nbytes):
        if wide:
            kind, flags, at, address, _, nbytes, memory, align = fields(
                "IIQQQQQQ", wide
            ).unpack_from(code, offset)
        else:
            kind, at, address, _, nbytes, memory, flags, align = fields(
                "IIIIIIII", wide
            ).unpack_from(code, offset)
        yield Segment(kind, flags, at, address, nbytes, memory, align)


def _entry_nbytes(wide: bool) -> int:
    return 56 if wide else 32


def _check_loads(loads: Sequence[Segment], file_nbytes: int, machine: Machine) -> None:
    if not loads or (loads[0].offset, loads[0].address) != (0, 0):
        raise Refused("its first segment does not begin at address 0 with the start of the file")
    align = loads[0].align
    least = max(PAGE_NBYTES[machine])
    if not least <= align <= _MOST_ALIGN or align & align - 1:
        raise Refused(f"segments aligned by {align:#x}; pages may have {least:#x} bytes")
    for number, segment in enumerate(loads):
        _check_load(f"segment {number} (PT_LOAD)", segment, align, file_nbytes)
    for number, (before, segment) in enumerate(pairwise(loads), 1):
        gap = segment.offset - before.offset - before.nbytes
        if not 0 <= gap < align:
            raise Refused(f"segment {number} (PT_LOAD) does not follow the one before in the file")
        # our linker rounds an end up to a word first, which may be the next page's first
        ends = (before.end, before.end + -before.end % _WORD_NBYTES + 1)
        if segment.address // align not in {-(-end // align) for end in ends}:
            raise Refused(
                f"segment {number} (PT_LOAD) is not on the pages after those of the one before"
            )


def _check_load(name: str, segment: Segment, align: int, file_nbytes: int) -> None:
    if segment.flags & WRITE and segment.flags & EXECUTE:
        raise Refused(f"{name} is both writable and executable")
    if segment.flags not in _RIGHTS:
        raise Refused(f"{name} has flags {segment.flags:#x}")
    if segment.align != align or (segment.address - segment.offset) % align:
        raise Refused(f"{name} is not aligned as the first one is ({align:#x})")
    if segment.offset + segment.nbytes > file_nbytes:
        raise Refused(f"the file is truncated: {name} reaches beyond its end")
    if not 0 < segment.nbytes <= segment.memory_nbytes:
        raise Refused(f"{name} has {segment.nbytes} bytes for {segment.memory_nbytes} of memory")
    if segment.memory_nbytes > segment.nbytes and not segment.flags & WRITE:
        raise Refused(f"{name} has memory that the file does not fill, but is only read")
    if segment.end > _MOST_MEMORY_NBYTES:
        raise Refused(f"{name} ends at {segment.end:#x}; {_MOST_MEMORY_NBYTES:#x} is the most")


def _check_stack(stacks: Sequence[Segment]) -> None:
    if len(stacks) != 1 or stacks[0].flags & EXECUTE:
        raise Refused("asks for an executable stack (link with -z noexecstack)")


def _check_table_of_segments(image: Image, tables: Sequence[Segment], count: int) -> None:
    """The loader tells others where it lies in memory."""
    start = _header_nbytes(image.wide)
    nbytes = count * _entry_nbytes(image.wide)
    if image.loads[0].nbytes < start + nbytes or image.loads[0].flags & WRITE:
        raise Refused("program headers are not mapped with the first segment, to be read only")
    for table in tables:
        if (table.offset, table.address, table.nbytes) != (start, start, nbytes):
            raise Refused("a segment PT_PHDR is somewhere else than the program headers")


def _check_places(image: Image, descriptions: Sequence[Segment]) -> None:
    for segment in (image.dynamic, *descriptions):
        home = image.home(segment.address, segment.nbytes)
        if segment.offset - home.offset != segment.address - home.address:
            raise Refused("a segment is said to lie elsewhere in the file than where it is mapped")
        if segment.memory_nbytes != segment.nbytes:
            raise Refused("a segment within another has another size in memory than in the file")
        if bool(home.flags & WRITE) != (segment is image.dynamic):
            raise Refused(
                "the dynamic section has to lie in memory that is written, notes in memory that"
                " is not"
            )
