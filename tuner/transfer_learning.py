"""Transfer learning: what searches of different workloads teach one another.

Spaces that the same rules made have the same variables, with values of their own. How far a
space's estimate is off then depends on those values much the same in all of them, so measurements
of one workload help to rank the candidates of the next, before any of these is measured.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import Protocol, runtime_checkable

import numpy as np

from tuner.cost_model import Floats


class SharedMeasurements:
    """Measured candidates of all searches that joined, by the variables of their spaces."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, list[tuple[object, Floats, float]]] = {}
        self._sums: dict[object, tuple[int, float]] = {}

    def add(self, kind: Hashable, owner: object, features: Floats, missed: float) -> None:
        """One measured candidate: features [f], and how far its estimate was off, as log2."""
        self._kept.setdefault(kind, []).append((owner, features, missed))
        count, total = self._sums.get(owner, (0, 0.0))
        self._sums[owner] = count + 1, total + missed

    def of_others(self, kind: Hashable, owner: object, most: int) -> tuple[Floats, Floats]:
        """Features [n, f] of others' latest candidates, at most so many, and their errors [n].

        Each error is told against the mean of its search: what all candidates of one workload are
        off by says nothing about which candidate of another is better. A search that has measured
        one only has nothing to tell.
        """
        of_others = (
            (features, missed - self._sums[who][1] / self._sums[who][0])
            for who, features, missed in reversed(self._kept.get(kind, []))
            if who is not owner and self._sums[who][0] > 1
        )
        latest = [*islice(of_others, most)][::-1]
        if not latest:
            return np.empty((0, 0)), np.empty(0)
        return np.asarray([f for f, _ in latest]), np.asarray([error for _, error in latest])


@runtime_checkable
class TransferLearner(Protocol):
    """A proposer that can learn from other searches."""

    def join(self, shared: SharedMeasurements) -> None:
        """From now on share what is measured. Call it before the first ask or tell."""
        ...
