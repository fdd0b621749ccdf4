"""Small ELF shared objects for tests, written byte by byte: no compiler is needed."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Elf:
    """What a test may want to be different about an x86-64 shared object that is otherwise fine.

    `undefined` are the symbols that its relocations ask for; `dynamic` are extra (tag, value)
    entries; `segments` are extra (type, flags) program headers; `payload` makes its digest unique.
    """

    undefined: tuple[str, ...] = ("VTASynchronize",)
    dynamic: tuple[tuple[int, int], ...] = ()
    segments: tuple[tuple[int, int], ...] = ()
    stack_flags: int | None = 6
    load_flags: int = 5
    kind: int = 3
    machine: int = 62
    relocation: int = 7
    symbol_type: int = 0
    payload: bytes = field(default=b"kernel")

    def build(self) -> bytes:
        """The file."""
        strings = b"\0" + b"".join(name.encode() + b"\0" for name in self.undefined)
        headers = 64 + 56 * (2 + (self.stack_flags is not None) + len(self.segments))
        symbols_at = headers + len(strings) + (-len(strings)) % 8
        symbols = self._symbols()
        relocations_at = symbols_at + len(symbols)
        relocations = b"".join(
            struct.pack("<QQq", 0, (index + 1) << 32 | self.relocation, 0)
            for index in range(len(self.undefined))
        )
        dynamic_at = relocations_at + len(relocations)
        dynamic = b"".join(
            struct.pack("<QQ", tag, value)
            for tag, value in (
                (5, headers),
                (10, len(strings)),
                (6, symbols_at),
                (11, 24),
                (7, relocations_at),
                (8, len(relocations)),
                (9, 24),
                *self.dynamic,
                (0, 0),
            )
        )
        body = strings.ljust(symbols_at - headers, b"\0") + symbols + relocations + dynamic
        nbytes = headers + len(body) + len(self.payload)
        return self._headers(nbytes, dynamic_at, len(dynamic)) + body + self.payload

    def _symbols(self) -> bytes:
        rows = [struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)]
        name_at = 1
        for name in self.undefined:
            rows.append(struct.pack("<IBBHQQ", name_at, 16 | self.symbol_type, 0, 0, 0, 0))
            name_at += len(name) + 1
        return b"".join(rows)

    def _headers(self, nbytes: int, dynamic_at: int, dynamic_nbytes: int) -> bytes:
        segments = [(1, self.load_flags, 0, nbytes), (2, 6, dynamic_at, dynamic_nbytes)]
        if self.stack_flags is not None:
            segments.append((0x6474E551, self.stack_flags, 0, 0))
        segments += [(kind, flags, 0, 0) for kind, flags in self.segments]
        ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        header = ident + struct.pack(
            "<HHIQQQIHHHHHH",
            self.kind,
            self.machine,
            1,
            0,
            64,
            0,
            0,
            64,
            56,
            len(segments),
            0,
            0,
            0,
        )
        return header + b"".join(
            struct.pack("<IIQQQQQQ", kind, flags, at, at, at, size, size, 8)
            for kind, flags, at, size in segments
        )
