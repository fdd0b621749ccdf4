"""What may be loaded: a plain ELF shared object that asks for nothing but the VTA runtime.

Whatever is not known to be harmless is refused: other segments, other dynamic entries (libraries,
search paths, code that runs at load), relocations against other symbols. This is hygiene and
version control; the boundary is the sandboxed child. Layouts are those of the System V ABI
("gabi", chapters 4 and 5) and its processor supplements.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Final, NamedTuple

from tilefarm.plural import plural

RUNTIME_SYMBOLS: Final = frozenset(
    {
        "VTABufferAlloc",
        "VTABufferFree",
        "VTABufferCopy",
        "VTABufferCPUPtr",
        "VTATLSCommandHandle",
        "VTARuntimeShutdown",
        "VTASetDebugMode",
        "VTAWriteBarrier",
        "VTAReadBarrier",
        "VTALoadBuffer2D",
        "VTAStoreBuffer2D",
        "VTAUopPush",
        "VTAUopLoopBegin",
        "VTAUopLoopEnd",
        "VTAPushGEMMOp",
        "VTAPushALUOp",
        "VTADepPush",
        "VTADepPop",
        "VTASynchronize",
    }
)
"""The VTA runtime's exported functions (apache/tvm-vta, include/vta/runtime/runtime.h)."""


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


_HEADERS: Final = 64
_DYNAMICS: Final = 256
_NAME_NBYTES: Final = 256
_RELOCATIONS: Final = 1 << 15
"""More than whole networks have; looking at them holds up a server for a quarter of a second."""

_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK = 1, 2, 0x6474E551
_SEGMENTS: Final = frozenset(
    # LOAD, DYNAMIC, NOTE, PHDR, GNU_EH_FRAME, GNU_STACK, GNU_RELRO, GNU_PROPERTY, ARM_EXIDX
    {1, 2, 4, 6, 0x6474E550, 0x6474E551, 0x6474E552, 0x6474E553, 0x70000001}
)
_SEGMENT_NAMES: Final = {3: "PT_INTERP", 7: "PT_TLS"}
_EXECUTE, _WRITE = 1, 2

_DT_STRTAB, _DT_SYMTAB, _DT_RELA, _DT_RELASZ, _DT_STRSZ = 5, 6, 7, 8, 10
_DT_REL, _DT_RELSZ, _DT_PLTREL, _DT_JMPREL, _DT_PLTRELSZ, _DT_FLAGS = 17, 18, 20, 23, 2, 30
_DYNAMIC_TAGS: Final = frozenset(
    # The above, and PLTGOT, HASH, RELAENT, SYMENT, SONAME, SYMBOLIC, RELENT, BIND_NOW, GNU_HASH,
    # RELACOUNT, RELCOUNT, FLAGS_1
    {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 16, 17, 18, 19, 20, 23, 24, 30}
    | {0x6FFFFEF5, 0x6FFFFFF9, 0x6FFFFFFA, 0x6FFFFFFB}
)
_TAG_NAMES: Final = {
    1: "DT_NEEDED",
    12: "DT_INIT",
    13: "DT_FINI",
    15: "DT_RPATH",
    22: "DT_TEXTREL",
    25: "DT_INIT_ARRAY",
    26: "DT_FINI_ARRAY",
    29: "DT_RUNPATH",
    32: "DT_PREINIT_ARRAY",
}
_DF_TEXTREL: Final = 4
_IRELATIVE: Final[Mapping[Machine, int]] = {
    Machine.X86_64: 37,
    Machine.AARCH64: 1032,
    Machine.ARM: 160,
}


class _Refused(Exception):
    """The reason, on its way out of a nested check."""


class _Segment(NamedTuple):
    kind: int
    flags: int
    offset: int
    address: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class _Image:
    """An ELF file with what its headers say."""

    code: bytes
    wide: bool
    segments: tuple[_Segment, ...]

    def words(self, offset: int, layout: str) -> tuple[int, ...]:
        """Little-endian fields at a file offset; "P" in the layout is a word of the class."""
        return _fields(layout, self.wide).unpack_from(self.code, offset)

    def offset_of(self, address: int, nbytes: int = 1) -> int:
        """Where `nbytes` bytes of memory lie in the file."""
        for segment in self.segments:
            start = address - segment.address
            if segment.kind == _PT_LOAD and start >= 0 and start + nbytes <= segment.nbytes:
                return segment.offset + start
        raise _Refused(f"address {address:#x} is in no segment of the file")


@cache
def _fields(layout: str, wide: bool) -> struct.Struct:
    return struct.Struct("<" + layout.replace("P", "Q" if wide else "I"))


def rejection(code: bytes, machine: Machine) -> str | None:
    """Why an artifact may not be loaded on a machine; None if it may. Never raises.

    Args:
        code: the whole file, whatever it is.
        machine: the device's processor.
    """
    try:
        image = _image(code, machine)
        _check_segments(image)
        entries = _dynamic(image)
        _check_dynamic(entries)
        _check_symbols(image, entries, machine)
    except _Refused as reason:
        return str(reason)
    except (struct.error, OverflowError):
        return "the file is truncated, or its headers point outside of it"
    return None


def _image(code: bytes, machine: Machine) -> _Image:
    if code[:4] != b"\x7fELF":
        raise _Refused("not an ELF file")
    number, wide = machine.value
    if len(code) < 20 or code[4] != (2 if wide else 1) or code[5] != 1:
        raise _Refused(f"not a {64 if wide else 32}-bit little-endian ELF file")
    image = _Image(code, wide, ())
    kind, found = image.words(16, "HH")
    if found != number:
        raise _Refused(f"made for machine {found}, but this device is {machine.name} ({number})")
    if kind != 3:
        raise _Refused(f"not a shared object (e_type {kind})")
    return _Image(code, wide, tuple(_segments(image)))


def _segments(image: _Image) -> Iterator[_Segment]:
    (start,) = image.words(32 if image.wide else 28, "P")
    entry_nbytes, count = image.words(54 if image.wide else 42, "HH")
    if not 0 < count <= _HEADERS:
        raise _Refused(f"{count} program headers; 1 to {_HEADERS} are usual")
    if entry_nbytes != (56 if image.wide else 32):
        raise _Refused(f"program headers of {plural(entry_nbytes, 'byte')}")
    for offset in range(start, start + count * entry_nbytes, entry_nbytes):
        if image.wide:
            kind, flags, at, address, _, nbytes = image.words(offset, "IIQQQQ")
        else:
            kind, at, address, _, nbytes, _, flags = image.words(offset, "IIIIIII")
        yield _Segment(kind, flags, at, address, nbytes)


def _check_segments(image: _Image) -> None:
    for segment in image.segments:
        if segment.kind not in _SEGMENTS:
            name = _SEGMENT_NAMES.get(segment.kind, f"of type {segment.kind:#x}")
            raise _Refused(f"a segment {name} is not allowed")
        if segment.kind == _PT_LOAD and segment.flags & _WRITE and segment.flags & _EXECUTE:
            raise _Refused("a segment is both writable and executable")
        if segment.kind == _PT_LOAD and segment.offset + segment.nbytes > len(image.code):
            raise _Refused("the file is truncated: a segment reaches beyond its end")
    stacks = [segment for segment in image.segments if segment.kind == _PT_GNU_STACK]
    if not stacks or any(segment.flags & _EXECUTE for segment in stacks):
        raise _Refused("asks for an executable stack (link with -z noexecstack)")


def _dynamic(image: _Image) -> dict[int, int]:
    found = [segment for segment in image.segments if segment.kind == _PT_DYNAMIC]
    if len(found) != 1:
        raise _Refused(f"{len(found)} dynamic sections instead of one")
    entry_nbytes = 16 if image.wide else 8
    # The loader reads the section through its address, so that is what must be looked at.
    start = image.offset_of(found[0].address, entry_nbytes)
    entries: dict[int, int] = {}
    for index in range(_DYNAMICS):
        tag, value = image.words(start + index * entry_nbytes, "PP")
        if tag == 0:
            return entries
        if tag in entries:
            raise _Refused(f"dynamic entry {_tag_name(tag)} is there twice")
        entries[tag] = value
    raise _Refused(f"more than {_DYNAMICS} dynamic entries")


def _check_dynamic(entries: Mapping[int, int]) -> None:
    for tag in entries:
        if tag not in _DYNAMIC_TAGS:
            raise _Refused(f"dynamic entry {_tag_name(tag)} is not allowed")
    if entries.get(_DT_FLAGS, 0) & _DF_TEXTREL:
        raise _Refused("relocates its own code (DF_TEXTREL); compile position-independent code")


def _tag_name(tag: int) -> str:
    return _TAG_NAMES.get(tag, f"{tag:#x}")


def _check_symbols(image: _Image, entries: Mapping[int, int], machine: Machine) -> None:
    if _DT_SYMTAB not in entries or _DT_STRTAB not in entries:
        raise _Refused("no symbol table, so no entry can be found in it")
    seen: set[int] = set()
    for symbol, kind in _relocations(image, entries):
        if kind == _IRELATIVE[machine]:
            raise _Refused("an indirect function would run code while it is loaded")
        if symbol not in seen:
            seen.add(symbol)
            _check_symbol(image, entries, symbol)


def _check_symbol(image: _Image, entries: Mapping[int, int], symbol: int) -> None:
    entry_nbytes = 24 if image.wide else 16
    at = image.offset_of(entries[_DT_SYMTAB] + symbol * entry_nbytes, entry_nbytes)
    name, info, section = _symbol_fields(image, at)
    if info & 15 == 10:
        raise _Refused("an indirect function would run code while it is loaded")
    if symbol and section == 0:
        text = _text(image, entries, name)
        if text not in RUNTIME_SYMBOLS:
            raise _Refused(f"undefined symbol {text!r} is not of the VTA runtime")


def _symbol_fields(image: _Image, at: int) -> tuple[int, int, int]:
    """(offset of the name, info, section index) of the symbol at a file offset."""
    if image.wide:
        name, info, _, section = image.words(at, "IBBH")
    else:
        name, _, _, info, _, section = image.words(at, "IIIBBH")
    return name, info, section


def _text(image: _Image, entries: Mapping[int, int], start: int) -> str:
    if start >= entries.get(_DT_STRSZ, 0):
        raise _Refused("a symbol's name lies outside of the string table")
    at = image.offset_of(entries[_DT_STRTAB] + start)
    return image.code[at : at + _NAME_NBYTES].partition(b"\0")[0].decode("ascii", "replace")


def _relocations(image: _Image, entries: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """(symbol index, type) of every relocation that the loader would apply."""
    jump_tag = _DT_RELA if entries.get(_DT_PLTREL) == _DT_RELA else _DT_REL
    tables = (
        (_DT_RELA, _DT_RELA, _DT_RELASZ),
        (_DT_REL, _DT_REL, _DT_RELSZ),
        (_DT_JMPREL, jump_tag, _DT_PLTRELSZ),
    )
    for start_tag, form, nbytes_tag in tables:
        if start_tag not in entries:
            continue
        nbytes = entries.get(nbytes_tag, 0)
        entry_nbytes = (3 if form == _DT_RELA else 2) * (8 if image.wide else 4)
        if nbytes > _RELOCATIONS * entry_nbytes:
            raise _Refused(f"{nbytes // entry_nbytes} relocations; {_RELOCATIONS} are allowed")
        start = image.offset_of(entries[start_tag], nbytes) if nbytes else 0
        table = image.code[start : start + nbytes // entry_nbytes * entry_nbytes]
        layout = "PPP" if form == _DT_RELA else "PP"
        for _, info, *_ in _fields(layout, image.wide).iter_unpack(table):
            yield (info >> 32, info & 0xFFFFFFFF) if image.wide else (info >> 8, info & 0xFF)
