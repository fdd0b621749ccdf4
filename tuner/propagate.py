"""What each kind of constraint says about the bounds of its variables, for many boxes at once.

A box gives every variable of a space a lower and an upper bound; the search holds thousands of them
as two arrays of shape [variables, boxes] and narrows all of them by one numpy call per step. That
is why there is no trail here: a partial assignment that dies is a column that is not kept. Bounds
are float64 because bounds of products overflow int64; they are exact below EXACT, and what is above
is checked again in whole numbers before anybody sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.space import Constraint, Largest, Le, Prod, Select, Sum, Table

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

EXACT: Final = float(1 << 53)
FAR: Final = 1e18
"""Stands for "no bound": finite, so that 0 * FAR is 0 and not a NaN."""


@dataclass(slots=True)
class VariableBoxes:
    """Bounds [variables, boxes] and which boxes may still hold a point [boxes].

    A box whose range is empty may stay alive for the moment; whoever narrows sweeps those up.
    """

    lower: Floats
    upper: Floats
    alive: Flags


Narrow: TypeAlias = Callable[[VariableBoxes], None]
"""Tightens the bounds in place, and clears `alive` where no point is possible."""


def narrower(
    constraint: Constraint,
    index: Mapping[str, int],
    known: Collection[str],
    *,
    only: Collection[str] | None = None,
    signed: bool = False,
) -> Narrow | None:
    """The propagator of one constraint at a moment when the variables in `known` are fixed.

    None when nothing follows yet. `index` gives the row of each variable in the arrays of bounds,
    `only` the variables to narrow (None: all that are open), and `signed` says whether a variable
    of the constraint may be negative; products are then only checked.
    """
    match constraint:
        case Prod():
            return _prod(constraint, index, known, only, signed)
        case Sum():
            return _sum(constraint, index, known, only)
        case Le(left=left, bound=bound):
            if isinstance(bound, str):
                return _less(index[left], index[bound])
            return _limit(index[left], float(bound))
        case Select():
            return _select(constraint, index, known)
        case Largest():
            return _largest(constraint, index)
        case Table():
            return _table(constraint, index, known)


def _is_open(name: str, known: Collection[str], only: Collection[str] | None) -> bool:
    return name not in known and (only is None or name in only)


def _prod(
    c: Prod,
    index: Mapping[str, int],
    known: Collection[str],
    only: Collection[str] | None,
    signed: bool,
) -> Narrow | None:
    product, scale = index[c.product], float(c.coefficient)
    factors = [index[f] for f in c.factors]
    fixed = [index[f] for f in c.factors if f in known]
    if len(fixed) == len(factors):
        return _prod_of_known(product, scale, factors)
    if signed or c.coefficient < 0:
        return None
    open_at = [i for i, f in enumerate(c.factors) if _is_open(f, known, only)]
    if not open_at:
        return _prod_forward(product, scale, factors)
    divides = c.product in known and bool(fixed)

    def narrow(box: VariableBoxes) -> None:
        below = _products_of_others([box.lower[f] for f in factors], scale)
        above = _products_of_others([box.upper[f] for f in factors], scale)
        np.maximum(box.lower[product], below[-1], out=box.lower[product])
        np.minimum(box.upper[product], above[-1], out=box.upper[product])
        for i in open_at:
            f, low, high = factors[i], below[i], above[i]
            most = np.full(low.shape, FAR)
            np.divide(box.upper[product], low, out=most, where=low > 0)
            np.minimum(box.upper[f], np.floor(most), out=box.upper[f])
            least = np.zeros(high.shape)
            np.divide(box.lower[product], high, out=least, where=high > 0)
            np.maximum(box.lower[f], np.ceil(least), out=box.lower[f])
        if divides:
            part = scale * np.prod(box.lower[fixed], axis=0)
            rest = np.zeros(part.shape)
            np.divide(box.lower[product], part, out=rest, where=part > 0)
            box.alive &= rest == np.floor(rest)

    return narrow


def _prod_forward(product: int, scale: float, factors: Sequence[int]) -> Narrow:
    def narrow(box: VariableBoxes) -> None:
        below, above = scale * box.lower[factors[0]], scale * box.upper[factors[0]]
        for f in factors[1:]:
            below *= box.lower[f]
            above = np.minimum(above * box.upper[f], FAR)
        np.minimum(below, FAR, out=below)
        np.maximum(box.lower[product], below, out=box.lower[product])
        np.minimum(box.upper[product], above, out=box.upper[product])

    return narrow


def _prod_of_known(product: int, scale: float, factors: Sequence[int]) -> Narrow:
    def narrow(box: VariableBoxes) -> None:
        value = np.full(box.alive.shape, scale)
        for f in factors:
            value *= box.lower[f]
        value = _capped(value)
        np.maximum(box.lower[product], value, out=box.lower[product])
        np.minimum(box.upper[product], value, out=box.upper[product])

    return narrow


def _products_of_others(values: Sequence[Floats], scale: float) -> list[Floats]:
    """Entry i: the product of all values but the i-th; last: of all of them. Capped at FAR."""
    suffix: list[Floats] = [np.full(values[0].shape, scale) if values else np.asarray([scale])]
    for value in reversed(values):
        suffix.append(np.minimum(suffix[-1] * value, FAR))
    others, prefix = [], np.ones(1)
    for i, value in enumerate(values):
        others.append(np.minimum(prefix * suffix[len(values) - 1 - i], FAR))
        prefix = np.minimum(prefix * value, FAR)
    return [*others, suffix[-1]]


def _sum(
    c: Sum, index: Mapping[str, int], known: Collection[str], only: Collection[str] | None
) -> Narrow:
    total = index[c.total]
    terms = [(float(k), index[v], _is_open(v, known, only)) for k, v in c.terms if k]
    if not any(is_open for _, _, is_open in terms):
        return _sum_forward(total, float(c.constant), [(k, v) for k, v, _ in terms])

    def narrow(box: VariableBoxes) -> None:
        ends = [_scaled(k, box.lower[v], box.upper[v]) for k, v, _ in terms]
        below = _sums_of_others([low for low, _ in ends], float(c.constant))
        above = _sums_of_others([high for _, high in ends], float(c.constant))
        np.maximum(box.lower[total], below[-1], out=box.lower[total])
        np.minimum(box.upper[total], above[-1], out=box.upper[total])
        for i, (k, v, is_open) in enumerate(terms):
            if is_open:
                least, most = _scaled(
                    1 / k, box.lower[total] - above[i], box.upper[total] - below[i]
                )
                np.maximum(box.lower[v], np.ceil(_rounded(least)), out=box.lower[v])
                np.minimum(box.upper[v], np.floor(_rounded(most)), out=box.upper[v])

    return narrow


def _sum_forward(total: int, constant: float, terms: Sequence[tuple[float, int]]) -> Narrow:
    def narrow(box: VariableBoxes) -> None:
        below, above = np.full(box.alive.shape, constant), np.full(box.alive.shape, constant)
        for k, v in terms:
            low, high = _scaled(k, box.lower[v], box.upper[v])
            below += low
            above += high
        np.maximum(box.lower[total], _capped(below), out=box.lower[total])
        np.minimum(box.upper[total], _capped(above), out=box.upper[total])

    return narrow


def _capped(values: Floats) -> Floats:
    """Within -FAR .. FAR: np.clip takes three times as long for the few that there often are."""
    return np.minimum(np.maximum(values, -FAR), FAR)


def _scaled(k: float, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    return (k * low, k * high) if k > 0 else (k * high, k * low)


def _rounded(values: Floats) -> Floats:
    """Values with the error of multiplying by 1/k taken off, so that ceil and floor keep 3 at 3."""
    near = np.rint(values)
    return np.where(np.abs(values - near) < 1e-9 * np.maximum(1.0, np.abs(values)), near, values)


def _sums_of_others(values: Sequence[Floats], constant: float) -> list[Floats]:
    """Entry i: constant plus all values but the i-th; the last entry: plus all.

    Never by subtraction, which would lose small values next to FAR.

    """
    suffix: list[Floats] = [
        np.full(values[0].shape, constant) if values else np.asarray([constant])
    ]
    for value in reversed(values):
        suffix.append(_capped(suffix[-1] + value))
    others, prefix = [], np.zeros(1)
    for i, value in enumerate(values):
        others.append(_capped(prefix + suffix[len(values) - 1 - i]))
        prefix = _capped(prefix + value)
    return [*others, suffix[-1]]


def _less(left: int, right: int) -> Narrow:
    def narrow(box: VariableBoxes) -> None:
        np.minimum(box.upper[left], box.upper[right], out=box.upper[left])
        np.maximum(box.lower[right], box.lower[left], out=box.lower[right])

    return narrow


def _limit(left: int, limit: float) -> Narrow:
    def narrow(box: VariableBoxes) -> None:
        np.minimum(box.upper[left], limit, out=box.upper[left])

    return narrow


def _select(c: Select, index: Mapping[str, int], known: Collection[str]) -> Narrow:
    value, choice = index[c.value], index[c.choice]
    options = np.asarray([index[o] for o in c.options], dtype=np.intp)

    def hull(box: VariableBoxes) -> None:
        np.maximum(box.lower[choice], 0, out=box.lower[choice])
        np.minimum(box.upper[choice], len(options) - 1, out=box.upper[choice])
        np.maximum(box.lower[value], np.minimum.reduce(box.lower[options]), out=box.lower[value])
        np.minimum(box.upper[value], np.maximum.reduce(box.upper[options]), out=box.upper[value])

    def meet(box: VariableBoxes) -> None:
        at = box.lower[choice]
        box.alive &= (at >= 0) & (at < len(options))
        chosen = options[np.clip(at, 0, len(options) - 1).astype(np.intp)]
        boxes = np.arange(at.shape[0])
        low = np.maximum(box.lower[value], box.lower[chosen, boxes])
        high = np.minimum(box.upper[value], box.upper[chosen, boxes])
        box.lower[value], box.upper[value] = low, high
        box.lower[chosen, boxes], box.upper[chosen, boxes] = low, high

    return meet if c.choice in known else hull


def _largest(c: Largest, index: Mapping[str, int]) -> Narrow:
    """The value lies between the largest lower and the largest upper bound; no option is above."""
    value = index[c.value]
    options = np.asarray([index[o] for o in c.options], dtype=np.intp)

    def narrow(box: VariableBoxes) -> None:
        np.maximum(box.lower[value], np.maximum.reduce(box.lower[options]), out=box.lower[value])
        np.minimum(box.upper[value], np.maximum.reduce(box.upper[options]), out=box.upper[value])
        box.upper[options] = np.minimum(box.upper[options], box.upper[value])

    return narrow


def _table(c: Table, index: Mapping[str, int], known: Collection[str]) -> Narrow:
    """Rows are grouped by their known columns; each group gives the ranges of the open columns."""
    if not c.rows:
        return _never
    rows = np.asarray(c.rows, dtype=np.int64)
    fixed = [i for i, v in enumerate(c.variables) if v in known]
    loose = [i for i, v in enumerate(c.variables) if v not in known]
    values, numbers = list[NDArray[np.int64]](), np.zeros(len(rows), dtype=np.int64)
    for i in fixed:
        own, rank = np.unique(rows[:, i], return_inverse=True)
        values.append(own)
        numbers = numbers * len(own) + rank
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    first = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
    keys = numbers[first]
    lows = [np.minimum.reduceat(rows[order, i], first).astype(np.float64) for i in loose]
    highs = [np.maximum.reduceat(rows[order, i], first).astype(np.float64) for i in loose]
    at_fixed = [index[c.variables[i]] for i in fixed]
    at_loose = [index[c.variables[i]] for i in loose]

    def narrow(box: VariableBoxes) -> None:
        code, found = codes([box.lower[v] for v in at_fixed], values, box.lower.shape[1])
        group = np.minimum(np.searchsorted(keys, code), len(keys) - 1)
        box.alive &= found & (keys[group] == code)
        for v, low, high in zip(at_loose, lows, highs, strict=True):
            np.maximum(box.lower[v], low[group], out=box.lower[v])
            np.minimum(box.upper[v], high[group], out=box.upper[v])

    return narrow


def codes(
    columns: Sequence[Floats], values: Sequence[NDArray[np.int64]], count: int
) -> tuple[NDArray[np.int64], Flags]:
    """A number per row of `columns` (mixed radix over ranks), and whether every value is known."""
    code, found = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.bool_)
    for column, known in zip(columns, values, strict=True):
        rank = np.minimum(np.searchsorted(known, column), len(known) - 1)
        found &= known[rank] == column
        code = code * len(known) + rank
    return code, found


def _never(box: VariableBoxes) -> None:
    box.alive[:] = False
