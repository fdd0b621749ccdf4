"""What a campaign orders: the loop carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from driver.campaign.events import JobId, Outcome
from driver.farm.device_messages import Confirm


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask the tuner for at most `count` candidates; answered by one `Proposed` of some of them."""

    count: int


@dataclass(frozen=True, slots=True)
class Compile:
    """Build these jobs in one task; answered by `Built` or `BuildFailed` for each."""

    jobs: tuple[JobId, ...]


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Queue a built job on a device; answered by `RunEnded` or `DeviceLost`.

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
class Repeat:
    """What a device gave of these jobs counts for nothing: they are measured again."""

    jobs: tuple[JobId, ...]
    why: str


@dataclass(frozen=True, slots=True)
class EndCampaign:
    """Nothing is left to do. `why` is "exhausted", "stopped" or "no device"."""

    why: str


Command: TypeAlias = Propose | Compile | Dispatch | Tell | Confirm | Repeat | EndCampaign
