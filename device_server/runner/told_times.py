"""What a child says of the time that its calls took, held against the clock of its parent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from tilefarm.measurement import RunJob, WallTime

from device_server.runner.frames import DoneReply

_SLACK: Final = 1.001
"""The parent's clock may be slewed, by at most half a thousandth; the child's is not."""
_SHARES: Final = (0.0, 0.1, 0.5, 0.9)
"""Where the times of a `WallTime` stand among those of its regions, in order."""


def implausible(job: RunJob, done: DoneReply, within_seconds: float) -> str:
    """What of a child's answer cannot be, in words; empty if all of it can.

    Args:
        within_seconds: for how long the child has had the job.
    """
    return next(_contradictions(job, done, within_seconds), "")


def _contradictions(job: RunJob, done: DoneReply, within_seconds: float) -> Iterator[str]:
    if len(done.seconds) != job.repeats:
        yield f"{len(done.seconds)} times for {job.repeats} repeats"
    if (done.wall_time is None) != (job.precision is None):
        yield "a time that was not asked for, or none that was"
    if len(done.profile) != len(job.profile):
        yield f"a profile of {len(done.profile)} calls for one of {len(job.profile)}"
    if done.counters is None and done.sample_cycles:
        yield f"cycles of {len(done.sample_cycles)} calls, counted by nobody"
    if done.counters is not None and len(done.sample_cycles) != job.samples:
        yield f"cycles of {len(done.sample_cycles)} calls for {job.samples}"
    if not all(0 < seconds < math.inf for seconds in done.seconds):
        yield "a call that takes no time, or for ever"
    if not 0 <= done.run_seconds <= _SLACK * within_seconds:
        yield f"a run of {done.run_seconds:g} s within {within_seconds:g} s"
    timed = [done.wall_time, *(call.wall_time for call in done.profile)]
    least = sum(done.seconds) + sum(_least_seconds(time) for time in timed if time is not None)
    if not least <= _SLACK * within_seconds:
        yield f"calls of {least:g} s and more within {within_seconds:g} s"


def _least_seconds(time: WallTime) -> float:
    """How long all of its regions took together, at least."""
    times = time.minimum_seconds, time.p10_seconds, time.median_seconds, time.p90_seconds
    ranks = [math.floor(share * (time.regions - 1) + 0.5) for share in _SHARES]
    regions = [end - begin for begin, end in pairwise([*ranks, time.regions])]
    return time.calls * sum(count * seconds for count, seconds in zip(regions, times, strict=True))
