"""What a search saw of its spaces: how large they are, what was predicted, and what decides."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from tilefarm.measurement import Status, Trial
from tilefarm.space import ESTIMATE

from driver.campaign.measuring import Task
from driver.report.summary import SpaceRow
from tuner.sampler import Sampler

_MOST_EDGES: Final = 30_000
"""To count a space exactly: half a second of work, as long as an estimate takes; `tilefarm show`
takes more."""
_LEAST_TRIALS: Final = 12
"""Below these a share of the spread says nothing."""
_LEAST_SHARE: Final = 0.01
"""Below it a variable decides nothing."""


def space_row(task: Task, trials: Sequence[Trial]) -> SpaceRow:
    """The row of one task; its trials in the order in which they were asked for."""
    sampler = Sampler(task.space)
    size = sampler.size(_MOST_EDGES)
    return SpaceRow(
        workload=task.name,
        all_points=math.prod(float(len(v.domain)) for v in task.space.tunables),
        valid_points=size.points,
        is_exact=size.is_exact,
        measured=len(trials),
        failed=sum(trial.status is not Status.OK for trial in trials),
        predictions=tuple(_predictions(sampler, trials)),
        deciding=deciding(task.tunables, trials),
    )


def _predictions(sampler: Sampler, trials: Sequence[Trial]) -> Iterator[tuple[int, float, float]]:
    """(number, predicted, measured) cycles; none where a space says nothing or none are counted."""
    if ESTIMATE not in sampler.names:
        return
    for number, trial in enumerate(trials, start=1):
        point = sampler.complete(dict(trial.point)) if trial.cycles else None
        if point is not None and trial.cycles:
            yield number, point[ESTIMATE] / 4, float(trial.cycles)


def deciding(tunables: Sequence[str], trials: Sequence[Trial]) -> tuple[tuple[str, float], ...]:
    """How much of the variance of log costs lies between the values of each variable.

    The correlation ratio eta squared (Fisher), the largest first; empty for less than a dozen
    trials. Of what a search asked for, which is not all of the space.
    """
    timed = [(dict(trial.point), math.log(trial.cost)) for trial in trials if trial.cost]
    logs = [log for _, log in timed]
    if len(timed) < _LEAST_TRIALS or min(logs) == max(logs):
        return ()
    total = float(np.var(logs))
    shares: dict[str, float] = {}
    for name in tunables:
        groups: dict[int, list[float]] = defaultdict(list)
        for point, log in timed:
            groups[point[name]].append(log)
        within = sum(len(group) * float(np.var(group)) for group in groups.values()) / len(timed)
        shares[name] = 1 - within / total
    ranked = sorted(shares.items(), key=lambda each: (-each[1], each[0]))
    return tuple((name, share) for name, share in ranked if share >= _LEAST_SHARE)
