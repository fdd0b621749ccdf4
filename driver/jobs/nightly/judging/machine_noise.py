"""How much times differ on a machine for no reason: measured on all of its rows, night by night.

The nights that count are an A/A experiment that is always running: what differs between them is
not the program. A row by itself has too few of them to know its tails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

RATE: Final = math.sqrt(1 / (200 * 20))
"""Of nights that may look slower: two such in a row are then one false alarm in 200 nights of 20
rows, if nights are independent."""
RECENT: Final = 60
"""Nights of a row that tell its spread: a machine that has become noisier is known to be in two
months. Tails need all that are remembered."""
NORMAL: Final = 1.4826
"""The standard deviation of a normal distribution, in median absolute deviations."""
EFFICIENCY: Final = 0.37
"""Of a median absolute deviation: it knows as much as a standard deviation of so many fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineNoise:
    """Of natural logarithms of times: small ones are shares.

    Attributes:
        spread: as a standard deviation, unless tails are heavy.
        slower, faster: that far off a night is at most, except for one in `1 / RATE`; see `tail`.
        count: residuals that it was measured from.
    """

    spread: float = 0.0
    slower: float = 0.0
    faster: float = 0.0
    count: int = 0


def machine_noise(rows: Sequence[Sequence[float]]) -> MachineNoise:
    """From the residuals of all rows of a machine; see `level.Level`."""
    pool = sorted(residual for row in rows for residual in row)
    if not pool:
        return MachineNoise()
    return MachineNoise(
        spread=spread([residual for row in rows for residual in row[-RECENT:]]),
        slower=max(0.0, tail(pool)),
        faster=max(0.0, tail([-residual for residual in reversed(pool)])),
        count=len(pool),
    )


def spread(residuals: Sequence[float]) -> float:
    """Their standard deviation, by their median absolute value."""
    return NORMAL * median(map(abs, residuals)) if residuals else 0.0


def tail(ordered: Sequence[float]) -> float:
    """What at most a share of `RATE` exceeds, or one: by a single night nothing is to be known.

    Args:
        ordered: the least first.
    """
    beyond = max(1, math.floor(RATE * len(ordered)))
    return ordered[-1 - beyond] if beyond < len(ordered) else 0.0


def student(deviations: float, freedom: float) -> float:
    """So many deviations, widened because they were estimated (Student's t, by Cornish-Fisher).

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
    """
    z = deviations
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2
