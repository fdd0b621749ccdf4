"""The labels of least cost, where tables say what labels of a few variables cost together.

Variable by variable: whatever the others are, the best label of one is known once the tables that
it is in are added up, and what is left is a table of its neighbours. That is exact, and fast where
few variables meet, as in chains, trees and the joins of networks. Where the table of the neighbours
would be too large, one of them is given its label 0. So the cost is never more than that of label 0
everywhere, which has to be finite.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Costs: TypeAlias = NDArray[np.float64]

_MOST_ELEMENTS: Final = 1 << 18
"""Of a table that is made."""


@dataclass(frozen=True, slots=True)
class Table:
    """What labels cost: an axis for each of the variables, which are in rising order."""

    variables: tuple[int, ...]
    costs: Costs


def least_cost_labels(
    sizes: Sequence[int], tables: Sequence[Table], most: int = _MOST_ELEMENTS
) -> list[int]:
    """A label below `sizes[v]` for every variable v, of the least sum of the tables' costs."""
    return _Elimination(sizes, tables, most).labels()


class _Elimination:
    """Takes out variables, those first whose neighbours have the smallest table."""

    def __init__(self, sizes: Sequence[int], tables: Sequence[Table], most: int) -> None:
        self._sizes = sizes
        self._most = most
        self._tables: list[dict[int, Table]] = [{} for _ in sizes]
        self._count = 0
        for table in tables:
            self._add(table)
        self._labels: dict[int, int] = {}
        self._gone: list[tuple[int, Table]] = []
        self._queue = [(self._elements(each), each) for each in range(len(sizes))]
        heapq.heapify(self._queue)

    def labels(self) -> list[int]:
        """Of all variables: the last that was taken out is known first."""
        for variable, size in enumerate(self._sizes):
            if size == 1:
                self._fix(variable)
        taken: set[int] = set()
        while self._queue:
            elements, variable = heapq.heappop(self._queue)
            if variable in taken or variable in self._labels:
                continue
            if elements != self._elements(variable):
                continue  # a later entry has its number
            if elements > self._most:
                scope = self._scope(variable)
                self._fix(max(scope, key=lambda each: (len(self._tables[each]), -each)))
                continue
            taken.add(variable)
            self._take_out(variable)
        for variable, table in reversed(self._gone):
            known = tuple(
                slice(None) if each == variable else self._labels[each] for each in table.variables
            )
            self._labels[variable] = int(np.argmin(table.costs[known]))
        return [self._labels[each] for each in range(len(self._sizes))]

    def _take_out(self, variable: int) -> None:
        """Leaves a table of the neighbours in the place of all that have the variable."""
        scope = self._scope(variable)
        total = np.zeros([self._sizes[each] for each in scope])
        for key, table in list(self._tables[variable].items()):
            axes = [self._sizes[each] if each in table.variables else 1 for each in scope]
            total += table.costs.reshape(axes)
            self._drop(key, table)
        self._gone.append((variable, Table(scope, total)))
        rest = tuple(each for each in scope if each != variable)
        if rest:
            self._add(Table(rest, np.min(total, axis=scope.index(variable))))
            self._queue_again(rest)

    def _fix(self, variable: int) -> None:
        """Gives it label 0."""
        scope = self._scope(variable)
        self._labels[variable] = 0
        for key, table in list(self._tables[variable].items()):
            self._drop(key, table)
            rest = tuple(each for each in table.variables if each != variable)
            if rest:
                axis = table.variables.index(variable)
                self._add(Table(rest, np.asarray(table.costs.take(0, axis))))
        self._queue_again(each for each in scope if each != variable)

    def _queue_again(self, variables: Iterable[int]) -> None:
        for each in variables:
            heapq.heappush(self._queue, (self._elements(each), each))

    def _add(self, table: Table) -> None:
        for each in table.variables:
            self._tables[each][self._count] = table
        self._count += 1

    def _drop(self, key: int, table: Table) -> None:
        for each in table.variables:
            del self._tables[each][key]

    def _scope(self, variable: int) -> tuple[int, ...]:
        """The variable and its neighbours."""
        tables = self._tables[variable].values()
        return tuple(sorted({variable}.union(*(table.variables for table in tables))))

    def _elements(self, variable: int) -> int:
        return math.prod(self._sizes[each] for each in self._scope(variable))
