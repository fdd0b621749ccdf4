"""Noise of many nights: what was measured, and shapes that other machines have.

Each model gives natural logarithms of times [nights, rows, 2]: what a row takes in a night beside
its level, in the first measurement and in the one that confirms it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from driver.benchmarks.nightly.noise import MeasuredNoise
from driver.program.rounds import ROUNDS

Logs: TypeAlias = NDArray[np.float64]
Noise: TypeAlias = Callable[[Generator, int, int], Logs]

_NIGHT: Final = 0.004
"""Of one night to the next, as a standard deviation: that of a board that does nothing else."""
_WITHIN: Final = 0.002
"""Of one measurement to the next."""
_DISTURBED: Final = 0.01
"""Of nights: a backup, a second user, an update."""


def measured(noise: MeasuredNoise, *, control: bool) -> Noise:
    """Nights drawn from what was measured: a run of rounds, and the run right after it.

    A row-night takes any of them, as rows of a night run one after the other.
    """
    found = np.asarray(noise.with_control if control else noise.without)
    found = found - np.median(found)

    def draw(chance: Generator, nights: int, rows: int) -> Logs:
        at = chance.integers(0, len(found) - ROUNDS, (nights, rows))
        return np.stack([found[at], found[at + ROUNDS]], axis=-1)

    return draw


def normal(chance: Generator, nights: int, rows: int) -> Logs:
    """Independent nights, and two measurements in each."""
    return _nights(chance.normal(0, _NIGHT, (nights, rows)), chance)


def heavy_tails(chance: Generator, nights: int, rows: int) -> Logs:
    """Slower by a skewed, log-normal share; measurements by Student's t of 3 degrees."""
    slow = 0.5 * _NIGHT * chance.lognormal(0, 1, (nights, rows))
    within = 0.6 * _WITHIN * chance.standard_t(3, (nights, rows, 2))
    return slow[:, :, None] + within


def drift(chance: Generator, nights: int, rows: int) -> Logs:
    """Levels that wander and come back within a week or two: an autoregressive process."""
    memory, values = 0.8, np.zeros((nights, rows))
    steps = chance.normal(0, _NIGHT * np.sqrt(1 - memory**2), (nights, rows))
    for night in range(1, nights):
        values[night] = memory * values[night - 1] + steps[night]
    return _nights(values, chance)


def two_states(chance: Generator, nights: int, rows: int) -> Logs:
    """A core that is in turbo or not, by the night: one night of five, 4 % slower."""
    slow = 0.04 * (chance.random((nights, rows)) < 0.2)
    return _nights(slow + chance.normal(0, 0.5 * _NIGHT, (nights, rows)), chance)


def disturbed(chance: Generator, nights: int, rows: int) -> Logs:
    """As normal; in one night of a hundred the whole machine is slower, by some percent."""
    amount = chance.exponential(0.05, (nights, 1)) * (chance.random((nights, 1)) < _DISTURBED)
    return normal(chance, nights, rows) + amount[:, :, None]


MODELS: Final[Mapping[str, Noise]] = {
    "normal": normal,
    "heavy tails": heavy_tails,
    "drift": drift,
    "two states": two_states,
    "disturbed nights": disturbed,
}


def _nights(values: Logs, chance: Generator) -> Logs:
    return values[:, :, None] + chance.normal(0, _WITHIN, (*values.shape, 2))
