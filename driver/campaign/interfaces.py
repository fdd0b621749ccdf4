"""What a search is given and what it gives back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from tilefarm.errors import AccessError, NoDeviceError
from tilefarm.measurement import Trial

from driver.campaign.campaign import WorkLimits
from driver.run_events import TimeBreakdown
from tuner.trial_store import TrialPosition


class Records(Protocol):
    """Where trials are kept."""

    def insert(self, trial: Trial, *, run: str, place: TrialPosition | None = None) -> bool:
        """Store one trial for good, with its place in the order; False if it is there already."""
        ...

    def insert_pace(self, device: str, seconds: float) -> None:
        """Store what the known kernel took on a device when its first time was kept."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """How candidates are treated.

    Attributes:
        devices: how many to lease.
        device_wait_seconds: for each of them.
        run_timeout_seconds: for one candidate's own time on a device.
        run_id: names this run in records and requests.
        wall_origin: wall seconds of the command's begin; spans and events are counted from it.
        proposer: noted in every trial;
        search: as well, for their order.
        most_device_seconds: of all its runs together: nothing new is begun after these.
    """

    devices: int
    limits: WorkLimits
    device_wait_seconds: float
    run_timeout_seconds: float
    run_id: str
    wall_origin: float
    proposer: str = ""
    search: int = 1
    most_device_seconds: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """How a search ended, and where its time went.

    Attributes:
        why: "exhausted", "stopped" or "no device"; only the last one comes with an `error`.
        trials: that ended in this search.
        lookahead: candidates that were out at most.
        ended: why nothing more was worth a trial, or which budget was spent, if that is how it
            ended.
        first_measured_seconds: from the begin of the command; None if nothing was measured.
    """

    why: str
    trials: int
    lookahead: int
    first_measured_seconds: float | None
    seconds: float
    split: TimeBreakdown
    ended: str = ""
    error: NoDeviceError | AccessError | None = None
