"""Who is best where the clock is noisy: the best few are timed again, in turn, and then compared.

    search   A 10.1  B 10.0  C 10.2 | D 10.9  E 12.4 …     those that may be the best: finalists
    round 1  A  9.9  B 10.1  C 10.3                        a host that gets slower slows a whole
    round 2  A 10.4  B 10.6  C 10.8                        round, so each is compared with the
    round 3  A  9.8  B 10.0  C 10.2                        others of its round

What follows from the records follows from them alone: asked again, the answer is the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev
from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import Trial, WallTime

_MOST: Final = 5
"""Finalists at most: beyond these more are timed in vain nearly always."""
_DRIFT: Final = 0.03
"""Two times of a search may be minutes apart, and the host another one by then: a difference below
this is looked at again, however sure both are. On two cores with twenty busy processes 99 % of the
finalists had been within 2.4 % of what their run-off found."""
_MEDIAN_ERROR: Final = 1.2533
"""Standard error of the median of n normal values in units of their deviation / sqrt(n)."""
_SURE: Final = 2.0
"""Standard errors of a difference below which it is none."""
_LARGEST_TIE: Final = 0.01
"""A difference above this is one, however unsure: the likelier one is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOff:
    """One workload's finalists, timed in turn on one device.

    Attributes:
        times: by the digest of the trace. All have as many rounds, in order, but for those that did
            not end well each time: they have none, and are out of it.
    """

    workload: Digest
    device: str
    times: Mapping[Digest, tuple[WallTime, ...]]


def finalists(trials: Iterable[Trial]) -> list[Trial]:
    """The trials of one workload that may be the best, as far as a noisy clock tells; best first.

    Where cycles are counted no time is uncertain, and there are none.
    """
    timed = [(cost, at, t) for at, t in enumerate(trials) if (cost := t.cost_seconds) is not None]
    timed.sort(key=lambda each: each[:2])
    return [t for cost, _, t in timed[:_MOST] if cost <= timed[0][0] * (1 + _uncertainty(t))]


def is_decided(trials: Iterable[Trial], run_off: RunOff | None) -> bool:
    """Whether nothing is to be timed again: one finalist at most, or all were compared."""
    last = finalists(trials)
    return len(last) < 2 or _compares(run_off, last)


def winner(trials: Sequence[Trial], run_off: RunOff | None) -> Trial | None:
    """The best of a workload's trials, which are in the order of asking; None if none has a cost.

    After a run-off it comes with its time there, and is the first that was asked for of those that
    cannot be told apart. Where none has compared all finalists it is the one that costs least.
    """
    last = finalists(trials)
    entered = [t for t in trials if run_off is not None and run_off.times.get(t.trace)]
    if run_off is None or not entered or not _compares(run_off, last):
        costs = [(cost, at) for at, t in enumerate(trials) if (cost := t.cost) is not None]
        return trials[min(costs)[1]] if costs else None
    shares = _shares({trial.trace: run_off.times[trial.trace] for trial in entered})
    least, error = min(shares[trial.trace] for trial in entered)

    def is_least(trial: Trial) -> bool:
        share, its_error = shares[trial.trace]
        return share <= least * (1 + min(_SURE * math.hypot(error, its_error), _LARGEST_TIE))

    best = next(filter(is_least, entered))
    return replace(best, wall_time=_together(run_off.times[best.trace]))


def _uncertainty(trial: Trial) -> float:
    """By what share its time may be off."""
    return max(_DRIFT, trial.wall_time.spread if trial.wall_time else 0.0)


def _compares(run_off: RunOff | None, last: Sequence[Trial]) -> bool:
    return bool(last) and run_off is not None and all(t.trace in run_off.times for t in last)


def _shares(times: Mapping[Digest, Sequence[WallTime]]) -> dict[Digest, tuple[float, float]]:
    """What each takes of the mean of its round: the median over rounds, and its relative error."""
    medians = {trace: [t.median_seconds for t in rounds] for trace, rounds in times.items()}
    means = [fmean(each) for each in zip(*medians.values(), strict=True)]

    def of(rounds: Sequence[float]) -> tuple[float, float]:
        shares = [seconds / mean for seconds, mean in zip(rounds, means, strict=True)]
        middle = median(shares)
        deviation = stdev(shares) if len(shares) > 1 else 0.0
        return middle, _MEDIAN_ERROR * deviation / math.sqrt(len(shares)) / middle

    return {trace: of(rounds) for trace, rounds in medians.items()}


def _together(rounds: Sequence[WallTime]) -> WallTime:
    """The time of all rounds: medians of theirs, but for the minimum."""
    return WallTime(
        minimum_seconds=min(t.minimum_seconds for t in rounds),
        p10_seconds=median(t.p10_seconds for t in rounds),
        median_seconds=median(t.median_seconds for t in rounds),
        p90_seconds=median(t.p90_seconds for t in rounds),
        calls=rounds[0].calls,
        regions=sum(t.regions for t in rounds),
        rejected=sum(t.rejected for t in rounds),
        preemptions=sum(t.preemptions for t in rounds),
        stolen_seconds=sum(t.stolen_seconds for t in rounds),
        begin_mhz=rounds[0].begin_mhz,
        end_mhz=rounds[-1].end_mhz,
    )
