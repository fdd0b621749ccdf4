"""Dot products of 8 bits by the instructions that a processor has for them.

    total[o] += sum over i of data[i] * row[o][i]      for all lanes o at once

The tile of rows is turned so that a vector holds four neighbouring products of every lane. Data's
four are splat to all lanes; or turned as well where each lane has its own, and woven where lanes
have those side by side. Rows are int8, data are uint8 or int8. Sums are exact, so every way gives
the same bits:

    vpdpbusd   u8 * s8, four at a time
    sdot       s8 * s8, four at a time
    usdot      as sdot, and u8 * s8 as well
    pmaddwd    s16 * s16, two at a time: bytes 0 and 2, then 1 and 3; or the pairs there are
    saddlp     as pmaddwd, of products that still fit 16 bits; vpaddl is its name on 32-bit ARM

Where data have the other sign than an instruction takes, their upper bits are flipped, which moves
them by 128, and 128 * the row's sum is taken off again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tilefarm.dtype import DType

from compile_worker.codegen.interleave import shuffled
from compile_worker.codegen.interleave import woven as interwoven
from compile_worker.codegen.text import FunctionText
from compile_worker.isa import Isa
from compile_worker.passes.dot_products import Dot

_QUAD: Final = 4
_CHUNK: Final = 16
"""Products that one lane of the dot product instructions sums, and bytes of a 128-bit vector."""
_FLIP: Final = -0x7F7F7F80
"""0x80 in every byte: flips the upper bits of four, and is what they are moved by."""


@dataclass(frozen=True, slots=True)
class _Quads:
    """Quads of data: one of `width` at `at`, the same for all lanes; or one a lane (width 0)."""

    vector: str
    at: int = 0
    width: int = 0


class DotWriter:
    """Writes the dot products of one vectorized loop."""

    def __init__(self, text: FunctionText, isa: Isa, lanes: int) -> None:
        self._text = text
        self._native = min(isa.lanes, lanes)
        self._lanes = lanes
        self._way = isa.dot.rstrip("0123456789")
        self._instruction = INSTRUCTIONS[isa.dot]
        self._pairs = INSTRUCTIONS.get(isa.pair, "")

    def total(self, start: str, dot: Dot, data: str, rows: str) -> str:
        """`start` plus the products: vector in, vector out; `data` and `rows` are addresses."""
        if dot.is_pair:
            return self._by_one_pair(start, dot, data, rows)
        count = dot.count // _QUAD
        rows_by_quad = self._turned(rows, count, dot.distance)
        if dot.apart == 1:
            data_by_quad = [_Quads(self._woven(data, dot.between))]
        else:
            data_by_quad = self._data(data, count, dot.apart)
        return _WAYS[self._way](self, start, data_by_quad, rows_by_quad, dot.is_unsigned)

    def _data(self, data: str, quads: int, apart: int) -> list[_Quads]:
        """For each quad of the data what all lanes take of it."""
        if apart:
            return [_Quads(each) for each in self._turned(data, quads, apart)]
        whole = self._text.op(f"load <{quads} x i32>, ptr {data}, align 1")
        return [_Quads(whole, at, quads) for at in range(quads)]

    def _woven(self, data: str, between: int) -> str:
        """A quad for every lane, of bytes that lanes have side by side: those `between` apart."""
        lanes, kind = self._lanes, f"<{self._lanes} x i8>"
        order = [part * lanes + lane for lane in range(lanes) for part in range(_QUAD)]
        if between == lanes:
            whole = self._text.op(f"load <{_QUAD * lanes} x i8>, ptr {data}, align 1")
            woven = shuffled(self._text, whole, "poison", order, _QUAD * lanes, "i8")
        else:
            parts = []
            for part in range(_QUAD):
                place = self._text.op(f"getelementptr i8, ptr {data}, i64 {part * between}")
                parts.append(self._text.op(f"load {kind}, ptr {place}, align 1"))
            woven = interwoven(self._text, parts, lanes, "i8")
        return self._as(woven, f"<{_QUAD * lanes} x i8>", f"<{lanes} x i32>")

    def by_unsigned(
        self, start: str, data: Sequence[_Quads], rows: Sequence[str], unsigned: bool
    ) -> str:
        return self._by_quads(start, data, rows, flip=not unsigned)

    def by_signed(
        self, start: str, data: Sequence[_Quads], rows: Sequence[str], unsigned: bool
    ) -> str:
        return self._by_quads(start, data, rows, flip=unsigned)

    def by_either(
        self, start: str, data: Sequence[_Quads], rows: Sequence[str], unsigned: bool
    ) -> str:
        instruction = INSTRUCTIONS["usdot" if unsigned else "sdot"]
        for quads, row in zip(data, rows, strict=True):
            start = self._each(start, self._spread(quads), row, "i8", _QUAD, instruction)
        return start

    def _by_quads(
        self, start: str, data: Sequence[_Quads], rows: Sequence[str], *, flip: bool
    ) -> str:
        if flip:
            data = self._mapped(data, self._flipped)
        for quads, row in zip(data, rows, strict=True):
            start = self._each(start, self._spread(quads), row, "i8", _QUAD)
        if not flip:
            return start
        excess, lanes = "zeroinitializer", f"<{self._lanes} x i32>"
        for row in rows:
            excess = self._each(excess, f"splat (i32 {_FLIP})", row, "i8", _QUAD)
        return self._text.op(f"sub {lanes} {start}, {excess}")

    def _flipped(self, quads: str, width: int) -> str:
        return self._text.op(f"xor <{width} x i32> {quads}, splat (i32 {_FLIP})")

    def _mapped(self, data: Sequence[_Quads], change: Callable[[str, int], str]) -> list[_Quads]:
        """The data with every vector changed, once each."""
        changed: dict[str, str] = {}
        for each in data:
            if each.vector not in changed:
                changed[each.vector] = change(each.vector, each.width or self._lanes)
        return [replace(each, vector=changed[each.vector]) for each in data]

    def _spread(self, quads: _Quads) -> str:
        """A quad for every lane."""
        if not quads.width:
            return quads.vector
        return self._splat(quads.vector, quads.at, quads.width)

    def _halves(self, data: Sequence[_Quads], unsigned: bool) -> list[list[_Quads]]:
        """Bytes 0 and 2, and bytes 1 and 3, of all data as int16."""

        def half(which: int) -> Callable[[str, int], str]:
            return lambda vector, width: self._pair(vector, width, which, unsigned=unsigned)

        return [self._mapped(data, half(which)) for which in (0, 1)]

    def by_pairs(
        self, start: str, data: Sequence[_Quads], rows: Sequence[str], unsigned: bool
    ) -> str:
        lanes = f"<{self._lanes} x i32>"
        low, high = self._halves(data, unsigned)
        for first, second, row in zip(low, high, rows, strict=True):
            for which, half in enumerate((first, second)):
                own = self._pair(row, self._lanes, which)
                added = self._each(None, self._spread(half), own, "i16", 2)
                start = self._text.op(f"add {lanes} {start}, {added}")
        return start

    def _by_one_pair(self, start: str, dot: Dot, data: str, rows: str) -> str:
        """A pair of int16, for all lanes or each lane's own, times each lane's own of the rows."""
        lanes = f"<{self._lanes} x i32>"
        if dot.apart:
            pairs = self._text.op(f"load {lanes}, ptr {data}, align 2")
        else:
            one = self._text.op(f"load <1 x i32>, ptr {data}, align 2")
            pairs = self._splat(one, 0, 1)
        wide = f"<{2 * self._lanes} x i16>"
        if dot.row.dtype is DType.INT16:
            own = self._text.op(f"load {lanes}, ptr {rows}, align 2")
        else:
            narrow = f"<{2 * self._lanes} x i8>"
            row = self._text.op(f"load {narrow}, ptr {rows}, align 1")
            own = self._as(self._text.op(f"sext {narrow} {row} to {wide}"), wide, lanes)
        added = self._each(None, pairs, own, "i16", 2, self._pairs)
        return self._text.op(f"add {lanes} {start}, {added}")

    def by_products(
        self, start: str, data: Sequence[_Quads], rows: Sequence[str], unsigned: bool
    ) -> str:
        lanes, pairs = f"<{self._lanes} x i32>", f"<{2 * self._lanes} x i16>"
        low, high = self._halves(data, unsigned)
        for first, second, row in zip(low, high, rows, strict=True):
            for which, half in enumerate((first, second)):
                taken = self._as(self._spread(half), lanes, pairs)
                own = self._as(self._pair(row, self._lanes, which), lanes, pairs)
                product = self._text.op(f"mul {pairs} {taken}, {own}")
                added = self._each(None, self._as(product, pairs, lanes), None, "i16", 2)
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

    def _pair(self, vector: str, width: int, half: int, *, unsigned: bool = False) -> str:
        """Bytes 0 and 2 (half 0) or 1 and 3 of every int32, as two int16."""
        quads, halves = f"<{width} x i32>", f"<{2 * width} x i16>"
        value = self._as(vector, quads, halves)
        if half == 0:
            value = self._text.op(f"shl {halves} {value}, splat (i16 8)")
        shift = "lshr" if unsigned else "ashr"
        return self._as(self._text.op(f"{shift} {halves} {value}, splat (i16 8)"), halves, quads)

    def _as(self, value: str, kind: str, other: str) -> str:
        return self._text.op(f"bitcast {kind} {value} to {other}")

    def _each(
        self,
        start: str | None,
        data: str,
        row: str | None,
        element: str,
        per_lane: int,
        instruction: str = "",
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
                self._text.op(
                    f"call {narrow} @{instruction or self._instruction}({', '.join(arguments)})"
                )
            )
        return self._joined(parts, width)

    def _constant_or_part(self, vector: str, lanes: range) -> str:
        if not vector.startswith("%"):
            return vector
        return self._picked(vector, self._lanes, lanes)


_WAYS: Final[Mapping[str, Callable[[DotWriter, str, list[_Quads], list[str], bool], str]]] = {
    "vpdpbusd": DotWriter.by_unsigned,
    "sdot": DotWriter.by_signed,
    "usdot": DotWriter.by_either,
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
    "usdot": "llvm.aarch64.neon.usdot.v4i32.v16i8",
    "smmla": "llvm.aarch64.neon.smmla.v4i32.v16i8",
    "usmmla": "llvm.aarch64.neon.usmmla.v4i32.v16i8",
    "saddlp": "llvm.aarch64.neon.saddlp.v4i32.v8i16",
    "vpaddl": "llvm.arm.neon.vpaddls.v4i32.v8i16",
}
"""LLVM's name of an instruction."""


def _order(lanes: Sequence[int]) -> str:
    return f"<{len(lanes)} x i32> <{', '.join(f'i32 {lane}' for lane in lanes)}>"
