"""Bases of micro-op operands as sums over slots, and the one key that tells all their cases apart.

    wgt base = 4 + 32 * ((ci) mod 2)      inp base = 100 * ((ci) mod 2)
    digits   = (ci mod 2: 2 cases)        key = ci mod 2, combinations = 2

The runtime caches recorded micro-ops by one small integer. A digit is whatever a base depends on,
and a shift that the host reads; the key of a micro-op kernel is the mixed-radix number of its
digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from compile_worker.ir.affine import as_affine
from compile_worker.ir.expr import Add, Const, Expr, FloorMod, Mul, Sub, Var
from compile_worker.ir.stmt import MicroKernel, Ref
from compile_worker.ir.visit import variables


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


SHIFTS: Final = 32
"""Cases of a shift that the host reads: 0 to 31."""


def digits_of(kernel: MicroKernel, extents: Mapping[Var, int]) -> tuple[Digit, ...]:
    """What a micro-op kernel depends on; `extents` are those of the loops around."""
    bases = _base_digits(kernel, extents)
    return (*bases, Digit(kernel.imm, SHIFTS)) if isinstance(kernel.imm, Expr) else bases


def combinations(digits: tuple[Digit, ...]) -> int:
    """How many keys there are."""
    return prod(digit.cases for digit in digits)


def recorded_keys(kernel: MicroKernel, extents: Mapping[Var, int]) -> int:
    """How many keys occur at most: as many copies of the micro-ops are recorded.

    A shift has one value for each iteration of the loops that its place depends on.
    """
    bases = _base_digits(kernel, extents)
    keys = _distinct(bases, extents)
    if isinstance(kernel.imm, Expr):
        known = {digit.value for digit in bases}
        keys *= min(SHIFTS, prod(extents[v] for v in variables(kernel.imm) if v not in known))
    return keys


def _distinct(digits: Sequence[Digit], extents: Mapping[Var, int]) -> int:
    """How many combinations of digits occur: remainders may follow from one another.

    What is a loop variable by itself moves the remainders of sums by as much, which leaves their
    number alone.
    """
    known = {digit.value for digit in digits if isinstance(digit.value, Var)}
    count = prod(digit.cases for digit in digits if digit.value in known)
    sums = []
    for digit in digits:
        if isinstance(digit.value, FloorMod):
            terms = as_affine(digit.value.left)
            if terms is None:
                return combinations(tuple(digits))
            sums.append((terms.without(v for v in terms.terms if v in known), digit.cases))
    period = prod({cases for _, cases in sums})
    free = list(dict.fromkeys(v for each, _ in sums for v in each.terms))
    values = product(*(range(min(extents[v], period)) for v in free))
    found = {
        tuple(
            sum(each.terms.get(v, 0) * x for v, x in zip(free, at, strict=True)) % cases
            for each, cases in sums
        )
        for at in values
    }
    return count * len(found)


def _base_digits(kernel: MicroKernel, extents: Mapping[Var, int]) -> tuple[Digit, ...]:
    found: dict[Expr, None] = {}
    for ref in (kernel.dst, kernel.src, kernel.wgt):
        found.update((value, None) for value, _ in base_of(ref).terms)
    return tuple(Digit(value, _cases(value, extents)) for value in found)


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
