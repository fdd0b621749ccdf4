"""Bases of micro-op operands as sums over slots, and the one key that tells all their cases apart.

    wgt base = 4 + 32 * ((ci) mod 2)      inp base = 100 * ((ci) mod 2)
    digits   = (ci mod 2: 2 cases)        key = ci mod 2, combinations = 2

The runtime caches recorded micro-ops by one small integer. A digit is whatever a base depends on;
the key of a micro-op kernel is the mixed-radix number of its digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from compile_worker.ir.expr import Add, Const, Expr, FloorMod, Mul, Sub, Var
from compile_worker.ir.stmt import MicroKernel, Ref


@dataclass(frozen=True, slots=True)
class Base:
    """constant + Σ coefficient * digit"""

    constant: int
    terms: tuple[tuple[Expr, int], ...]


@dataclass(frozen=True, slots=True)
class Digit:
    """An index expression with the values 0 to cases - 1."""

    value: Expr
    cases: int


def base_of(ref: Ref | None) -> Base:
    """The base element of an operand, apart into constant and digits; zero without an operand.

    Raises:
        TypeError: the element is not a weighted sum of loop variables and remainders.
    """
    if ref is None:
        return Base(0, ())
    terms: dict[Expr, int] = {}
    constant = _collect(ref.element, 1, terms)
    return Base(constant, tuple((digit, c) for digit, c in terms.items() if c))


def digits_of(kernel: MicroKernel, extents: Mapping[Var, int]) -> tuple[Digit, ...]:
    """What the bases of a micro-op kernel depend on; `extents` are those of the loops around."""
    found: dict[Expr, None] = {}
    for ref in (kernel.dst, kernel.src, kernel.wgt):
        found.update((value, None) for value, _ in base_of(ref).terms)
    return tuple(Digit(value, _cases(value, extents)) for value in found)


def combinations(digits: tuple[Digit, ...]) -> int:
    """How many keys there are: as many copies of the micro-ops are recorded."""
    return prod(digit.cases for digit in digits)


def _cases(value: Expr, extents: Mapping[Var, int]) -> int:
    match value:
        case Var():
            return extents[value]
        case FloorMod(_, Const(cases, _)):
            return int(cases)
        case _:
            raise TypeError(f"a base may not depend on {type(value).__name__}")


def _collect(expr: Expr, factor: int, terms: dict[Expr, int]) -> int:
    """Add the terms of factor * expr to `terms`; gives the constant part."""
    match expr:
        case Const(value, _):
            return factor * int(value)
        case Add(left, right):
            return _collect(left, factor, terms) + _collect(right, factor, terms)
        case Sub(left, right):
            return _collect(left, factor, terms) + _collect(right, -factor, terms)
        case Mul(inner, Const(value, _)) | Mul(Const(value, _), inner):
            return _collect(inner, factor * int(value), terms)
        case Var() | FloorMod(_, Const()):
            terms[expr] = terms.get(expr, 0) + factor
            return 0
        case _:
            raise TypeError(f"a base may not depend on {type(expr).__name__}")
