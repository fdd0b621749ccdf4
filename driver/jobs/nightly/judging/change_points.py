"""Where in a series its level has changed for good, seen afterwards.

The best partition into segments of constant level is found exactly: the least sum of squared
distances plus a penalty for each segment (Jackson et al., An algorithm for optimal partitioning of
data on an interval, 2005). Noise is taken from differences of neighbours, so that steps are no part
of it, and a few nights that are far off are brought back to their neighbours first: they are
disturbances, not levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.measurement import DeviceClock

from driver.jobs.nightly.judging.machine_noise import NORMAL
from driver.jobs.nightly.judging.set_units import fair_cost, units
from driver.jobs.nightly.records import Pass, Sample

LEAST_NIGHTS: Final = 5
"""A level lasts so long, or it is none."""
_PENALTY: Final = 5.0
"""Of a segment, in units of noise² · ln(n): its level and its place are two parameters, and the
place is chosen among n (Zhang and Siegmund, A modified Bayes information criterion, 2007, ask for
3); two more for tails that are heavier than a normal distribution's."""
_NINETIETH: Final = 1.645
"""Of the absolute value of a normal one, in standard deviations."""
_LEAST_STEP: Final = 0.005
"""As a share: two levels that are nearer to each other are one, as nobody would look for less."""


def change_points(values: Sequence[float]) -> list[int]:
    """The indices at which another level begins, in order; none where the series has one level.

    Args:
        values: natural logarithms of times by a clock, the oldest first.
    """
    if len(values) < 2 * LEAST_NIGHTS:
        return []
    given = np.asarray(values, dtype=np.float64)
    noise = max(_noise(given), _LEAST_STEP / 10)
    smooth = _without_lone_nights(given, 3 * noise)
    starts = _best_partition(smooth, _PENALTY * noise**2 * math.log(len(given)))
    return _apart(smooth, starts)


def steps(samples: Sequence[Sample]) -> tuple[str, ...]:
    """The nights in which the times of a row have changed for good, the oldest first.

    A machine is compared with itself alone, and sets of schedules in units of each other. Cycles
    have no noise: each change of them is a step.

    Args:
        samples: of one row, the oldest first.
    """
    if not samples:
        return ()
    last = samples[-1]
    alike = [sample for sample in samples if sample.machine == last.machine]
    known = [sample for sample in alike if sample.part is Pass.KNOWN]
    factors = units(alike, last.schedules)
    counted = [sample for sample in known if sample.schedules in factors]
    costs = [float(factors[s.schedules]) * fair_cost(s) for s in counted]
    if last.machine.clock is DeviceClock.CYCLES:
        changed = [at for at in range(1, len(costs)) if not math.isclose(costs[at], costs[at - 1])]
    else:
        changed = change_points(list(map(math.log, costs)))
    return tuple(counted[at].night for at in changed)


def _noise(values: NDArray[np.float64]) -> float:
    """The standard deviation of one value, by differences: steps are rare in them.

    Of neighbours it is the greatest tenth that counts, which knows of a machine with two states; of
    the means of a few nights the median, which knows of a machine that drifts from week to week.
    """
    near = float(np.quantile(np.abs(np.diff(values)), 0.9)) / _NINETIETH
    blocks = len(values) // LEAST_NIGHTS
    means = values[: blocks * LEAST_NIGHTS].reshape(blocks, LEAST_NIGHTS).mean(axis=1)
    far = NORMAL * float(np.median(np.abs(np.diff(means)))) * math.sqrt(LEAST_NIGHTS)
    return max(near, far) / math.sqrt(2)


def _without_lone_nights(values: NDArray[np.float64], most: float) -> NDArray[np.float64]:
    """The values; those far from the median of themselves and their neighbours become that."""
    reach = LEAST_NIGHTS - 2
    padded = np.pad(values, reach, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1)
    middle = np.median(windows, axis=1)
    return np.where(np.abs(values - middle) > most, middle, values)


def _best_partition(values: NDArray[np.float64], penalty: float) -> list[int]:
    """Where the segments of the best partition begin, but for the first one."""
    n = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values - values[0])])
    squares = np.concatenate([[0.0], np.cumsum((values - values[0]) ** 2)])
    costs = np.full(n + 1, np.inf)
    costs[0] = -penalty
    begins = np.zeros(n + 1, dtype=np.int64)
    for end in range(LEAST_NIGHTS, n + 1):
        begin = np.arange(end - LEAST_NIGHTS + 1)
        total = sums[end] - sums[begin]
        spent = squares[end] - squares[begin] - total**2 / (end - begin)
        every = costs[begin] + spent + penalty
        begins[end] = np.argmin(every)
        costs[end] = every[begins[end]]
    found, end = list[int](), n
    while begins[end] > 0:
        end = int(begins[end])
        found.append(end)
    return found[::-1]


def _apart(values: NDArray[np.float64], starts: list[int]) -> list[int]:
    """Those of the starts at which the level changes enough to count."""
    kept = list[int]()
    for start, end in pairwise([*starts, len(values)]):
        before = values[kept[-1] if kept else 0 : start]
        if abs(float(np.mean(values[start:end]) - np.mean(before))) >= _LEAST_STEP:
            kept.append(start)
    return kept
