"""What a campaign hears and what it orders: the two small languages between it and the loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilefarm.artifact import BuildFailure
from tilefarm.measurement import Measurement, RunFailure

JobId: TypeAlias = int
"""Numbers candidates 1, 2, 3 … within one campaign; never used twice."""

Outcome: TypeAlias = BuildFailure | Measurement | RunFailure
"""How a candidate ended."""


# ---- events: what happened -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proposed:
    """The tuner's answer to `Ask`; no jobs means that it has none now.

    `tasks` names the task of each job; without it they are of none, and none is given up.
    """

    jobs: tuple[JobId, ...]
    tasks: tuple[str, ...] = ()


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
    """A device ran a job to its end; `unconfirmed` if it may still turn out to be wrong.

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
class Spoiled:
    """These unconfirmed jobs of a device are worth nothing: it was wrong under a lease since.

    Also the answer to `Inquire`; then there may be none.
    """

    device: str
    jobs: tuple[JobId, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Of as many devices as are wanted each is leased, or was waited for in vain."""


@dataclass(frozen=True, slots=True)
class DeviceUp:
    """A device is leased and ready."""

    device: str


@dataclass(frozen=True, slots=True)
class DeviceLost:
    """A device stopped answering, or its lease was lost. `job` is the one it ran, 0 if none.

    `perhaps`: jobs that it was asked to run together; it may have begun any of them.
    `suspect`: it is not right any more; what it has not confirmed is worth nothing.
    """

    device: str
    why: str = ""
    job: JobId = 0
    suspect: bool = False
    perhaps: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceLent:
    """A device went to others whose turn it is; what it has run is confirmed."""

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
    | Spoiled
    | Gathered
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
    """Have a device confirm its results; answered by `Confirmed` or `DeviceLost`."""

    device: str


@dataclass(frozen=True, slots=True)
class Inquire:
    """Ask a device that is not up whether it was wrong meanwhile; answered by `Spoiled`."""

    device: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """What was told of these jobs is taken back; they are measured again."""

    jobs: tuple[JobId, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Drop:
    """A job will not be pursued; it leaves no record, so a later run may propose it again."""

    job: JobId


@dataclass(frozen=True, slots=True)
class GiveUp:
    """A task's candidates all fail alike: propose no more of it."""

    task: str
    why: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to do. `why` is "exhausted", "stopped" or "no device"."""

    why: str


Command: TypeAlias = (
    Ask | Compile | Measure | Tell | Confirm | Inquire | Doubt | Drop | GiveUp | Finish
)
