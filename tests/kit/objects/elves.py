"""Small ELF shared objects for tests, written byte by byte: no compiler is needed."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

_HEADER_NBYTES, _SEGMENT_NBYTES, _DYNAMICS = 64, 56, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Elf:
    """What a test may want to be different about a 64-bit shared object that is otherwise fine.

    `undefined` are the symbols that its relocations ask for, `repeats` times each; `dynamic` are
    extra (tag, value) entries; `segments` are extra (type, flags) program headers; `payload` makes
    its digest unique.
    """

    undefined: tuple[str, ...] = ("VTASynchronize",)
    dynamic: tuple[tuple[int, int], ...] = ()
    segments: tuple[tuple[int, int], ...] = ()
    stack_flags: int | None = 6
    load_flags: int = 5
    kind: int = 3
    machine: int = 62
    relocation: int = 7
    repeats: int = 1
    page_nbytes: int = 0x1000
    symbol_type: int = 0
    payload: bytes = field(default=b"kernel")

    def build(self) -> bytes:
        """The file: tables and payload in one segment, dynamic section and slots in another."""
        count = 1 + len(self.undefined)
        strings = b"\0" + b"".join(name.encode() + b"\0" for name in self.undefined)
        count_nbytes = 4 * (3 + count)
        hash_at = _HEADER_NBYTES + _SEGMENT_NBYTES * len(self._segments(0, 0))
        strings_at = hash_at + count_nbytes
        symbols_at = _aligned(strings_at + len(strings))
        relocations_at = symbols_at + 24 * count
        end = relocations_at + 24 * len(self.undefined) * self.repeats + len(self.payload)
        data_at = _aligned(end)
        dynamic_nbytes = 16 * (_DYNAMICS + len(self.dynamic))
        slots_at = data_at + dynamic_nbytes
        body = struct.pack(f"<{3 + count}I", 1, count, min(1, count - 1), 0, *_chain(count))
        body = (body + strings).ljust(symbols_at - hash_at, b"\0") + self._symbols()
        body += b"".join(
            struct.pack(
                "<QQq",
                slots_at + self.page_nbytes + 8 * index,
                (index + 1) << 32 | self.relocation,
                0,
            )
            for index in range(len(self.undefined))
            for _ in range(self.repeats)
        )
        entries = (
            (4, hash_at),
            (5, strings_at),
            (10, len(strings)),
            (6, symbols_at),
            (11, 24),
            (7, relocations_at),
            (8, 24 * len(self.undefined) * self.repeats),
            (9, 24),
            *self.dynamic,
            (0, 0),
        )
        body = (body + self.payload).ljust(data_at - hash_at, b"\0")
        body += b"".join(struct.pack("<QQ", tag, value) for tag, value in entries)
        return self._headers(end, data_at) + body + bytes(8 * len(self.undefined))

    def _symbols(self) -> bytes:
        rows = [bytes(24)]
        name_at = 1
        for name in self.undefined:
            rows.append(struct.pack("<IBBHQQ", name_at, 16 | self.symbol_type, 0, 0, 0, 0))
            name_at += len(name) + 1
        return b"".join(rows)

    def _segments(self, end: int, data_at: int) -> list[tuple[int, int, int, int, int, int]]:
        """(type, flags, offset, address, size, alignment) of each."""
        address, dynamic_nbytes = data_at + self.page_nbytes, 16 * (_DYNAMICS + len(self.dynamic))
        data_nbytes = dynamic_nbytes + 8 * len(self.undefined)
        segments = [
            (1, self.load_flags, 0, 0, end, self.page_nbytes),
            (1, 6, data_at, address, data_nbytes, self.page_nbytes),
            (2, 6, data_at, address, dynamic_nbytes, 8),
        ]
        if self.stack_flags is not None:
            segments.append((0x6474E551, self.stack_flags, 0, 0, 0, 16))
        return segments + [(kind, flags, 0, 0, 0, 8) for kind, flags in self.segments]

    def _headers(self, end: int, data_at: int) -> bytes:
        segments = self._segments(end, data_at)
        ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        header = ident + struct.pack(
            "<HHIQQQIHHHHHH",
            *(self.kind, self.machine, 1, 0, _HEADER_NBYTES, 0, 0),
            *(_HEADER_NBYTES, _SEGMENT_NBYTES, len(segments), 0, 0, 0),
        )
        return header + b"".join(
            struct.pack("<IIQQQQQQ", kind, flags, at, address, address, size, size, align)
            for kind, flags, at, address, size, align in segments
        )


def _aligned(at: int) -> int:
    return at + -at % 8


def _chain(count: int) -> list[int]:
    """The rest of one bucket with all symbols."""
    return [*range(2, count), 0] if count > 1 else []
