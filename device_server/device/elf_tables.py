"""The tables of a shared object that a loader follows: dynamic entries, symbols, relocations.

Only what the project's linkers write is followed (`compile_worker.codegen.link`); whatever else a
loader understands is refused by its name. Tables lie where nothing is written, so that no
relocation changes what is read after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from device_server.device.elf_image import Image, Machine, Refused, fields

_DYNAMICS: Final = 64
_SYMBOLS: Final = 1 << 15
_RELOCATIONS: Final = 1 << 15
"""More than whole networks have; looking at them holds up a server for a quarter of a second."""

_PLTRELSZ, _PLTGOT, _HASH, _STRTAB, SYMTAB, _RELA, _RELASZ, _RELAENT = 2, 3, 4, 5, 6, 7, 8, 9
_STRSZ, _SYMENT, _REL, _RELSZ, _RELENT, _PLTREL, _JMPREL = 10, 11, 17, 18, 19, 20, 23
_BIND_NOW, _FLAGS, _FLAGS_1, _GNU_HASH = 24, 30, 0x6FFFFFFB, 0x6FFFFEF5
_RELACOUNT, _RELCOUNT = 0x6FFFFFF9, 0x6FFFFFFA
_TAGS: Final = frozenset(
    {_PLTRELSZ, _PLTGOT, _HASH, _STRTAB, SYMTAB, _RELA, _RELASZ, _RELAENT}
    | {_STRSZ, _SYMENT, _REL, _RELSZ, _RELENT, _PLTREL, _JMPREL}
    | {_BIND_NOW, _FLAGS, _FLAGS_1, _GNU_HASH, _RELACOUNT, _RELCOUNT}
)
_TAG_NAMES: Final = {
    1: "DT_NEEDED",
    12: "DT_INIT",
    13: "DT_FINI",
    14: "DT_SONAME",
    15: "DT_RPATH",
    16: "DT_SYMBOLIC",
    22: "DT_TEXTREL (compile position-independent code)",
    25: "DT_INIT_ARRAY",
    26: "DT_FINI_ARRAY",
    29: "DT_RUNPATH",
    32: "DT_PREINIT_ARRAY",
    0x7FFFFFFD: "DT_AUXILIARY",
    0x7FFFFFFF: "DT_FILTER",
}
_TOGETHER: Final = (
    {_STRTAB, _STRSZ},
    {_RELA, _RELASZ, _RELAENT},
    {_REL, _RELSZ, _RELENT},
    {_JMPREL, _PLTRELSZ, _PLTREL},
)
"""Where a table is, how long it is and what its rows are like: a loader asks for all."""
_NOW: Final[Mapping[int, tuple[int, str]]] = {_FLAGS: (8, "DT_FLAGS"), _FLAGS_1: (1, "DT_FLAGS_1")}
"""All that flags may say: that functions are looked up as the object is loaded."""
_TEXTREL: Final = 4


@dataclass(frozen=True, slots=True)
class _Processor:
    """How relocations of a machine are written, and which there may be."""

    form: int
    relative: int
    symbolic: frozenset[int]
    # Calls a function to know what to write.
    indirect: int


_PROCESSORS: Final[Mapping[Machine, _Processor]] = {
    # An address of a symbol; a slot that data, and a slot that calls go through.
    Machine.X86_64: _Processor(_RELA, 8, frozenset({1, 6, 7}), 37),
    Machine.AARCH64: _Processor(_RELA, 1027, frozenset({257, 1025, 1026}), 1032),
    Machine.ARM: _Processor(_REL, 23, frozenset({2, 21, 22}), 160),
}

_INFOS: Final = {
    # Bindings LOCAL, GLOBAL, WEAK of NOTYPE, OBJECT, FUNC; and a local SECTION.
    *(binding << 4 | kind for binding in range(3) for kind in range(3)),
    3,
}
_INDIRECT_FUNCTION: Final = 10
_NAME_NBYTES: Final = 1024
_SHOWN: Final = 64
"""Characters of a name in a reason."""
_RESERVED_SECTIONS: Final = 0xFF00


@dataclass(frozen=True, slots=True)
class Tables:
    """What was found: `symbols` counts them; `places` are what relocations write, in order."""

    entries: Mapping[int, int]
    symbols: int
    symbol_nbytes: int
    places: tuple[int, ...]


def tables_of(image: Image, machine: Machine, known: frozenset[str]) -> Tables:
    """The tables of an image for a machine, where functions of other names than `known` lack.

    Raises:
        Refused: something is asked for that no kernel needs, or tables contradict each other.
        struct.error: they point outside of the file.
    """
    entries = _entries(image)
    if _STRTAB not in entries or SYMTAB not in entries:
        raise Refused("no symbol table, so no entry can be found in it")
    symbol_nbytes = 24 if image.wide else 16
    if entries.get(_SYMENT, symbol_nbytes) != symbol_nbytes:
        raise Refused(f"symbols of {entries[_SYMENT]} bytes")
    count = _symbol_count(image, entries)
    _check_symbols(image, entries, count, known)
    places = tuple(_places(image, machine, entries, count))
    got = entries.get(_PLTGOT)
    if got is not None and not image.may_be_written(got, 3 * _word_nbytes(image)):
        raise Refused("DT_PLTGOT is where no slots may be")
    return Tables(entries, count, symbol_nbytes, places)


def _word_nbytes(image: Image) -> int:
    return 8 if image.wide else 4


def _entries(image: Image) -> dict[int, int]:
    entry_nbytes = 2 * _word_nbytes(image)
    section = image.dynamic
    if section.nbytes % entry_nbytes or section.address % _word_nbytes(image):
        raise Refused("the dynamic section is no row of entries")
    if section.nbytes > _DYNAMICS * entry_nbytes:
        raise Refused(f"more than {_DYNAMICS} dynamic entries")
    entries: dict[int, int] = {}
    for at in range(section.offset, section.offset + section.nbytes, entry_nbytes):
        tag, value = image.words(at, "PP")
        if tag == 0:
            _check_together(entries)
            _check_flags(entries)
            return entries
        if tag not in _TAGS:
            raise Refused(f"dynamic entry {_tag_name(tag)} is not allowed")
        if tag in entries:
            raise Refused(f"dynamic entry {_tag_name(tag)} is there twice")
        entries[tag] = value
    raise Refused("the dynamic section has no end")


def _tag_name(tag: int) -> str:
    return _TAG_NAMES.get(tag, f"{tag:#x}")


def _check_together(entries: Mapping[int, int]) -> None:
    for tags in _TOGETHER:
        if 0 < len(tags & entries.keys()) < len(tags):
            raise Refused("a table of which it is not said where it is, how long, or of what rows")


def _check_flags(entries: Mapping[int, int]) -> None:
    if entries.get(_FLAGS, 0) & _TEXTREL:
        raise Refused("relocates its own code (DF_TEXTREL); compile position-independent code")
    for tag, (allowed, name) in _NOW.items():
        if entries.get(tag, 0) & ~allowed:
            raise Refused(f"{name} {entries[tag]:#x} is not allowed")


def _symbol_count(image: Image, entries: Mapping[int, int]) -> int:
    """How many symbols there are; every one that a loader can come upon is among them."""
    counts = []
    if _HASH in entries:
        counts.append(_count_by_hash(image, entries[_HASH]))
    if _GNU_HASH in entries:
        counts.append(_count_by_gnu_hash(image, entries[_GNU_HASH]))
    if not counts:
        raise Refused("no hash table, so no entry can be found")
    if len(set(counts)) != 1:
        raise Refused("its two hash tables have different symbols")
    return counts[0]


def _count_by_hash(image: Image, address: int) -> int:
    what = "the hash table"
    buckets, count = image.words(image.constant(address, 8, what), "II")
    if not 0 < buckets <= _SYMBOLS or not 0 < count <= _SYMBOLS:
        raise Refused(f"{count} symbols in {buckets} buckets; {_SYMBOLS} are allowed")
    length = buckets + count
    at = image.constant(address + 8, 4 * length, what)
    words = image.words(at, f"{length}I")
    chain = words[buckets:]
    seen: set[int] = set()
    for first in words[:buckets]:
        symbol = first
        while symbol:
            if symbol >= count or symbol in seen:
                raise Refused("its hash table leads in circles, or out of the symbol table")
            seen.add(symbol)
            symbol = chain[symbol]
    return count


def _count_by_gnu_hash(image: Image, address: int) -> int:
    what = "the hash table"
    at = image.constant(address, 16, what)
    buckets, first, words, _ = image.words(at, "IIII")
    if not 0 < buckets <= _SYMBOLS or not 0 < first <= _SYMBOLS or not 0 < words <= _SYMBOLS:
        raise Refused(f"a hash table of {buckets} buckets and {words} words")
    if words & words - 1:
        raise Refused(f"a hash table with a filter of {words} words")
    start = address + 16 + words * _word_nbytes(image)
    at = image.constant(start, 4 * buckets, what)
    chain = start + 4 * buckets
    count = first
    for symbol in image.words(at, f"{buckets}I"):
        if not symbol:
            continue
        if symbol != count:
            raise Refused("its hash table does not list the symbols one after the other")
        while True:
            if count >= _SYMBOLS:
                raise Refused(f"more than {_SYMBOLS} symbols")
            (word,) = image.words(image.constant(chain + 4 * (count - first), 4, what), "I")
            count += 1
            if word & 1:
                break
    return count


def _check_symbols(
    image: Image, entries: Mapping[int, int], count: int, known: frozenset[str]
) -> None:
    nbytes = 24 if image.wide else 16
    start = image.constant(entries[SYMTAB], count * nbytes, "the symbol table")
    text_at = image.constant(entries[_STRTAB], entries[_STRSZ], "the table of names")
    text = image.code[text_at : text_at + entries[_STRSZ]]
    if not text.startswith(b"\0") or not text.endswith(b"\0"):
        raise Refused("the table of names does not end where it should")
    table = image.code[start : start + count * nbytes]
    if any(table[:nbytes]):
        raise Refused("its symbol table does not begin with an empty row")
    layout = fields("IBBHQQ" if image.wide else "IIIBBH", image.wide)
    for row in islice(layout.iter_unpack(table), 1, None):
        if image.wide:
            name, info, _, section, value, _ = row
        else:
            name, value, _, info, _, section = row
        if name >= len(text):
            raise Refused("a symbol's name lies outside of the table of names")
        end = text.find(b"\0", name, name + _NAME_NBYTES)
        if end < 0:
            raise Refused(f"a symbol's name has more than {_NAME_NBYTES} bytes")
        said = text[name:end].decode("ascii", "replace")
        _check_symbol(image, said, info, section, value, known)


def _check_symbol(
    image: Image, name: str, info: int, section: int, value: int, known: frozenset[str]
) -> None:
    if info & 15 == _INDIRECT_FUNCTION:
        raise Refused("an indirect function would run code while it is loaded")
    if info not in _INFOS:
        raise Refused(f"symbol {name[:_SHOWN]!r} is of a kind that is not allowed ({info:#x})")
    if section == 0:
        if name not in known:
            raise Refused(f"undefined symbol {name[:_SHOWN]!r} is not of the VTA runtime")
    elif section >= _RESERVED_SECTIONS or value > image.loads[-1].end:
        raise Refused(f"symbol {name[:_SHOWN]!r} is nothing in this object")


def _places(
    image: Image, machine: Machine, entries: Mapping[int, int], symbols: int
) -> Iterator[int]:
    """What each relocation writes that the loader would apply."""
    processor = _PROCESSORS[machine]
    rela = processor.form == _RELA
    start_tag, nbytes_tag, entry_tag, count_tag = (
        (_RELA, _RELASZ, _RELAENT, _RELACOUNT) if rela else (_REL, _RELSZ, _RELENT, _RELCOUNT)
    )
    layout = fields("PPP" if rela else "PP", image.wide)
    _check_form(entries, processor, entry_tag, layout.size)
    word_nbytes = _word_nbytes(image)
    in_front = entries.get(count_tag, 0)
    if in_front * layout.size > entries.get(nbytes_tag, 0):
        raise Refused("more relative relocations are announced than there are")
    for start, size in ((start_tag, nbytes_tag), (_JMPREL, _PLTRELSZ)):
        table = _relocations(image, entries.get(start, 0), entries.get(size, 0), layout.size)
        for number, (place, info, *_) in enumerate(layout.iter_unpack(table)):
            bits = 32 if image.wide else 8
            symbol, kind = info >> bits, info & ((1 << bits) - 1)
            _check_relocation(processor, symbol, kind, symbols)
            if start == start_tag and number < in_front and kind != processor.relative:
                raise Refused("more relative relocations are announced than there are")
            if not image.may_be_written(place, word_nbytes):
                raise Refused(f"a relocation writes to {place:#x}, which is no data")
            yield place


def _relocations(image: Image, address: int, nbytes: int, entry_nbytes: int) -> bytes:
    """The rows of one table."""
    if nbytes % entry_nbytes:
        raise Refused("relocations that are no row of entries")
    if nbytes > _RELOCATIONS * entry_nbytes:
        raise Refused(f"{nbytes // entry_nbytes} relocations; {_RELOCATIONS} are allowed")
    if not nbytes:
        return b""
    at = image.constant(address, nbytes, "the table of relocations")
    return image.code[at : at + nbytes]


def _check_form(
    entries: Mapping[int, int], processor: _Processor, entry_tag: int, entry_nbytes: int
) -> None:
    foreign = (
        {_REL, _RELSZ, _RELENT, _RELCOUNT}
        if processor.form == _RELA
        else {_RELA, _RELASZ, _RELAENT, _RELACOUNT}
    )
    if foreign & entries.keys() or entries.get(_PLTREL, processor.form) != processor.form:
        raise Refused("relocations in another form than its processor's")
    if entries.get(entry_tag, entry_nbytes) != entry_nbytes:
        raise Refused(f"relocations of {entries[entry_tag]} bytes")


def _check_relocation(processor: _Processor, symbol: int, kind: int, symbols: int) -> None:
    if kind == processor.indirect:
        raise Refused("an indirect function would run code while it is loaded")
    if kind == processor.relative:
        if symbol:
            raise Refused("a relative relocation names a symbol")
    elif kind not in processor.symbolic:
        raise Refused(f"a relocation of type {kind} is not allowed")
    elif not 0 < symbol < symbols:
        raise Refused(f"a relocation names symbol {symbol}, of {symbols}")
