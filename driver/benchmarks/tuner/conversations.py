"""Conversations with one proposer: how its trials went, by exact cycles, whatever it was told."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilefarm.space import SearchSpace

from driver.benchmarks.tuner.measured_space import MeasuredSpace
from tuner.proposer import Proposer

Make = Callable[[SearchSpace, int], Proposer]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One search.

    Attributes:
        cycles: of its trials as asked for; infinite for those that failed.
        reported: cycles of the one that it would call its best.
    """

    cycles: tuple[float, ...]
    reported: float

    def trials_to(self, cycles: float) -> float:
        """Trials until one takes at most so many cycles; infinite if none does."""
        return next((at for at, each in enumerate(self.cycles, 1) if each <= cycles), math.inf)


def conversation(
    make: Make, measured: MeasuredSpace, *, seed: int, trials: int, noise: float = 0.0
) -> Conversation:
    """Ask for one candidate after the other; each is told before the next."""
    proposer = make(measured.space, seed)
    cycles: list[float] = []
    reported, least = math.inf, math.inf
    while len(cycles) < trials and (points := proposer.ask(1)):
        trial = measured.trial(points[0], noise=noise, seed=seed)
        cycles.append(measured.cycles(points[0]) or math.inf)
        if (cost := trial.cost) is not None and cost < least:
            least, reported = cost, cycles[-1]
        proposer.tell([trial])
    return Conversation(tuple(cycles), reported)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
