"""What the constraints that are still open see of partial points.

Two partial points of which all of them see the same can be completed in the same ways. A sum sees
what its known terms add up to, a product what its known factors give, a table which of its rows are
left, a Select whose choice is known the chosen option alone. A limit that is kept whatever is
chosen sees nothing, and neither does what only computes for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.space import Constraint, Largest, Le, Prod, Select, Sum, Table

from tuner.functional_constraints import variables_of
from tuner.propagate import Flags, Floats, codes

_UNSEEN: Final = -(2.0**60)
"""Stands where a constraint does not matter any more."""

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
"""2^64 by the golden ratio: multiplying by it mixes bits (Knuth, volume 3, 6.4)."""


@dataclass(slots=True)
class _Look:
    """Partial points as bounds [variables, points], and what was seen and is needed of them."""

    lower: Floats
    upper: Floats
    index: Mapping[str, int]
    known: Collection[str]
    needed: dict[str, Flags] = field(default_factory=dict)
    seen: list[Floats] = field(default_factory=list)

    def least(self, name: str) -> Floats:
        """The lower bound of a variable: its value if it is known."""
        values: Floats = self.lower[self.index[name]]
        return values

    def see(self, values: Floats, where: Flags) -> None:
        """Values matter at some points."""
        self.seen.append(values if where.all() else np.where(where, values, _UNSEEN))

    def need(self, name: str, where: Flags) -> None:
        """The value of an open variable matters at some points."""
        if name not in self.known:
            self.needed[name] = where | self.needed[name] if name in self.needed else where

    def visit(self, name: str, where: Flags) -> None:
        """The value of a variable matters at some points, be it known or open."""
        if name in self.known:
            self.see(self.least(name), where)
        else:
            self.need(name, where)


_Sight: TypeAlias = Callable[[_Look, Flags], None]
"""Lets one constraint see what it sees of the points where it matters, and need what it needs."""


class OpenConstraints:
    """The constraints that are open at one level of a search.

    Args:
        constraints: in an order in which they compute, those last that only check.
        index: the place of each variable among the bounds.
        known: the variables that are fixed.
        computed: the variables that a constraint only computes; empty if it may refute a point.
    """

    def __init__(
        self,
        constraints: Sequence[Constraint],
        index: Mapping[str, int],
        known: Collection[str],
        computed: Callable[[Constraint], Sequence[str]],
    ) -> None:
        self._index = index
        self._known = known
        self._sights = [
            (computed(c), _sight(c, known))
            for c in reversed(constraints)
            if not all(v in known for v in variables_of(c))
        ]

    def seen(self, lower: Floats, upper: Floats) -> list[Floats]:
        """All that is seen of partial points by their bounds [variables, points], array by array.

        As many arrays as for any other points.
        Bounds of variables that are not known must follow from those that are, and not from limits.
        """
        look = _Look(lower, upper, self._index, self._known)
        everywhere = np.ones(lower.shape[1], dtype=np.bool_)
        for computed, sight in self._sights:
            needs = [look.needed[v] for v in computed if v in look.needed]
            if needs or not computed:
                sight(look, np.logical_or.reduce(needs) if needs else everywhere)
        return look.seen


def _sight(constraint: Constraint, known: Collection[str]) -> _Sight:
    match constraint:
        case Le():
            return partial(_limit, constraint)
        case Sum():
            return partial(_sum, constraint)
        case Prod():
            return partial(_prod, constraint)
        case Largest():
            return partial(_largest, constraint)
        case Select() if constraint.choice in known:
            return partial(_chosen, constraint)
        case Select():
            return partial(_select, constraint)
        case Table():
            return _TableRows(constraint, known)


def _limit(c: Le, look: _Look, where: Flags) -> None:
    least = look.least(c.bound) if isinstance(c.bound, str) else c.bound
    open_ = where & (look.upper[look.index[c.left]] > least)
    look.visit(c.left, open_)
    if isinstance(c.bound, str):
        look.visit(c.bound, open_)


def _sum(c: Sum, look: _Look, where: Flags) -> None:
    added = np.zeros(where.shape)
    for k, name in (*c.terms, (-1, c.total)):
        if name in look.known:
            added += k * look.least(name)
        else:
            look.need(name, where)
    look.see(added, where)


def _prod(c: Prod, look: _Look, where: Flags) -> None:
    product = np.ones(where.shape)
    for name in c.factors:
        if name in look.known:
            product *= look.least(name)
        else:
            look.need(name, where)
    look.see(product, where)
    look.visit(c.product, where)


def _largest(c: Largest, look: _Look, where: Flags) -> None:
    """No more than bounds tell of the options: a known one below another's matters to nobody."""
    look.see(look.lower[[look.index[o] for o in c.options]].max(axis=0), where)
    for option in c.options:
        look.need(option, where)
    look.visit(c.value, where)


def _chosen(c: Select, look: _Look, where: Flags) -> None:
    at = look.least(c.choice)
    value, which = np.zeros(where.shape), np.zeros(where.shape)
    for number, option in enumerate(c.options):
        here = at == number
        if option in look.known:
            value[here] = look.least(option)[here]
        else:
            which[here] = 1 + look.index[option]
            look.need(option, where & here)
    look.see(value, where)
    look.see(which, where)
    look.visit(c.value, where)


def _select(c: Select, look: _Look, where: Flags) -> None:
    at = look.index[c.choice]
    reached = dict[str, Flags]()
    for number, option in enumerate(c.options):
        here = where & (look.lower[at] <= number) & (number <= look.upper[at])
        reached[option] = reached[option] | here if option in reached else here
    for option, here in reached.items():
        look.visit(option, here)
    look.need(c.choice, where)
    look.visit(c.value, where)


class _TableRows:
    """Numbers sets of rows of a table: those that known values leave, by their open columns."""

    def __init__(self, table: Table, known: Collection[str]) -> None:
        fixed = [i for i, v in enumerate(table.variables) if v in known]
        loose = [i for i, v in enumerate(table.variables) if v not in known]
        self._fixed = [table.variables[i] for i in fixed]
        self._loose = [table.variables[i] for i in loose]
        rows = np.asarray(table.rows, dtype=np.float64).reshape(-1, len(table.variables))
        self._values = [np.unique(rows[:, i]) for i in fixed]
        columns = [rows[:, i] for i in fixed]
        left = dict[int, set[tuple[float, ...]]]()
        for code, row in zip(
            codes(columns, self._values, len(rows))[0].tolist(),
            map(tuple, rows[:, loose].tolist()),
            strict=True,
        ):
            left.setdefault(code, set()).add(row)
        numbers = dict[frozenset[tuple[float, ...]], int]()
        self._codes = np.asarray(sorted(left), dtype=np.int64)
        self._numbers = np.asarray(
            [numbers.setdefault(frozenset(left[c]), len(numbers)) for c in sorted(left)],
            dtype=np.float64,
        )

    def __call__(self, look: _Look, where: Flags) -> None:
        if self._fixed and len(self._codes):
            columns = [look.least(v) for v in self._fixed]
            code, found = codes(columns, self._values, len(where))
            at = np.minimum(np.searchsorted(self._codes, code), len(self._codes) - 1)
            found &= self._codes[at] == code
            look.see(np.where(found, self._numbers[at], -1.0), where)
        for name in self._loose:
            look.need(name, where)


def numbered(columns: Sequence[Floats], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first of all points that are the same in all columns, and for each point which it is.

    By a hash of the columns, and then compared: the answer is right whatever the hash is worth.
    """
    hashes = np.zeros(count, dtype=np.uint64)
    for column in columns:
        hashes ^= (column + 0.0).view(np.uint64)  # -0.0 is 0.0
        hashes *= _ODD
        hashes ^= hashes >> np.uint64(29)
    _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
    if any((column != column[first][number]).any() for column in columns):
        _, first, number = np.unique(
            np.stack(columns), axis=1, return_index=True, return_inverse=True
        )
    return first, number.reshape(-1)
