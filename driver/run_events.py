"""What a run tells whoever watches, as it happens: the terminal, a log of JSON lines, the report.

Whoever tells it knows nothing of those. Seconds are counted from the start of the command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tilefarm.measurement import DeviceClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One bar of the Gantt chart: something that `lane` did from `begin` to `end`.

    Attributes:
        lane: "driver", "compile <n>" or the name of a device.
        kind: "start", "propose", "compile", "transfer", "run", "rerun" (of finalists) or "network".
        label: what it was done for, for people.
        candidate: what logs and traces call it; empty if it was for none.
    """

    lane: str
    kind: str
    label: str
    begin_seconds: float
    end_seconds: float
    candidate: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBreakdown:
    """Where the seconds of all trials of this session went, summed; they overlap in wall time."""

    propose_seconds: float = 0.0
    compile_seconds: float = 0.0
    transfer_seconds: float = 0.0
    run_seconds: float = 0.0


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
    """A device is lost, `lent` to others whose turn it is, or rests and comes back by itself."""

    device: str
    why: str
    seconds: float
    how: Literal["lost", "lent", "rests"] = "lost"


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
    cycles: int | None = None
    best_cycles: int | None = None
    default_cycles: int | None = None
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


Progress: TypeAlias = (
    StepBegan | StepEnded | SearchBegan | DeviceJoined | DeviceLeft | TrialEnded | Notice
)

RunEvent: TypeAlias = Progress | Span
