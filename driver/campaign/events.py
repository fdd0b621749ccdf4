"""What a campaign hears: what happened to its candidates and devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilefarm.artifact import BuildFailure
from tilefarm.measurement import Measurement, RunFailure

JobId: TypeAlias = int
"""A candidate's number in the order in which the tuner was asked; never used twice."""

Outcome: TypeAlias = BuildFailure | Measurement | RunFailure
"""How a candidate ended."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """The tuner's answer to `Ask`; no jobs means that it will have none any more."""

    jobs: tuple[JobId, ...]


@dataclass(frozen=True, slots=True)
class Built:
    """A job has its artifact; `seconds` is what the build took."""

    job: JobId
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class BuildFailed:
    """A job will never have an artifact."""

    job: JobId
    failure: BuildFailure


@dataclass(frozen=True, slots=True)
class Measured:
    """A device ran a job to its end; `provisional` until it has proved that it was right.

    `seconds` is what the run took, its way there and back included.
    """

    job: JobId
    device: str
    measurement: Measurement
    provisional: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RunFailed:
    """A device could not run a job, and says why; `provisional` as for what it could."""

    job: JobId
    device: str
    failure: RunFailure
    provisional: bool = False


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A device was right until now."""

    device: str


@dataclass(frozen=True, slots=True)
class DeviceUp:
    """A device is leased and ready."""

    device: str


@dataclass(frozen=True, slots=True)
class DeviceLost:
    """A device stopped answering, is not right, or its lease was lost.

    `job` is the one it ran, 0 if none. `perhaps`: jobs that it was asked to run together; it may
    have begun any of them.
    """

    device: str
    why: str = ""
    job: JobId = 0
    perhaps: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceLent:
    """A device went to others whose turn it is."""

    device: str


@dataclass(frozen=True, slots=True)
class DevicesGone:
    """No device is left and none could be had in time."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """Finish what runs, begin nothing new."""


Event: TypeAlias = (
    Proposed
    | Built
    | BuildFailed
    | Measured
    | RunFailed
    | Confirmed
    | DeviceUp
    | DeviceLost
    | DeviceLent
    | DevicesGone
    | Stop
)
