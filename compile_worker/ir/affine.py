"""Sums of products with constants: the shape that nearly every index has.

In an affine sum all terms are loop variables; in a linear one they may be any expression that is
not itself a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from compile_worker.ir.expr import INDEX, Add, Const, Expr, Mul, Sub, Var
from compile_worker.ir.printer import show


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ coefficient * variable; no coefficient is zero."""

    terms: Mapping[Var, int]
    constant: int = 0

    def __add__(self, other: Affine) -> Affine:
        return combined(((1, self), (1, other)))

    def __sub__(self, other: Affine) -> Affine:
        return combined(((1, self), (-1, other)))

    def over(self, inner: Iterable[Var]) -> Affine:
        """Only the terms of the given variables, without the constant."""
        wanted = set(inner)
        return Affine({v: c for v, c in self.terms.items() if v in wanted})

    def without(self, inner: Iterable[Var]) -> Affine:
        """The constant and the terms of all other variables."""
        dropped = set(inner)
        return Affine({v: c for v, c in self.terms.items() if v not in dropped}, self.constant)

    def bounds(self, extents: Mapping[Var, int]) -> tuple[int, int]:
        """Smallest and largest value when every variable is within 0 : extent."""
        low = high = self.constant
        for var, coefficient in self.terms.items():
            reach = coefficient * (extents[var] - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high

    def expr(self) -> Expr:
        """The same value as an expression."""
        return sum_of(self.terms, self.constant)


def combined(parts: Iterable[tuple[int, Affine]]) -> Affine:
    """Σ factor * part"""
    terms: dict[Var, int] = {}
    constant = 0
    for factor, part in parts:
        constant += factor * part.constant
        for var, coefficient in part.terms.items():
            terms[var] = terms.get(var, 0) + factor * coefficient
    return Affine({v: c for v, c in terms.items() if c}, constant)


@lru_cache(maxsize=4096)
def as_affine(expr: Expr) -> Affine | None:
    """The expression as an affine sum of loop variables, or None if it is anything else.

    Remembered: the same indices come again in every pass.
    """
    terms, constant = linear(expr)
    if all(type(term) is Var for term in terms):
        return Affine(cast(dict[Var, int], terms), constant)
    return None


def _as_it_is(term: Expr) -> Expr:
    return term


def linear(expr: Expr, term: Callable[[Expr], Expr] = _as_it_is) -> tuple[dict[Expr, int], int]:
    """`expr` as ({term: coefficient}, constant), no coefficient being zero.

    What is not a sum passes through `term` first.
    """
    terms: dict[Expr, int] = {}
    constant = _collect(expr, 1, terms, term)
    if 0 in terms.values():
        terms = {each: factor for each, factor in terms.items() if factor}
    return terms, constant


def _collect(expr: Expr, factor: int, terms: dict[Expr, int], term: Callable[[Expr], Expr]) -> int:
    """Adds `expr * factor` to `terms`; returns its constant part."""
    if type(expr) is Const and isinstance(expr.value, int):  # a match takes three times as long
        return factor * expr.value
    if type(expr) is Add or type(expr) is Sub:
        before = _collect(expr.left, factor, terms, term)
        return before + _collect(expr.right, factor if type(expr) is Add else -factor, terms, term)
    if type(expr) is Mul:
        pairs = ((expr.left, expr.right), (expr.right, expr.left))
        for one, other in pairs:
            if type(other) is Const and isinstance(other.value, int):
                return _collect(one, factor * other.value, terms, term)
        for one, other in pairs:
            inner, constant = linear(other, term)
            if not inner:  # a constant in disguise, such as 2 + 2
                return _collect(one, factor * constant, terms, term)
    changed = term(expr)
    if changed is not expr:
        return _collect(changed, factor, terms, _as_it_is)
    terms[expr] = terms.get(expr, 0) + factor
    return 0


def sum_of(terms: Mapping[Expr, int] | Mapping[Var, int], constant: int = 0) -> Expr:
    """The index expression of a sum, always the same one for the same sum.

    Large coefficients come first, then negative ones, then the constant: `i*16 + j - k*2 + 3`.
    """
    total: Expr | None = None
    for each, factor in sorted(terms.items(), key=_order):
        if total is not None and factor < 0:
            total = Sub(total, _times(each, -factor))
        else:
            total = _times(each, factor) if total is None else Add(total, _times(each, factor))
    if total is None:
        return Const(constant, INDEX)
    if constant < 0:
        return Sub(total, Const(-constant, INDEX))
    return Add(total, Const(constant, INDEX)) if constant else total


def _times(term: Expr, factor: int) -> Expr:
    return term if factor == 1 else Mul(term, Const(factor, INDEX))


def _order(item: tuple[Expr, int]) -> tuple[int, str]:
    term, factor = item
    return (-factor, term.name if type(term) is Var else show(term))
