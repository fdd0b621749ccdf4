"""Proofs that a sum with negative terms is never below zero, from how its terms are computed.

An estimate takes one time from another, `longer - shorter`, and bounds alone cannot tell that this
is a time again. Here terms are replaced by what they are made of, the last computed first, until
bounds tell it: of a Select every option must do, of a Largest with a positive sign any one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from tilefarm.space import Largest, Prod, Select, Sum

from tuner.propagate import FAR

Bounds: TypeAlias = Mapping[str, tuple[float, float]]
"""The least and the greatest value that each variable may have."""
Definition: TypeAlias = Sum | Prod | Select | Largest
"""A constraint that computes one variable: its total, product or value."""
_Polynomial: TypeAlias = Mapping[tuple[str, ...], int]
"""Coefficients of products of variables; those are sorted, and none is the constant."""

_MOST_STEPS: Final = 400
"""Of one proof; those of a convolution's estimate take at most 40."""


class SignProof:
    """What is known about the variables of one space.

    Args:
        definitions: the constraint that computes a variable, in an order in which they compute.
        bounds: of all variables.
    """

    def __init__(self, definitions: dict[str, Definition], bounds: Bounds) -> None:
        self._definitions = definitions
        self._bounds = bounds
        self._steps = 0

    def never_negative(self, c: Sum) -> bool:
        """Whether the terms of a sum are surely never below zero together; if not, they may be."""
        self._steps = 0
        return self._proved(_polynomial(c))

    def _proved(self, polynomial: _Polynomial) -> bool:
        self._steps += 1
        if self._at_least(_dominated(polynomial, self._bounds)) >= 0:
            return True
        names = {name for product in polynomial for name in product}
        name = next((each for each in reversed(self._definitions) if each in names), None)
        if name is None or self._steps > _MOST_STEPS:
            return False
        definition = self._definitions[name]
        cases = [_replaced(polynomial, name, each) for each in _values(definition)]
        is_alone = sum(name in product for product in polynomial) == 1
        if isinstance(definition, Largest) and is_alone and polynomial.get((name,), 0) > 0:
            return any(self._proved(case) for case in cases)
        return all(self._proved(case) for case in cases)

    def _at_least(self, polynomial: _Polynomial) -> float:
        least = 0.0
        for product, coefficient in polynomial.items():
            if len(product) > 1 and not _is_natural(product, self._bounds):
                return -FAR
            value = float(coefficient)
            for name in product:
                value *= self._bounds[name][coefficient < 0]
            least += value
        return least


def _polynomial(c: Sum) -> _Polynomial:
    terms = Counter[tuple[str, ...]]()
    for coefficient, name in c.terms:
        terms[(name,)] += coefficient
    terms[()] += c.constant
    return {product: k for product, k in terms.items() if k}


def _values(definition: Definition) -> list[_Polynomial]:
    """What a variable may be equal to, by the constraint that computes it."""
    match definition:
        case Sum():
            return [_polynomial(definition)]
        case Prod(factors=factors, coefficient=coefficient):
            return [{tuple(sorted(factors)): coefficient}]
        case Select(options=options) | Largest(options=options):
            return [{(option,): 1} for option in dict.fromkeys(options)]


def _replaced(polynomial: _Polynomial, name: str, value: _Polynomial) -> _Polynomial:
    """With a value in place of a variable."""
    terms = Counter[tuple[str, ...]]()
    for product, coefficient in polynomial.items():
        parts: _Polynomial = {tuple(v for v in product if v != name): coefficient}
        for _ in range(product.count(name)):
            parts = _multiplied(parts, value)
        for each, k in parts.items():
            terms[each] += k
    return {product: k for product, k in terms.items() if k}


def _multiplied(left: _Polynomial, right: _Polynomial) -> _Polynomial:
    terms = Counter[tuple[str, ...]]()
    for product, coefficient in left.items():
        for other, k in right.items():
            terms[tuple(sorted((*product, *other)))] += coefficient * k
    return terms


def _dominated(polynomial: _Polynomial, bounds: Bounds) -> _Polynomial:
    """Less the negative products that a positive one with the same variables, and more, outweighs.

    x * y - x is not below zero where y is at least one.
    """
    left = dict(polynomial)
    for product in [p for p, k in polynomial.items() if k < 0 and _is_natural(p, bounds)]:
        for larger in [p for p, k in polynomial.items() if k > 0]:
            rest = Counter(larger)
            rest.subtract(product)
            if left.get(product, 0) >= 0 or left.get(larger, 0) <= 0 or min(rest.values()) < 0:
                continue
            least = 1.0
            for name in rest.elements():
                least *= bounds[name][0]
            if left[larger] * least >= -left[product]:
                del left[product], left[larger]
    return left


def _is_natural(product: Iterable[str], bounds: Bounds) -> bool:
    """Whether no variable of a product may be below zero."""
    return all(bounds[name][0] >= 0 for name in product)
