"""Transfer learning: what searches of different workloads teach one another.

Spaces that the same rules made have the same variables, with values of their own. How far a
space's estimate is off then depends on those values much the same in all of them, so measurements
of one workload help to rank the candidates of the next, before any of these is measured.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, runtime_checkable

import numpy as np

from tuner.cost_model import Floats


class SharedMeasurements:
    """Measured candidates of all searches that joined, by the variables of their spaces."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, list[tuple[object, Floats, float]]] = {}

    def add(self, kind: Hashable, owner: object, features: Floats, cost: float) -> None:
        """One measured candidate: features [f] and cost. Only the same kind learns from it."""
        self._kept.setdefault(kind, []).append((owner, features, cost))

    def of_others(self, kind: Hashable, owner: object, most: int) -> tuple[Floats, Floats]:
        """Features [n, f] and costs [n] of others' latest candidates, at most so many."""
        latest = [(f, c) for who, f, c in self._kept.get(kind, ()) if who is not owner][-most:]
        if not latest:
            return np.empty((0, 0)), np.empty(0)
        return np.asarray([f for f, _ in latest]), np.asarray([c for _, c in latest])


@runtime_checkable
class TransferLearner(Protocol):
    """A proposer that can learn from other searches."""

    def join(self, shared: SharedMeasurements) -> None:
        """From now on share what is measured. Call it before the first ask or tell."""
        ...
