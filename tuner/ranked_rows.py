"""Candidates in the order of their space's estimate, with what is asked of them again and again.

A search looks at the same few thousand candidates before every trial: their keys, features and
estimates are computed once.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tuner.cost_model import Featurizer
from tuner.sampler import Key, Sampler
from tuner.search import Rows


class RankedRows:
    """Distinct rows [n], the least estimate first, of equal ones the space's default.

    Attributes:
        keys: of every row, as of `Sampler.keys`.
        estimates: log2 of what the space says that each costs [n].
        features: [n, f].
    """

    def __init__(self, rows: Rows, sampler: Sampler, features: Featurizer) -> None:
        self.of = rows
        """What was ranked, in the order in which it was given."""
        estimates, default = features.estimates(rows), dict(sampler.space.default)
        chosen = tuple([default.get(name) for name in sampler.tunables])
        is_other = np.asarray([key != chosen for key in sampler.keys(rows)], dtype=np.bool_)
        order = np.lexsort((is_other, estimates))
        self.rows = rows[order]
        self.keys = sampler.keys(self.rows)
        self.estimates = estimates[order]
        self.features = features(self.rows)

    def unseen(self, seen: AbstractSet[Key], most: int) -> NDArray[np.intp]:
        """Positions of the first ones that are not among those seen."""
        fresh = (at for at, key in enumerate(self.keys) if key not in seen)
        return np.fromiter(islice(fresh, most), dtype=np.intp)
