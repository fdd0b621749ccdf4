"""Sums over loop variables to reckon with: split by variables, add, bound, make expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from compile_worker.ir.affine import as_affine, sum_of
from compile_worker.ir.expr import Expr, Var


@dataclass(frozen=True, slots=True)
class Linear:
    """constant + Σ coefficient * variable; no coefficient is zero."""

    terms: Mapping[Var, int]
    constant: int = 0

    def __add__(self, other: Linear) -> Linear:
        return combined(((1, self), (1, other)))

    def __sub__(self, other: Linear) -> Linear:
        return combined(((1, self), (-1, other)))

    def over(self, inner: Iterable[Var]) -> Linear:
        """Only the terms of the given variables, without the constant."""
        wanted = set(inner)
        return Linear({v: c for v, c in self.terms.items() if v in wanted})

    def without(self, inner: Iterable[Var]) -> Linear:
        """The constant and the terms of all other variables."""
        dropped = set(inner)
        return Linear({v: c for v, c in self.terms.items() if v not in dropped}, self.constant)

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


def combined(parts: Iterable[tuple[int, Linear]]) -> Linear:
    """Σ factor * linear"""
    terms: dict[Var, int] = {}
    constant = 0
    for factor, part in parts:
        constant += factor * part.constant
        for var, coefficient in part.terms.items():
            terms[var] = terms.get(var, 0) + factor * coefficient
    return Linear({v: c for v, c in terms.items() if c}, constant)


@lru_cache(maxsize=4096)
def linear(expr: Expr) -> Linear | None:
    """The expression as a linear sum of loop variables, or None if it is something else.

    Remembered: the same indices come again in every pass.
    """
    found = as_affine(expr)
    return None if found is None else Linear(*found)
