"""What a campaign hears and what it orders: the two small languages between it and the loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilefarm.artifact import BuildFailure
from tilefarm.measurement import Measurement, RunFailure

JobId: TypeAlias = int
"""A candidate's number in the order in which the tuner was asked; never used twice."""

Outcome: TypeAlias = BuildFailure | Measurement | RunFailure
"""How a candidate ended."""


# ---- events: what happened -----------------------------------------------------------------------


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
    """A device ran a job to its end; `unconfirmed` if it has to prove yet that it was right.

    `seconds` is what the run took, its way there and back included.
    """

    job: JobId
    device: str
    measurement: Measurement
    unconfirmed: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RunFailed:
    """A device could not run a job, and says why; `unconfirmed` as for what it could."""

    job: JobId
    device: str
    failure: RunFailure
    unconfirmed: bool = False


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


# ---- commands: what to do ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the tuner for at most `count` candidates; answered by one `Proposed`."""

    count: int


@dataclass(frozen=True, slots=True)
class Compile:
    """Build these jobs in one task; answered by `Built` or `BuildFailed` for each."""

    jobs: tuple[JobId, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """Queue a built job on a device; answered by `Measured`, `RunFailed` or `DeviceLost`.

    `alone`: not together with others, as it may have cost a device.
    """

    device: str
    job: JobId
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Tell:
    """A job is closed: record it and let the tuner learn. `story` is its life in words."""

    job: JobId
    outcome: Outcome
    story: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Confirm:
    """Have a device prove that it was right; answered by `Confirmed` or `DeviceLost`."""

    device: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """What a device gave of these jobs counts for nothing: they are measured again."""

    jobs: tuple[JobId, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to do. `why` is "exhausted", "stopped" or "no device"."""

    why: str


Command: TypeAlias = Ask | Compile | Measure | Tell | Confirm | Repeat | Finish
