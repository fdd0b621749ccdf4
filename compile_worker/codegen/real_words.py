"""Functions of float32 as LLVM instructions: the words of `tilefarm.real`, for scalars and vectors.

A value is computed once however often a function mentions it, and nothing branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from tilefarm.dtype import DType
from tilefarm.real import EXTREMES, FUNCTIONS

from compile_worker.ir.expr import Const, Expr, Max, Min

_ROUNDER: Final = 12582912.0
"""1.5 * 2^23: adding it leaves no fraction bits in a float32 of magnitude up to 2^22."""

_ROUNDER_BITS: Final = 0x4B400000

_LARGEST_ROUNDED: Final = 1 << 22

_FRACTION_BITS: Final = 23
_EXPONENT_BIAS: Final = 127
"""Of a float32: what is below its exponent, and what is added to it."""

F32: Final = DType.FLOAT32
I32: Final = DType.INT32


class Writer(Protocol):
    """Who writes the instructions: types and constants are those of one lane or of all."""

    def op(self, instruction: str) -> str: ...

    def kind(self, dtype: DType) -> str: ...

    def suffix(self, dtype: DType) -> str: ...

    def number(self, value: float, dtype: DType) -> str: ...

    def chosen(self, condition: str, kind: str, then: str, otherwise: str) -> str: ...


class Number:
    """A float32 by the name that it has in the text; its operators append instructions."""

    __slots__ = ("name", "writer")

    def __init__(self, writer: Writer, name: str) -> None:
        self.writer = writer
        self.name = name

    def __add__(self, other: Number | float) -> Number:
        return self._with("fadd", other)

    def __sub__(self, other: Number | float) -> Number:
        return self._with("fsub", other)

    def __mul__(self, other: Number | float) -> Number:
        return self._with("fmul", other)

    def __truediv__(self, other: Number | float) -> Number:
        return self._with("fdiv", other)

    def _with(self, operation: str, other: Number | float) -> Number:
        w = self.writer
        right = other.name if isinstance(other, Number) else w.number(other, F32)
        return Number(w, w.op(f"{operation} {w.kind(F32)} {self.name}, {right}"))


class LlvmWords:
    """Numbers of one writer; see `tilefarm.real.Words`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def number(self, value: float) -> Number:
        return Number(self._writer, self._writer.number(value, F32))

    def less(self, a: Number, b: Number) -> str:
        return self._compared("olt", a, b)

    def chosen(self, condition: str, then: Number, otherwise: Number) -> Number:
        w = self._writer
        return Number(w, w.chosen(condition, w.kind(F32), then.name, otherwise.name))

    def is_nan(self, x: Number) -> str:
        return self._compared("uno", x, x)

    def larger(self, a: Number, b: Number) -> Number:
        return self.chosen(self._compared("ogt", a, b), a, b)

    def smaller(self, a: Number, b: Number) -> Number:
        return self.chosen(self._compared("olt", a, b), a, b)

    def round_even(self, x: Number) -> Number:
        return (x + _ROUNDER) - _ROUNDER

    def sqrt(self, x: Number) -> Number:
        w = self._writer
        kind = w.kind(F32)
        return Number(w, w.op(f"call {kind} @llvm.sqrt.{w.suffix(F32)}({kind} {x.name})"))

    def power_of_two(self, k: Number) -> Number:
        """The bits of a float32 without a fraction: nothing but its exponent.

        An addition makes the integer, of whose bits the lowest nine are kept. A conversion of NaN
        would be poison, but these are some bits.
        """
        moved = self._whole(f"bitcast {self._writer.kind(F32)} {(k + _ROUNDER).name} to")
        bits = self._integers("shl", self._integers("add", moved, _EXPONENT_BIAS), _FRACTION_BITS)
        return self._real("bitcast", bits)

    def exponent(self, x: Number) -> Number:
        """The exponent among the bits of a positive float32."""
        bits = self._whole(f"bitcast {self._writer.kind(F32)} {x.name} to")
        biased = self._integers("lshr", bits, _FRACTION_BITS)
        return self._real("sitofp", self._integers("sub", biased, _EXPONENT_BIAS))

    def _compared(self, relation: str, a: Number, b: Number) -> str:
        kind = self._writer.kind(F32)
        return self._writer.op(f"fcmp {relation} {kind} {a.name}, {b.name}")

    def _integers(self, operation: str, left: str, right: int) -> str:
        w = self._writer
        return w.op(f"{operation} {w.kind(I32)} {left}, {w.number(right, I32)}")

    def _whole(self, conversion: str) -> str:
        return self._writer.op(f"{conversion} {self._writer.kind(I32)}")

    def _real(self, conversion: str, whole: str) -> Number:
        w = self._writer
        return Number(w, w.op(f"{conversion} {w.kind(I32)} {whole} to {w.kind(F32)}"))


def rounded_to_int(writer: Writer, value: str) -> str:
    """A float32 of magnitude up to 2^22 as int32, halves to even: the low bits of x + 1.5 * 2^23.

    One addition rounds and converts; what is left of the exponent's bits is taken off.
    """
    w = writer
    moved = w.op(f"fadd {w.kind(F32)} {value}, {w.number(_ROUNDER, F32)}")
    bits = w.op(f"bitcast {w.kind(F32)} {moved} to {w.kind(I32)}")
    return w.op(f"sub {w.kind(I32)} {bits}, {w.number(_ROUNDER_BITS, I32)}")


def is_small(expr: Expr) -> bool:
    """Whether a float32 is clipped to ends that are within what `rounded_to_int` takes."""
    match expr:
        case Min(Max(_, Const(low)), Const(high)):
            return -_LARGEST_ROUNDED <= low <= high <= _LARGEST_ROUNDED
        case _:
            return False


def extreme(writer: Writer, name: str, left: str, right: str) -> str:
    """The value of an intrinsic of `tilefarm.real.EXTREMES`."""
    words = LlvmWords(writer)
    found: Number = EXTREMES[name](words, Number(writer, left), Number(writer, right))
    return found.name


def called(writer: Writer, name: str, value: str, parameters: Sequence[Expr]) -> str:
    """The value of an intrinsic, `round_even` or a function of `tilefarm.real`."""
    words, x = LlvmWords(writer), Number(writer, value)
    if name == "round_even":
        return words.round_even(x).name
    literals = [float(each.value) for each in parameters if isinstance(each, Const)]
    found: Number = FUNCTIONS[name](words, x, *literals)
    return found.name
