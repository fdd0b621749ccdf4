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
    columns: TableColumns | None = None,
) -> Narrow | None:
    """The propagator of one constraint at a moment when the variables in `known` are fixed.

    None when nothing follows yet. `index` gives the row of each variable in the arrays of bounds,
    `only` the variables to narrow (None: all that are open), and `signed` says whether a variable
    of the constraint may be negative; products are then only checked. `columns` are those of a
    table, where they were ranked before.
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
            return _largest(constraint, index, known)
        case Table():
            return _table(constraint, columns or TableColumns(constraint), index, known)


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
        below, above = _product(box, scale, factors)
        np.maximum(box.lower[product], below, out=box.lower[product])
        np.minimum(box.upper[product], above, out=box.upper[product])
        if _is_narrower(box, product, below, above):
            backwards(box)
        if divides:
            part = scale * np.prod(box.lower[fixed], axis=0)
            rest = np.zeros(part.shape)
            np.divide(box.lower[product], part, out=rest, where=part > 0)
            box.alive &= rest == np.floor(rest)

    def backwards(box: VariableBoxes) -> None:
        below = _products_of_others([box.lower[f] for f in factors], scale)
        above = _products_of_others([box.upper[f] for f in factors], scale)
        for i in open_at:
            f, low, high = factors[i], below[i], above[i]
            most = np.full(low.shape, FAR)
            np.divide(box.upper[product], low, out=most, where=low > 0)
            np.minimum(box.upper[f], np.floor(most), out=box.upper[f])
            least = np.zeros(high.shape)
            np.divide(box.lower[product], high, out=least, where=high > 0)
            np.maximum(box.lower[f], np.ceil(least), out=box.lower[f])

    return narrow


def _is_narrower(box: VariableBoxes, result: int, low: Floats, high: Floats) -> bool:
    """Whether a result is bounded by more than its inputs: else nothing follows for these."""
    is_below = box.upper[result] < np.minimum(high, FAR)
    return bool(is_below.any() or (box.lower[result] > low).any())


def _prod_forward(product: int, scale: float, factors: Sequence[int]) -> Narrow:
    def narrow(box: VariableBoxes) -> None:
        below, above = _product(box, scale, factors)
        np.maximum(box.lower[product], below, out=box.lower[product])
        np.minimum(box.upper[product], above, out=box.upper[product])

    return narrow


def _product(box: VariableBoxes, scale: float, factors: Sequence[int]) -> tuple[Floats, Floats]:
    """The bounds of a product by those of its factors [boxes], which are not negative."""
    below, above = scale * box.lower[factors[0]], scale * box.upper[factors[0]]
    for f in factors[1:]:
        below *= box.lower[f]
        above = np.minimum(above * box.upper[f], FAR)
    return np.minimum(below, FAR, out=below), above


def _prod_of_known(product: int, scale: float, factors: Sequence[int]) -> Narrow:
    def narrow(box: VariableBoxes) -> None:
        value = np.full(box.alive.shape, scale)
        for f in factors:
            value *= box.lower[f]
        np.minimum(value, FAR, out=value)
        np.maximum(box.lower[product], value, out=box.lower[product])
        np.minimum(box.upper[product], value, out=box.upper[product])

    return narrow


def _products_of_others(values: Sequence[Floats], scale: float) -> list[Floats]:
    """Entry i: the product of all values but the i-th. Capped at FAR."""
    suffix: list[Floats] = [np.full(values[0].shape, scale)]
    for value in reversed(values):
        suffix.append(np.minimum(suffix[-1] * value, FAR))
    others, prefix = [], np.ones(1)
    for i, value in enumerate(values):
        others.append(np.minimum(prefix * suffix[len(values) - 1 - i], FAR))
        prefix = np.minimum(prefix * value, FAR)
    return others


def _sum(
    c: Sum, index: Mapping[str, int], known: Collection[str], only: Collection[str] | None
) -> Narrow:
    total, constant = index[c.total], float(c.constant)
    terms = [(float(k), index[v]) for k, v in c.terms if k]
    opens = [_is_open(v, known, only) for k, v in c.terms if k]
    if not any(opens):
        forward = _sum_of_known if all(v in known for k, v in c.terms if k) else _sum_forward
        return forward(total, constant, terms)
    is_open = np.asarray(opens, dtype=np.bool_)
    at = np.asarray([v for _, v in terms], dtype=np.intp)
    scale = np.asarray([[k] for k, _ in terms])
    open_at, open_scale = at[is_open].tolist(), scale[is_open]

    def narrow(box: VariableBoxes) -> None:
        below, above = _total(box, constant, terms)
        np.maximum(box.lower[total], below, out=box.lower[total])
        np.minimum(box.upper[total], above, out=box.upper[total])
        if _is_narrower(box, total, below, above):
            backwards(box)

    def backwards(box: VariableBoxes) -> None:
        below, above = _scaled(scale, box.lower[at], box.upper[at])
        low = box.lower[total] - _sums_of_others(above, constant)[is_open]
        high = box.upper[total] - _sums_of_others(below, constant)[is_open]
        low, high = _scaled(1 / open_scale, low, high)
        low, high = np.ceil(_rounded(low)), np.floor(_rounded(high))
        for i, v in enumerate(open_at):
            np.maximum(box.lower[v], low[i], out=box.lower[v])
            np.minimum(box.upper[v], high[i], out=box.upper[v])

    return narrow


def _sum_forward(total: int, constant: float, terms: Sequence[tuple[float, int]]) -> Narrow:
    def narrow(box: VariableBoxes) -> None:
        below, above = _total(box, constant, terms)
        np.maximum(box.lower[total], below, out=box.lower[total])
        np.minimum(box.upper[total], above, out=box.upper[total])

    return narrow


def _total(
    box: VariableBoxes, constant: float, terms: Sequence[tuple[float, int]]
) -> tuple[Floats, Floats]:
    """The bounds of a sum by those of its terms [boxes].

    The lower one is FAR at most; the upper one need not be, for the total's own is no more.
    """
    below, above = np.full(box.alive.shape, constant), np.full(box.alive.shape, constant)
    for k, v in terms:
        if k == 1.0:
            below += box.lower[v]
            above += box.upper[v]
        else:
            low, high = (box.lower[v], box.upper[v]) if k > 0 else (box.upper[v], box.lower[v])
            below += k * low
            above += k * high
    return np.minimum(below, FAR, out=below), above


def _sum_of_known(total: int, constant: float, terms: Sequence[tuple[float, int]]) -> Narrow:
    def narrow(box: VariableBoxes) -> None:
        value = np.full(box.alive.shape, constant)
        for k, v in terms:
            value += box.lower[v] if k == 1.0 else k * box.lower[v]
        np.minimum(value, FAR, out=value)
        np.maximum(box.lower[total], value, out=box.lower[total])
        np.minimum(box.upper[total], value, out=box.upper[total])

    return narrow


def _scaled(scale: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Ranges [terms, boxes], each by its factor [terms, 1]: a negative one swaps their ends."""
    low, high = scale * low, scale * high
    return np.minimum(low, high), np.maximum(low, high)


def _rounded(values: Floats) -> Floats:
    """Values with the error of multiplying by 1/k taken off, so that ceil and floor keep 3 at 3."""
    near = np.rint(values)
    return np.where(np.abs(values - near) < 1e-9 * np.maximum(1.0, np.abs(values)), near, values)


def _sums_of_others(values: Floats, constant: float) -> Floats:
    """Of values [terms, boxes]: the constant plus all but each [terms, boxes].

    Never by subtraction, which would lose small values next to FAR. Within -FAR .. FAR.
    """
    behind = np.full(values.shape, constant)
    behind[1:] = values[:0:-1]
    np.cumsum(behind, axis=0, out=behind)
    others: Floats = behind[::-1]
    others[1:] += np.cumsum(values[:-1], axis=0)
    return np.minimum(np.maximum(others, -FAR, out=others), FAR, out=others)


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

    def chosen(box: VariableBoxes) -> NDArray[np.intp]:
        """Which option each box has: any one where the choice is none of them."""
        at = np.minimum(np.maximum(box.lower[choice], 0), len(options) - 1)
        box.alive &= at == box.lower[choice]
        options_of: NDArray[np.intp] = options[at.astype(np.intp)]
        return options_of

    def meet(box: VariableBoxes) -> None:
        option, boxes = chosen(box), np.arange(box.alive.shape[0])
        low = np.maximum(box.lower[value], box.lower[option, boxes])
        high = np.minimum(box.upper[value], box.upper[option, boxes])
        box.lower[value], box.upper[value] = low, high
        box.lower[option, boxes], box.upper[option, boxes] = low, high

    def copy(box: VariableBoxes) -> None:
        """As `meet`, where every option has one value."""
        copied = box.lower[chosen(box), np.arange(box.alive.shape[0])]
        np.maximum(box.lower[value], copied, out=box.lower[value])
        np.minimum(box.upper[value], copied, out=box.upper[value])

    if c.choice not in known:
        return hull
    return copy if all(o in known for o in c.options) else meet


def _largest(c: Largest, index: Mapping[str, int], known: Collection[str]) -> Narrow:
    """The value lies between the largest lower and the largest upper bound; no option is above."""
    value = index[c.value]
    options = np.asarray([index[o] for o in c.options], dtype=np.intp)

    def narrow(box: VariableBoxes) -> None:
        np.maximum(box.lower[value], np.maximum.reduce(box.lower[options]), out=box.lower[value])
        np.minimum(box.upper[value], np.maximum.reduce(box.upper[options]), out=box.upper[value])
        box.upper[options] = np.minimum(box.upper[options], box.upper[value])

    def of_known(box: VariableBoxes) -> None:
        largest = np.maximum.reduce(box.lower[options])
        np.maximum(box.lower[value], largest, out=box.lower[value])
        np.minimum(box.upper[value], largest, out=box.upper[value])

    return of_known if all(o in known for o in c.options) else narrow


class TableColumns:
    """The rows of a table, and its columns by rank: the same whichever of its variables are known.

    Attributes:
        rows: [rows, columns].
    """

    def __init__(self, table: Table) -> None:
        self.rows = np.asarray(table.rows, dtype=np.float64).reshape(-1, len(table.variables))
        self._ranked: dict[int, tuple[Floats, NDArray[np.intp]]] = {}

    def ranked(self, column: int) -> tuple[Floats, NDArray[np.intp]]:
        """The different values of a column in order, and for each row which of these it has."""
        if column not in self._ranked:
            values = self.rows[:, column]
            different = np.asarray(sorted(set(values.tolist())))  # numpy's takes longer for so few
            self._ranked[column] = different, different.searchsorted(values)
        return self._ranked[column]


def _table(
    c: Table, columns: TableColumns, index: Mapping[str, int], known: Collection[str]
) -> Narrow:
    """Rows are grouped by their known columns; each group gives the ranges of the open columns."""
    if not c.rows:
        return _never
    rows = columns.rows
    fixed = [i for i, v in enumerate(c.variables) if v in known]
    loose = [i for i, v in enumerate(c.variables) if v not in known]
    values, numbers, codes_in_all = list[Floats](), np.zeros(len(rows), dtype=np.int64), 1
    for i in fixed:
        own, rank = columns.ranked(i)
        values.append(own)
        numbers = numbers * len(own) + rank
        codes_in_all *= len(own)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    first = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
    keys = numbers[first]
    ordered = rows[order]
    lows = [np.minimum.reduceat(ordered[:, i], first) for i in loose]
    highs = [np.maximum.reduceat(ordered[:, i], first) for i in loose]
    at_fixed = [index[c.variables[i]] for i in fixed]
    at_loose = [index[c.variables[i]] for i in loose]

    def narrow(box: VariableBoxes) -> None:
        group, found = codes([box.lower[v] for v in at_fixed], values, box.lower.shape[1])
        if len(keys) < codes_in_all:  # else every code is that of a group
            code = group
            group = np.minimum(keys.searchsorted(code), len(keys) - 1)
            found &= keys[group] == code
        box.alive &= found
        for v, low, high in zip(at_loose, lows, highs, strict=True):
            np.maximum(box.lower[v], low[group], out=box.lower[v])
            np.minimum(box.upper[v], high[group], out=box.upper[v])

    return narrow


def codes(
    columns: Sequence[Floats], values: Sequence[Floats], count: int
) -> tuple[NDArray[np.int64], Flags]:
    """A number per row of `columns` (mixed radix over ranks), and whether every value is known."""
    if not columns:
        return np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.bool_)
    code, found = _ranks(columns[0], values[0])
    for column, known in zip(columns[1:], values[1:], strict=True):
        rank, is_known = _ranks(column, known)
        found &= is_known
        code *= len(known)
        code += rank
    return code, found


def _ranks(column: Floats, known: Floats) -> tuple[NDArray[np.int64], Flags]:
    """The place of each value among those known, and whether it is one of them."""
    rank = known.searchsorted(column)
    np.minimum(rank, len(known) - 1, out=rank)
    return rank, known[rank] == column


def _never(box: VariableBoxes) -> None:
    box.alive[:] = False
