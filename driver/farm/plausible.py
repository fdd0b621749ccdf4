"""What no device can have measured, whatever it says: held against what is known beforehand.

    it takes fewer cycles than any schedule ─► who says so is broken, or lies
    longer than we waited for the answer    ─► likewise
    other work than the compiler counted    ─► likewise

Every bound is one that an honest device is never beyond, however lucky or slow it is: a false alarm
would cost a good device, and what slips through is only as good as the best schedule there may be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tilefarm.measurement import (
    Counters,
    Measurement,
    Role,
    RunFailure,
    RunJob,
    WallTime,
)
from tilefarm.plural import plural

_FASTEST_MHZ: Final = 10_000
"""No accelerator's clock is faster, whatever a target says of it."""
_OVERCLOCKED: Final = 2
"""So many times as fast as its target says a board's clock may be."""
_CLOCKS_DIFFER: Final = 1.05
_SLACK_SECONDS: Final = 0.05
"""Two hosts' clocks run at paces that differ by a thousandth at most while they are being set."""
_MOST_UNLIKE: Final = 10
"""Calls of one entry do the same, whatever the data: only the memory is slower at one time than at
another, and the first call alone loads its micro-ops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBounds:
    """What is known of a run before it is made; what nobody knows is not held against anybody.

    Attributes:
        least_cycles: no schedule takes fewer for a call; 0 if nobody knows.
        most_cycles: nor can this one take more; 0 if nobody knows.
        least_profile_cycles: likewise for each entry of the job's profile.
        clock_mhz: of the board, as its target says; 0 if it does not.
        counts: counters that the code alone determines, with what they are for a call.
    """

    least_cycles: int = 0
    most_cycles: int = 0
    least_profile_cycles: tuple[int, ...] = ()
    clock_mhz: int = 0
    counts: tuple[tuple[str, int], ...] = ()

    def least_seconds(self, cycles: int) -> float:
        """So many cycles at the fastest clock that the board may have."""
        return cycles / (1e6 * (self.clock_mhz * _OVERCLOCKED or _FASTEST_MHZ))


UNKNOWN: Final = RunBounds()


def implausibility(
    outcome: Measurement | RunFailure, job: RunJob, bounds: RunBounds, *, waited_seconds: float
) -> str:
    """Why this cannot have come of the job, in words; empty if it can.

    Args:
        outcome: what the device says.
        job: what it was asked.
        bounds: what is known of the job.
        waited_seconds: from the asking until the answer came.
    """
    return next(_reasons(outcome, job, bounds, waited_seconds), "")


def _reasons(
    outcome: Measurement | RunFailure, job: RunJob, bounds: RunBounds, waited_seconds: float
) -> Iterator[str]:
    if outcome.artifact != job.artifact:
        yield f"what became of artifact {outcome.artifact.short}, not of {job.artifact.short}"
    if isinstance(outcome, RunFailure):
        yield from _too_long("the run", outcome.run_seconds, waited_seconds)
        return
    yield from _too_long("the run", outcome.load_seconds + outcome.run_seconds, waited_seconds)
    yield from _too_long("the timed calls", sum(outcome.seconds), waited_seconds)
    if outcome.counters is not None:
        yield from _of_counters(outcome.counters, bounds)
        yield from _of_samples(outcome.sample_cycles, outcome.counters.cycles, job, bounds)
    if outcome.wall_time is not None:
        yield from _of_clock(outcome.wall_time, bounds, bounds.least_cycles, waited_seconds)
    parts = bounds.least_profile_cycles or (0,) * len(outcome.profile)
    for entry, call, least in zip(job.profile, outcome.profile, parts, strict=False):
        reasons = [*_too_few(call.cycles or 0, least)]
        if call.wall_time is not None:
            reasons += _of_clock(call.wall_time, bounds, least, waited_seconds)
        yield from (f"of entry {entry}: {reason}" for reason in reasons)
    for event in outcome.timeline:
        if event.begin_cycle > event.end_cycle:
            yield f"that {event.name} ends at cycle {event.end_cycle}, before it begins"
    yield from _of_outputs(outcome, job)


def _too_long(what: str, seconds: float, waited_seconds: float) -> Iterator[str]:
    if seconds > waited_seconds * _CLOCKS_DIFFER + _SLACK_SECONDS:
        yield f"that {what} took {seconds:.3g} s, in {waited_seconds:.3g} s that we waited for it"


def _too_few(cycles: int, least: int) -> Iterator[str]:
    if 0 < cycles < least:
        yield f"{plural(cycles, 'cycle')}, where no schedule takes fewer than {least}"


def _of_counters(counters: Counters, bounds: RunBounds) -> Iterator[str]:
    """A library that counts nothing says 0 everywhere."""
    cycles = counters.cycles
    if not cycles:
        return
    yield from _too_few(cycles, bounds.least_cycles)
    if 0 < bounds.most_cycles < cycles:
        yield f"{plural(cycles, 'cycle')}, where there is work for {bounds.most_cycles} at most"
    executed = counters["gemm_uops"] + counters["alu_uops"]
    if executed > cycles:
        yield f"{plural(cycles, 'cycle')} for {plural(executed, 'micro-op')}"
    for module, spent in _spent(counters):
        if spent > cycles:
            yield f"{plural(cycles, 'cycle')}, and {spent} that {module} was busy or stalled"
    for name, value in bounds.counts:
        if (found := counters[name]) != value:
            yield f"{found} {name}, where the kernel has {value}"


def _spent(counters: Counters) -> Iterator[tuple[str, int]]:
    for module in ("load", "compute", "store"):
        stalls = (f"{module}_{cause}_stall_cycles" for cause in ("token", "queue", "memory"))
        names = (f"{module}_busy_cycles", *stalls)
        yield module, sum(counters[name] for name in names)


def _of_samples(
    cycles: Sequence[int], last_cycles: int, job: RunJob, bounds: RunBounds
) -> Iterator[str]:
    if not any(cycles):
        return
    if len(cycles) != job.samples:
        yield f"cycles of {plural(len(cycles), 'sample')}, not of {job.samples}"
    least, most = min(*cycles, last_cycles), max(*cycles, last_cycles)
    if most > _MOST_UNLIKE * least:
        yield f"{plural(least, 'cycle')} and {most} for calls that do the same"
    yield from _too_few(least, bounds.least_cycles)


def _of_clock(
    time: WallTime, bounds: RunBounds, least_cycles: int, waited_seconds: float
) -> Iterator[str]:
    least = bounds.least_seconds(least_cycles)
    if time.minimum_seconds < least:
        yield f"{time.minimum_seconds:.3g} s, where no schedule takes less than {least:.3g} s"
    half = -(-time.regions // 2)
    yield from _too_long(
        f"{plural(half, 'region')} of {plural(time.calls, 'call')}",
        half * time.calls * time.median_seconds,
        waited_seconds,
    )


def _of_outputs(measurement: Measurement, job: RunJob) -> Iterator[str]:
    wanted = {
        b.name: b.nbytes * job.samples for b in job.buffers if b.fetch and b.role is Role.OUTPUT
    }
    found = [(name, len(content)) for name, content in measurement.outputs]
    if dict(found) != wanted or len(found) != len(wanted):
        shown = ", ".join(f"{name}: {nbytes} bytes" for name, nbytes in found[:3]) or "none"
        yield f"outputs ({shown}) that are not those that were asked for"
