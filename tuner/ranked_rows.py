"""Candidates in the order of their space's estimate, with what is asked of them again and again.

A search looks at the same few thousand candidates before every trial: their keys and features are
computed once. Of a million others, which it never comes to, only the estimate is.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tuner.cost_model import Featurizer, Floats
from tuner.sampler import Key, Sampler
from tuner.search import Rows

_BLOCK: Final = 512
"""Positions whose keys and features are computed together, when the first of them is asked for."""


class RankedRows:
    """Distinct rows [n], the least estimate first, of equal ones the space's default.

    A position is a place in this order.

    Attributes:
        of: what was ranked, in the order in which it was given.
        estimates: log2 of what the space says that each position costs [n].
    """

    def __init__(self, rows: Rows, sampler: Sampler, features: Featurizer) -> None:
        self.of = rows
        estimates = features.estimates(rows)
        self._order = np.lexsort((_differ_from_default(rows, sampler), estimates))
        self.estimates = estimates[self._order]
        self._sampler = sampler
        self._featurizer = features
        self._keys: list[Key] = []
        self._last: dict[Key, int] = {}
        """The last position of each key; almost always the only one."""
        self._before: list[int] = []
        """For each position the one before it with the same key, or -1."""
        self._features = features(rows[:0])
        self._differ = np.zeros(self._features.shape[1], dtype=np.bool_)
        """The features that are not the same in all rows that are computed."""
        self._different = self._features[:, self._differ]

    def __len__(self) -> int:
        return len(self._order)

    def row(self, at: int) -> Rows:
        """The row at a position [variables]."""
        row: Rows = self.of[self._order[at]]
        return row

    def key(self, at: int) -> Key:
        """The key of the row at a position."""
        self._compute_to(at + 1)
        return self._keys[at]

    def features(self, positions: NDArray[np.intp]) -> Floats:
        """Of the rows at these positions [p, variables]."""
        self._compute_to(int(positions.max(initial=-1)) + 1)
        return self._features[positions]

    def features_beside(self, positions: NDArray[np.intp], known: Floats) -> tuple[Floats, Floats]:
        """Of the rows at these positions, and those given [m, variables].

        Without some that are the same in all of them, if there are any.
        """
        self._compute_to(int(positions.max(initial=-1)) + 1)
        if not len(positions) or ((known != self._features[0]) & ~self._differ).any():
            return self._features[positions], known
        return self._different[positions], known[:, self._differ]

    def unseen(self, seen: AbstractSet[Key], most: int) -> NDArray[np.intp]:
        """Positions of the first ones that are not among those seen."""
        while True:
            is_unseen = np.ones(len(self._keys), dtype=np.bool_)
            for key in self._last.keys() & seen:
                at = self._last[key]
                while at >= 0:
                    is_unseen[at] = False
                    at = self._before[at]
            unseen = np.flatnonzero(is_unseen)
            if len(unseen) >= most or len(self._keys) == len(self):
                return unseen[:most]
            self._compute_to(len(self._keys) + 1)

    def _compute_to(self, end: int) -> None:
        done = len(self._keys)
        if end <= done:
            return
        rows = self.of[self._order[done : max(end, done + _BLOCK)]]
        self._keys += self._sampler.keys(rows)
        for at in range(done, len(self._keys)):
            self._before.append(self._last.get(self._keys[at], -1))
            self._last[self._keys[at]] = at
        self._features = np.concatenate([self._features, self._featurizer(rows)])
        self._differ = (self._features != self._features[0]).any(axis=0)
        self._different = self._features[:, self._differ]


def _differ_from_default(rows: Rows, sampler: Sampler) -> NDArray[np.bool_]:
    """Whether each row has another value of a tunable than the space's default."""
    default = dict(sampler.space.default)
    differ = np.zeros(len(rows), dtype=np.bool_)
    for column, name in enumerate(sampler.names):
        if name in sampler.tunables:
            differ |= rows[:, column] != default.get(name)
    return differ
