"""Dot products of int8 by the instructions that a processor has for them.

    total[o] += sum over i of data[i] * row[o][i]      for all lanes o at once

The tile of rows is turned so that a vector holds four neighbouring products of every lane; data's
four are splat to all lanes. Sums are exact, so every way gives the same bits:

    vpdpbusd   u8 * s8, four at a time: data + 128 is unsigned, and 128 * the row's sum is taken off
    sdot       s8 * s8, four at a time
    pmaddwd    s16 * s16, two at a time: bytes 0 and 2, then 1 and 3
    saddlp     as pmaddwd, of products that still fit 16 bits; vpaddl is its name on 32-bit ARM
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from compile_worker.codegen.text import FunctionText
from compile_worker.isa import Isa

_QUAD: Final = 4
_CHUNK: Final = 16
"""Products that one lane of the dot product instructions sums, and bytes of a 128-bit vector."""
_UNSIGN: Final = -0x7F7F7F80
"""0x80 in every byte: flips the sign of four int8, which adds 128 to each as unsigned."""


class DotWriter:
    """Writes the dot products of one vectorized loop."""

    def __init__(self, text: FunctionText, isa: Isa, lanes: int) -> None:
        self._text = text
        self._native = min(isa.lanes, lanes)
        self._lanes = lanes
        self._way = isa.dot.rstrip("0123456789")
        self._instruction = INSTRUCTIONS[isa.dot]

    def total(self, start: str, data: str, rows: str, count: int, distance: int) -> str:
        """`start` plus the products: vector in, vector out; `data` and `rows` are addresses."""
        rows_by_quad = self._turned(rows, count // _QUAD, distance)
        quads = self._text.op(f"load <{count // _QUAD} x i32>, ptr {data}, align 1")
        return _WAYS[self._way](self, start, quads, rows_by_quad)

    def by_quads(self, start: str, quads: str, rows: Sequence[str]) -> str:
        for at, row in enumerate(rows):
            start = self._each(start, self._splat(quads, at, len(rows)), row, "i8", _QUAD)
        return start

    def by_unsigned_quads(self, start: str, quads: str, rows: Sequence[str]) -> str:
        kind = f"<{len(rows)} x i32>"
        lifted = self._text.op(f"xor {kind} {quads}, splat (i32 {_UNSIGN})")
        start = self.by_quads(start, lifted, rows)
        excess, lanes = "zeroinitializer", f"<{self._lanes} x i32>"
        for row in rows:
            excess = self._each(excess, f"splat (i32 {_UNSIGN})", row, "i8", _QUAD)
        return self._text.op(f"sub {lanes} {start}, {excess}")

    def by_pairs(self, start: str, quads: str, rows: Sequence[str]) -> str:
        lanes = f"<{self._lanes} x i32>"
        parts = [self._pair(quads, len(rows), half) for half in (0, 1)]
        for at, row in enumerate(rows):
            for half, part in enumerate(parts):
                data, own = self._splat(part, at, len(rows)), self._pair(row, self._lanes, half)
                added = self._each(None, data, own, "i16", 2)
                start = self._text.op(f"add {lanes} {start}, {added}")
        return start

    def by_products(self, start: str, quads: str, rows: Sequence[str]) -> str:
        lanes, halves = f"<{self._lanes} x i32>", f"<{2 * self._lanes} x i16>"
        parts = [self._pair(quads, len(rows), half) for half in (0, 1)]
        for at, row in enumerate(rows):
            for half, part in enumerate(parts):
                data = self._as(self._splat(part, at, len(rows)), lanes, halves)
                own = self._as(self._pair(row, self._lanes, half), lanes, halves)
                product = self._text.op(f"mul {halves} {data}, {own}")
                added = self._each(None, self._as(product, halves, lanes), None, "i16", 2)
                start = self._text.op(f"add {lanes} {start}, {added}")
        return start

    def _turned(self, rows: str, quads: int, distance: int) -> list[str]:
        """For each quad of the rows a vector with that of every lane."""
        per_chunk = _CHUNK // quads if distance == _QUAD * quads and quads <= _CHUNK else 1
        per_chunk = min(per_chunk, self._lanes)
        chunks = []
        for lane in range(0, self._lanes, per_chunk):
            place = self._text.op(f"getelementptr i8, ptr {rows}, i64 {lane * distance}")
            chunks.append(self._text.op(f"load <{per_chunk * quads} x i32>, ptr {place}, align 1"))
        width = per_chunk * quads
        return [
            self._joined(
                [self._picked(c, width, range(q, width, quads)) for c in chunks], per_chunk
            )
            for q in range(quads)
        ]

    def _joined(self, parts: list[str], width: int) -> str:
        while len(parts) > 1:
            kind, order = f"<{width} x i32>", _order(range(2 * width))
            parts = [
                self._text.op(f"shufflevector {kind} {a}, {kind} {b}, {order}")
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
            width *= 2
        return parts[0]

    def _picked(self, vector: str, width: int, order: Sequence[int]) -> str:
        if list(order) == list(range(width)):
            return vector
        kind = f"<{width} x i32>"
        return self._text.op(f"shufflevector {kind} {vector}, {kind} poison, {_order(order)}")

    def _splat(self, vector: str, at: int, width: int) -> str:
        return self._picked(vector, width, [at] * self._lanes)

    def _pair(self, vector: str, width: int, half: int) -> str:
        """Bytes 0 and 2 (half 0) or 1 and 3 of every int32, as two int16."""
        quads, halves = f"<{width} x i32>", f"<{2 * width} x i16>"
        value = self._as(vector, quads, halves)
        if half == 0:
            value = self._text.op(f"shl {halves} {value}, splat (i16 8)")
        return self._as(self._text.op(f"ashr {halves} {value}, splat (i16 8)"), halves, quads)

    def _as(self, value: str, kind: str, other: str) -> str:
        return self._text.op(f"bitcast {kind} {value} to {other}")

    def _each(
        self, start: str | None, data: str, row: str | None, element: str, per_lane: int
    ) -> str:
        """The instruction on every native part of the vectors, which are of int32."""
        width = self._native
        narrow, operand = f"<{width} x i32>", f"<{width * per_lane} x {element}>"
        parts = []
        for lane in range(0, self._lanes, width):
            lanes = range(lane, lane + width)
            taken = [
                self._as(self._constant_or_part(v, lanes), narrow, operand)
                for v in (data, row)
                if v is not None
            ]
            arguments = [f"{operand} {each}" for each in taken]
            if start is not None:
                arguments.insert(0, f"{narrow} {self._constant_or_part(start, lanes)}")
            parts.append(
                self._text.op(f"call {narrow} @{self._instruction}({', '.join(arguments)})")
            )
        return self._joined(parts, width)

    def _constant_or_part(self, vector: str, lanes: range) -> str:
        if not vector.startswith("%"):
            return vector
        return self._picked(vector, self._lanes, lanes)


_WAYS: Final[Mapping[str, Callable[[DotWriter, str, str, Sequence[str]], str]]] = {
    "vpdpbusd": DotWriter.by_unsigned_quads,
    "sdot": DotWriter.by_quads,
    "pmaddwd": DotWriter.by_pairs,
    "saddlp": DotWriter.by_products,
    "vpaddl": DotWriter.by_products,
}

INSTRUCTIONS: Final[Mapping[str, str]] = {
    "vpdpbusd512": "llvm.x86.avx512.vpdpbusd.512",
    "vpdpbusd256": "llvm.x86.avx512.vpdpbusd.256",
    "pmaddwd512": "llvm.x86.avx512.pmaddw.d.512",
    "pmaddwd256": "llvm.x86.avx2.pmadd.wd",
    "pmaddwd128": "llvm.x86.sse2.pmadd.wd",
    "sdot": "llvm.aarch64.neon.sdot.v4i32.v16i8",
    "saddlp": "llvm.aarch64.neon.saddlp.v4i32.v8i16",
    "vpaddl": "llvm.arm.neon.vpaddls.v4i32.v8i16",
}
"""LLVM's name of an instruction."""


def _order(lanes: Sequence[int]) -> str:
    return f"<{len(lanes)} x i32> <{', '.join(f'i32 {lane}' for lane in lanes)}>"
