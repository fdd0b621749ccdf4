"""What a campaign hears: what happened to its candidates, and what device threads say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilefarm.artifact import BuildFailure
from tilefarm.measurement import Measurement, RunFailure

from driver.farm.device_messages import Confirmed, DeviceLent, DeviceLost, DeviceUp, RunEnded

JobId: TypeAlias = int
"""A candidate's number in the order in which the tuner was asked; never used twice."""

Outcome: TypeAlias = BuildFailure | Measurement | RunFailure
"""How a candidate ended."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """The tuner's answer to `Propose`; no jobs means that it will have none any more."""

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
    | RunEnded
    | Confirmed
    | DeviceUp
    | DeviceLost
    | DeviceLent
    | DevicesGone
    | Stop
)
