"""What goes to a device and what comes back: run jobs, measurements, typed run failures."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from itertools import pairwise
from typing import Final

from tilefarm.digest import Digest
from tilefarm.plural import plural


class Status(Enum):
    """How a trial ended.

    Only DEVICE_LOST and INFRA_ERROR, the farm's faults, are tried again, and IMPLAUSIBLE: as long
    as it may have been its device.
    """

    OK = "ok"
    COMPILE_ERROR = "compile_error"
    COMPILE_CRASH = "compile_crash"
    COMPILE_TIMEOUT = "compile_timeout"
    VERIFY_REJECTED = "verify_rejected"
    LOAD_ERROR = "load_error"
    RUN_CRASH = "run_crash"
    RUN_TIMEOUT = "run_timeout"
    WRONG_RESULT = "wrong_result"
    RESOURCE_EXCEEDED = "resource_exceeded"
    DEVICE_LOST = "device_lost"
    CANCELLED = "cancelled"
    INFRA_ERROR = "infra_error"
    IMPLAUSIBLE = "implausible"
    """Its devices were right otherwise, and say of it what cannot be."""

    @property
    def is_farm_fault(self) -> bool:
        """Whether the farm, not the candidate, is to blame, so that trying again is right."""
        return self in (Status.DEVICE_LOST, Status.INFRA_ERROR)


class Role(Enum):
    """What a buffer of a run is for."""

    CONSTANT = "constant"
    """Filled once from `content` before the first call."""
    INPUT = "input"
    """Filled before every call with the next `nbytes` of `content`, which holds all samples."""
    OUTPUT = "output"
    """Zeroed before the first call; read after every call."""
    SCRATCH = "scratch"
    """Room for intermediate values; contents undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferSpec:
    """One parameter of the entry that is run. `nbytes` is per sample.

    For an OUTPUT, `expected` is the digest of all samples' bytes in a row; a mismatch makes the run
    a WRONG_RESULT. `fetch` asks for the bytes of an OUTPUT to be returned.
    """

    name: str
    role: Role
    nbytes: int
    content: Digest | None = None
    expected: Digest | None = None
    fetch: bool = False


class DeviceClock(StrEnum):
    """What tells how long a kernel takes on a device. Times of the two are never compared."""

    CYCLES = "cycles"
    """The accelerator's own counter: exact, so that one call is enough."""
    SECONDS = "seconds"
    """The host's wall clock, because the library counts nothing: noisy; see `Precision`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How well a run is to be timed by the wall clock, and what that may cost.

    Attributes:
        error: the median's relative standard error that is small enough; see `WallTime.error`.
        seconds: after so many it ends in any case, with what it has; the warming up included.

    Raises:
        ValueError: one is not positive and finite.
    """

    error: float
    seconds: float

    def __post_init__(self) -> None:
        if not (0 < self.error < math.inf and 0 < self.seconds < math.inf):
            raise ValueError(f"a precision of {self.error} within {self.seconds} s")


TIME_TOLERANCE: Final = 0.10
"""So far the shortest regions of one kernel may be apart, relatively, on devices that are as fast.
On boards that are right they vary by 1 to 2 %; one that is throttled takes 1.5 times as long."""
_PATIENCE_SECONDS = 0.5
"""That a runner goes on for beyond a precision's seconds, on a host too busy to time anything."""
_MEDIAN_ERROR = 1.2533 / 2.5631
"""Standard error of the median of n normal values in units of (p90 - p10) / sqrt(n)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WallTime:
    """Host seconds of one call of an entry, from regions of many calls each.

    Attributes:
        minimum_seconds, p10_seconds, median_seconds, p90_seconds: over the regions that were kept.
        calls: in one region; it lasts a millisecond at least, so that the clock's steps vanish.
        regions: that were kept.
        rejected: regions in which the process did not run undisturbed, thrown away.
        preemptions: how often the system gave its core to others meanwhile.
        stolen_seconds: for how long a hypervisor did, whoever had the core.
        begin_mhz, end_mhz: of its core, before and after; 0 where nobody tells it.

    Raises:
        ValueError: a time is not positive and finite, or the times are not in order; or a count
            cannot be.
    """

    minimum_seconds: float
    p10_seconds: float
    median_seconds: float
    p90_seconds: float
    calls: int
    regions: int
    rejected: int = 0
    preemptions: int = 0
    stolen_seconds: float = 0.0
    begin_mhz: float = 0.0
    end_mhz: float = 0.0

    def __post_init__(self) -> None:
        times = self.minimum_seconds, self.p10_seconds, self.median_seconds, self.p90_seconds
        if not all(0 < a <= b < math.inf for a, b in pairwise(times)):
            raise ValueError(f"wall times {', '.join(map(str, times))} s")
        if self.calls < 1 or self.regions < 1 or self.rejected < 0:
            raise ValueError(f"{self.regions} regions of {self.calls} calls")
        told = self.preemptions, self.stolen_seconds, self.begin_mhz, self.end_mhz
        if not all(0 <= each < math.inf for each in told):
            raise ValueError(f"disturbed by {told}")

    def scaled(self, factor: float) -> WallTime:
        """The same of a host that takes so many times as long."""
        return replace(
            self,
            minimum_seconds=self.minimum_seconds * factor,
            p10_seconds=self.p10_seconds * factor,
            median_seconds=self.median_seconds * factor,
            p90_seconds=self.p90_seconds * factor,
        )

    @property
    def spread(self) -> float:
        """From the p10 to the p90, relative to the median."""
        return (self.p90_seconds - self.p10_seconds) / self.median_seconds

    @property
    def error(self) -> float:
        """Relative standard error of the median, as if regions were independent and normal."""
        return _MEDIAN_ERROR * self.spread / math.sqrt(self.regions)


def disturbances_in_words(
    preemptions: int, stolen_seconds: float, begin_mhz: float, end_mhz: float
) -> str:
    """What of this disturbs what is timed, see `WallTime`; empty if nothing does.

    A frequency that stays within what times differ by anyway does not.
    """
    told = []
    if preemptions:
        told.append(f"its core was taken from it {plural(preemptions, 'time')}")
    if stolen_seconds:
        told.append(f"a hypervisor took {stolen_seconds:.2f} s")
    slower, faster = sorted((begin_mhz, end_mhz))
    if slower > 0 and faster > slower * (1 + TIME_TOLERANCE):
        told.append(f"its frequency went from {begin_mhz:.0f} to {end_mhz:.0f} MHz")
    return ", ".join(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """Run `entry` of an uploaded artifact.

    Every sample runs once (checked), then one of them `repeats` times (each call timed by itself),
    then as often as the wanted precision of the wall time takes; each call must give the same
    outputs again. Then the entries of `profile` do the same one after the other, each called and
    waited for by itself: what they take is the measurement's `profile`, by the clock if a precision
    is wanted.

    `timeout_seconds` bounds the kernel's own time over samples and repeats, not the waiting for a
    device; `limit_seconds` all that the job may take where it runs.
    `timeline` asks for the accelerator's instruction timeline of the last checked call.
    """

    artifact: Digest
    entry: str
    buffers: tuple[BufferSpec, ...]
    samples: int = 1
    repeats: int = 0
    precision: Precision | None = None
    profile: tuple[str, ...] = ()
    timeout_seconds: float = 10.0
    timeline: bool = False

    @property
    def limit_seconds(self) -> float:
        """Within so many a job whose calls keep their timeout has run.

        What is timed by the clock comes on top: a precision's seconds, what a busy host may add to
        them, and the calls under way when they are over; once more for the profile.
        """
        if self.precision is None:
            return self.timeout_seconds * (2 if self.profile else 1)
        timed = 2 if self.profile else 1
        timing_seconds = self.precision.seconds + _PATIENCE_SECONDS + self.timeout_seconds
        return self.timeout_seconds + timed * timing_seconds

    @property
    def blobs(self) -> tuple[Digest, ...]:
        """What a device must hold to run it: the artifact and contents of buffers, each once."""
        contents = [buffer.content for buffer in self.buffers if buffer.content]
        return tuple(dict.fromkeys([self.artifact, *contents]))


@dataclass(frozen=True, slots=True, init=False)
class Counters:
    """What a machine did in one call of the entry, as its runtime reports it: numbers by name.

    Which names there are is the machine's, see `tilefarm.model`. What is not there is 0, and what
    is 0 is not there.
    """

    counts: tuple[tuple[str, int], ...]

    def __init__(self, **counts: int) -> None:
        there = sorted((name, count) for name, count in counts.items() if count)
        object.__setattr__(self, "counts", tuple(there))

    def __getitem__(self, name: str) -> int:
        return next((count for each, count in self.counts if each == name), 0)

    def but(self, **counts: int) -> Counters:
        """The same with some of them changed."""
        return Counters(**{**dict(self.counts), **counts})

    @property
    def cycles(self) -> int:
        """The one that is compared; 0 where nothing counts any."""
        return self["cycles"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """One instruction on one module of the accelerator. Cycles are counted from the launch."""

    module: str
    name: str
    begin_cycle: int
    end_cycle: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTime:
    """What one entry of a profile took: cycles where they are counted, else wall time."""

    cycles: int | None = None
    wall_time: WallTime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A run that ended well: counters of a call, host seconds of timed calls, outputs.

    All samples take the same cycles; of a kernel for which they do not, the counters are those of
    the call that took the most, or the last one on a device whose own library counts.
    `counters` is None on a device that counts nothing, and `sample_cycles` is empty there.
    `wall_time` is there if the job asked for a precision; `profile` has a row for each entry that
    the job's names.
    `outputs` holds (buffer name, bytes of all samples) for buffers with `fetch`.
    """

    artifact: Digest
    device: str
    counters: Counters | None
    wall_time: WallTime | None = None
    profile: tuple[CallTime, ...] = ()
    seconds: tuple[float, ...] = ()
    sample_cycles: tuple[int, ...] = ()
    outputs: tuple[tuple[str, bytes], ...] = ()
    timeline: tuple[TimelineEvent, ...] = ()
    load_seconds: float = 0.0
    run_seconds: float = 0.0

    @property
    def counted(self) -> Counters:
        """The counters of a device that is known to have them.

        Raises:
            ValueError: it has none.
        """
        if self.counters is None:
            raise ValueError(f"device {self.device} counts nothing")
        return self.counters

    @property
    def cycles(self) -> int | None:
        """Of the counters; None where nothing counts them."""
        return None if self.counters is None else self.counters.cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailure:
    """A run that did not end well: a typed status, the reason in words, and where it happened.

    `signal` is the number that ended the child (0 if none); `mismatch` describes the first wrong
    output. `untimed`: it ran, but no time could be taken of it, as on a busy host.

    Raises:
        ValueError: the status is OK.
    """

    artifact: Digest
    status: Status
    why: str
    device: str = ""
    signal: int = 0
    mismatch: str = ""
    run_seconds: float = 0.0
    untimed: bool = False

    def __post_init__(self) -> None:
        if self.status is Status.OK:
            raise ValueError("a failure that ended well")


def is_spoiled(outcome: Measurement | RunFailure) -> bool:
    """Whether the farm is to blame for how a run ended, or may be: it is to be done again."""
    if not isinstance(outcome, RunFailure):
        return False
    return outcome.status.is_farm_fault or outcome.status is Status.IMPLAUSIBLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One candidate with its terminal status: what the tuner learns from and the store keeps.

    `cycles` and `wall_time` are None unless the status is OK; which of them is there says how its
    device tells time. Digests are those of workload, trace and artifact.
    `point` has the values of the tunable variables, sorted by name; others follow from them.
    """

    workload: Digest
    trace: Digest
    point: tuple[tuple[str, int], ...]
    status: Status
    cycles: int | None = None
    wall_time: WallTime | None = None
    seconds: tuple[float, ...] = ()
    artifact: Digest | None = None
    device: str = ""
    why: str = ""
    proposer: str = ""
    spans: tuple[tuple[str, float, float], ...] = field(default=())
    """(stage, begin, end) in wall seconds: propose, compile, transfer, run."""

    @property
    def clock(self) -> DeviceClock | None:
        """What `cost` was told by; None if it has none."""
        if self.cycles:
            return DeviceClock.CYCLES
        return None if self.wall_time is None else DeviceClock.SECONDS

    @property
    def cost(self) -> float | None:
        """Cycles, or the median's seconds where none are counted; None if neither: 0 is no time."""
        if self.cycles:
            return float(self.cycles)
        return self.cost_seconds

    @property
    def cost_seconds(self) -> float | None:
        """The median's seconds where the clock tells the cost; None where counters do."""
        if self.cycles or self.wall_time is None:
            return None
        return self.wall_time.median_seconds

    @property
    def noise(self) -> float:
        """A cost that differs by less than this share is the same: two standard errors of the
        median; counters are exact.
        """
        return 0.0 if self.cycles or self.wall_time is None else 2 * self.wall_time.error
