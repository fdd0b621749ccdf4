"""Which part of a buffer a piece of program reads: the base and extent of every dimension."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from compile_worker.ir.affine import Affine, as_affine
from compile_worker.ir.expr import Expr, Load, Var, index
from compile_worker.ir.simplify import simplify

ZERO: Final = index(0)


@dataclass(frozen=True, slots=True)
class AxisRange:
    """`extent` elements of one dimension, from `base` on; base depends on outer loops only."""

    base: Expr
    extent: int


def required(
    loads: Sequence[Load], inner: Mapping[Var, int], outer: Mapping[Var, int]
) -> tuple[AxisRange, ...]:
    """The smallest box of a buffer, known to cover all `loads`, as `inner` loops run.

    `inner` and `outer` give the extents of the loops below and above the place where the box is
    needed. A dimension with an index that is not affine, even when simplified, or may leave the
    buffer behind a guard, is needed as a whole.
    """
    shape = loads[0].buffer.shape
    columns = zip(*(load.index for load in loads), strict=True)
    return tuple(
        _span(set(column), size, inner, outer) for column, size in zip(columns, shape, strict=True)
    )


def _span(
    indices: Iterable[Expr], size: int, inner: Mapping[Var, int], outer: Mapping[Var, int]
) -> AxisRange:
    whole = AxisRange(ZERO, size)
    bases: set[frozenset[tuple[Var, int]]] = set()
    low, high = size, 0
    for expr in indices:
        form = as_affine(expr) or as_affine(simplify(expr, {**inner, **outer}))
        if form is None:
            return whole
        least, most = _reach(form, inner)
        low, high = min(low, least), max(high, most)
        bases.add(frozenset((v, c) for v, c in form.terms.items() if v not in inner))
    if len(bases) > 1:
        return whole
    base = Affine(dict(bases.pop()), low)
    least, most = _reach(base, outer)
    extent = high - low + 1
    if extent >= size or least < 0 or most + extent > size:
        return whole
    return AxisRange(base.expr(), extent)


def _reach(form: Affine, extents: Mapping[Var, int]) -> tuple[int, int]:
    """Least and largest value over those variables that have an extent, the others being 0."""
    steps = [c * (extents[v] - 1) for v, c in form.terms.items() if v in extents]
    negative = sum(step for step in steps if step < 0)
    return form.constant + negative, form.constant + sum(steps) - negative


def reachable(form: Affine, extents: Mapping[Var, int]) -> frozenset[int]:
    """Every value of an affine index whose variables all have an extent."""
    values = {form.constant}
    for var, factor in form.terms.items():
        values = {value + factor * step for value in values for step in range(extents[var])}
    return frozenset(values)
