"""What a run tells whoever watches, as it happens: the terminal, a log of JSON lines, the report.

Seconds are counted from the start of the command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tilefarm.measurement import DeviceClock

from driver.report.summary import RunSummary, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBegan:
    """One of the run's steps begins."""

    step: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded:
    """A step is done. `detail` is one line: what came out of it."""

    step: str
    seconds: float
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownWorkload:
    """What earlier sessions know of a workload."""

    trials: int
    failed: int
    default_cycles: int | None
    best_cycles: int | None
    default_seconds: float | None = None
    best_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBegan:
    """The search begins.

    `workloads` are (name, count); `done` trials are from earlier sessions, and `standings`, by
    workload, are what came of them.
    """

    workloads: tuple[tuple[str, int], ...]
    standings: Mapping[str, KnownWorkload] = field(default_factory=dict)
    trials: int
    done: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceJoined:
    """A device is leased; `clock` is the value of its `DeviceClock`."""

    device: str
    sandbox: str
    runtime: str
    seconds: float
    clock: str = DeviceClock.CYCLES.value


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLeft:
    """A device is lost, or `lent` to others whose turn it is."""

    device: str
    why: str
    seconds: float
    lent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnded:
    """A trial is recorded.

    `number` of `total` trials; what its kernel took, in cycles or seconds as its device tells it,
    beside the best of its workload so far; `why` when it did not end well.
    """

    number: int
    total: int
    workload: str
    status: str
    cycles: int | None
    best_cycles: int | None
    default_cycles: int | None
    device: str
    why: str
    seconds: float
    kernel_seconds: float | None = None
    best_seconds: float | None = None
    default_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something worth a line."""

    text: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The run is over; `paths` are (what, where) of its outputs."""

    summary: RunSummary
    paths: tuple[tuple[str, str], ...]
    seconds: float


Progress: TypeAlias = (
    StepBegan | StepEnded | SearchBegan | DeviceJoined | DeviceLeft | TrialEnded | Notice | Ended
)

Listener: TypeAlias = Callable[[Progress | Span], None]
"""Takes every event once, in order, on one thread."""
