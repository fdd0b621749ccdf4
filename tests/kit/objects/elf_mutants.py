"""Shared objects that are not what they look like: segments moved, hidden, over others; tables.

Every change is one that a linker does not make, or makes elsewhere: some leave an object as good as
it was. Rows have the order of 64-bit files' fields, see `compile_worker.codegen.elf_tables`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import numpy as np

from compile_worker.codegen.elf_tables import ElfClass, class_of

KIND, FLAGS, OFFSET, ADDRESS, PHYSICAL, NBYTES, MEMORY, ALIGN = range(8)
_LOAD, _DYNAMIC, _NOTE = 1, 2, 4
_PAGE: Final = 0x1000
_DT_INIT, _DT_INIT_ARRAY, _DT_INIT_ARRAYSZ = 12, 25, 27
_TAGS: Final = (0, 1, 3, 4, 5, 6, 7, 8, 12, 17, 20, 23, 25, 30, 0x6FFFFEF5, 0x6FFFFFF9, 0x6FFFFFFB)


class Edited:
    """An object whose program headers and tables can be changed."""

    def __init__(self, code: bytes) -> None:
        self.code = bytearray(code)
        self.elf: ElfClass = class_of(code)
        header = self.elf.header.unpack(code, 16)
        self._start, self._count = header[4], header[9]
        row = self.elf.segment
        self.segments = [
            list(row.unpack(code, self._start + n * row.nbytes)) for n in range(self._count)
        ]

    def written(self) -> bytes:
        """The file with its program headers."""
        table = b"".join(
            self.elf.segment.pack(*(value & self._mask(at) for at, value in enumerate(segment)))
            for segment in self.segments
        )
        made = bytes(self.code)
        return made[: self._start] + table + made[self._start + len(table) :]

    def of(self, kind: int) -> list[int]:
        """The last program header of a kind; of all where there is none."""
        found = [segment for segment in self.segments if segment[KIND] == kind]
        return (found or self.segments)[-1]

    def spare(self) -> list[int]:
        """A program header that says nothing needed; the last but one where there is none."""
        needed = (_LOAD, _DYNAMIC)
        return next((s for s in self.segments if s[KIND] not in needed), self.segments[-2])

    def appended(self, content: bytes, at: int) -> int:
        """Where it lies after it was put to the end of the file, as far into a page as `at`."""
        self.code += bytes((at - len(self.code)) % _PAGE)
        start = len(self.code)
        self.code += content
        return start

    def table(self, tag: int) -> tuple[int, int]:
        """The file offset and the value of a dynamic entry; of the end where there is none."""
        row, dynamic = self.elf.dynamic, self.of(_DYNAMIC)
        begin = max(0, min(dynamic[OFFSET], len(self.code) - row.nbytes))
        for at in range(begin, len(self.code) - row.nbytes + 1, row.nbytes):
            found, value = row.unpack(bytes(self.code[at : at + row.nbytes]), 0)
            if found in (tag, 0):
                return at, value
        return begin, 0

    def _mask(self, at: int) -> int:
        return (1 << 32) - 1 if at in (KIND, FLAGS) else (1 << 8 * self.elf.word_nbytes) - 1


def with_decoy(code: bytes, tags: frozenset[int]) -> bytes:
    """An object that looks as if it had no dynamic entries of some tags.

    A segment with another list covers the real one in the table of segments, and is itself covered
    in memory: loaders map it first.
    """
    made = Edited(code)
    data, dynamic, row = made.of(_LOAD), made.of(_DYNAMIC), made.elf.dynamic
    end = dynamic[OFFSET] + dynamic[NBYTES]
    rows = [row.unpack(code, at) for at in range(dynamic[OFFSET], end, row.nbytes)]
    clean = b"".join(row.pack(*entry) for entry in rows if entry[0] not in tags)
    covered = dynamic[ADDRESS] - dynamic[ADDRESS] % _PAGE
    front = code[dynamic[OFFSET] - dynamic[ADDRESS] % _PAGE : dynamic[OFFSET]]
    content = (front + clean).ljust(data[ADDRESS] + data[NBYTES] - covered, b"\0")
    decoy = [_LOAD, 6, made.appended(content, 0), covered, covered, len(content), len(content)]
    spare = made.spare()
    made.segments.remove(spare)
    made.segments.insert(made.segments.index(data), [*decoy, data[ALIGN]])
    return made.written()


def mutant(code: bytes, rng: np.random.Generator) -> bytes:
    """The object with one to three changes."""
    made = Edited(code)
    for _ in range(int(rng.integers(1, 4))):
        change = _CHANGES[int(rng.integers(len(_CHANGES)))]
        change(made, rng)
    return made.written()


def _any(made: Edited, rng: np.random.Generator) -> list[int]:
    return made.segments[int(rng.integers(len(made.segments)))]


def _moves_a_field(made: Edited, rng: np.random.Generator) -> None:
    segment, other = _any(made, rng), _any(made, rng)
    field = int(rng.integers(OFFSET, ALIGN + 1))
    steps = (1, 8, 16, _PAGE, 0x10000, -1, -8, -_PAGE, 1 << 31, 1 << 40)
    segment[field] = int(
        [other[field], 0, segment[field] + steps[int(rng.integers(len(steps)))]][rng.integers(3)]
    )


def _swaps_segments(made: Edited, rng: np.random.Generator) -> None:
    one, other = rng.integers(len(made.segments), size=2)
    made.segments[one], made.segments[other] = made.segments[other], made.segments[one]


def _lays_one_over_another(made: Edited, rng: np.random.Generator) -> None:
    """Another part of the file, over a page that a segment has: before it in the table or after."""
    below, spare = made.of(_LOAD), made.spare()
    align = int(below[ALIGN] if below[ALIGN] and rng.integers(4) else _PAGE)
    nbytes = int(rng.integers(1, _PAGE))
    at = below[OFFSET] + below[NBYTES] if rng.integers(2) else len(made.code)
    made.code += rng.bytes(max(0, at + nbytes - len(made.code)))
    page = below[ADDRESS] - below[ADDRESS] % align + align * int(rng.integers(-1, 2))
    start = page + at % align
    spare[:] = [_LOAD, int(4 + rng.integers(3)), at, start, start, nbytes, nbytes, align]
    if rng.integers(2):
        made.segments.remove(spare)
        made.segments.insert(int(rng.integers(len(made.segments) + 1)), spare)


def _hides_a_segment(made: Edited, rng: np.random.Generator) -> None:
    kinds = (0, _LOAD, _DYNAMIC, _NOTE, 6, 7, 0x6474E550, 0x6474E552, 0x60000000)
    _any(made, rng)[KIND] = int(rng.choice(kinds))


def _changes_rights(made: Edited, rng: np.random.Generator) -> None:
    _any(made, rng)[FLAGS] = int(rng.integers(8))


def _changes_the_list(made: Edited, rng: np.random.Generator) -> None:
    row = made.elf.dynamic
    at, value = made.table(int(rng.choice(_TAGS)))
    tag = int(rng.choice(_TAGS))
    if rng.integers(2):
        tag, _ = row.unpack(bytes(made.code[at : at + row.nbytes]), 0)
    value += int(rng.choice([0, 0, 1, 8, -8, 24, _PAGE, -value]))
    _put(made, at, row.pack(tag, value & ((1 << 8 * made.elf.word_nbytes) - 1)))


def _changes_a_table(made: Edited, rng: np.random.Generator) -> None:
    """A word of symbols, hashes, relocations or names."""
    _, at = made.table(int(rng.choice([4, 5, 6, 7, 17, 23, 0x6FFFFEF5])))
    at += 4 * int(rng.integers(24))
    values = (
        0,
        1,
        2,
        8,
        37,
        0x0A,
        0x12,
        0x1A,
        0x2000,
        0x2790,
        0xFFFFFFFF,
        int(rng.integers(1 << 14)),
    )
    _put(made, at, struct.pack("<I", int(rng.choice(values))))


def _moves_the_list(made: Edited, rng: np.random.Generator) -> None:
    """The dynamic section to a copy elsewhere, with something to run in it."""
    dynamic, row = made.of(_DYNAMIC), made.elf.dynamic
    content = bytes(made.code[dynamic[OFFSET] : dynamic[OFFSET] + min(dynamic[NBYTES], _PAGE)])
    content = row.pack(_DT_INIT, 0x200) + content
    dynamic[OFFSET] = made.appended(content, dynamic[ADDRESS])
    if rng.integers(2):
        dynamic[NBYTES] = dynamic[MEMORY] = len(content)


def _reorders_the_file(made: Edited, rng: np.random.Generator) -> None:
    """A segment to the end of the file, all else as it was."""
    segment = _any(made, rng)
    start = max(0, segment[OFFSET])
    content = bytes(made.code[start : start + min(segment[NBYTES], 1 << 16)])
    segment[OFFSET] = made.appended(content, segment[ADDRESS])


def _does_no_harm(made: Edited, rng: np.random.Generator) -> None:
    """More memory without contents, other code, or names that stay names."""
    match rng.integers(3):
        case 0:
            made.of(_LOAD)[MEMORY] += int(rng.integers(3 * _PAGE))
        case 1:
            data = made.of(_LOAD)
            _put(made, max(0, min(data[OFFSET], len(made.code)) - 24), rng.bytes(8))
        case _:
            made.code += rng.bytes(int(rng.integers(_PAGE)))


def _put(made: Edited, at: int, content: bytes) -> None:
    if 0 <= at <= len(made.code) - len(content):
        made.code[at : at + len(content)] = content


_CHANGES: Final[tuple[Callable[[Edited, np.random.Generator], None], ...]] = (
    _moves_a_field,
    _swaps_segments,
    _lays_one_over_another,
    _hides_a_segment,
    _changes_rights,
    _changes_the_list,
    _changes_a_table,
    _moves_the_list,
    _reorders_the_file,
    _does_no_harm,
    _does_no_harm,
    _does_no_harm,
    _does_no_harm,
)
