"""What a device thread is told to do, and what it says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilefarm.digest import Digest
from tilefarm.errors import AccessError, NoDeviceError
from tilefarm.lease import Lease
from tilefarm.measurement import DeviceClock, Measurement, RunFailure, RunJob, Status, is_spoiled

from driver.farm.plausible import UNKNOWN, Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One run to do: `number` is the caller's, `blobs` are what the job names.

    `candidate` is what logs and traces call it, if it is one. `alone`: in a call of its own, as it
    may have cost a device. `clock` has to tell its time; None: nobody asks how long it takes.
    `bounds`: what no answer can be beyond.
    """

    number: int
    job: RunJob
    blobs: Mapping[Digest, bytes]
    request_id: str
    candidate: str = ""
    alone: bool = False
    clock: DeviceClock | None = None
    bounds: Bounds = UNKNOWN


@dataclass(frozen=True, slots=True)
class Confirm:
    """To have the device confirm what it has run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """The device was right until now."""

    slot: int
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """A device is leased."""

    slot: int
    lease: Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A run ended, with wall seconds at its begin, after what was sent ahead, and at its end.

    `unchecked` runs, this one included, has the device not confirmed yet.
    """

    slot: int
    device: str
    number: int
    result: Measurement | RunFailure
    began_seconds: float
    sent_seconds: float
    ended_seconds: float
    unchecked: int = 0

    @property
    def is_spoiled(self) -> bool:
        """Whether it is to be done again."""
        return is_spoiled(self.result)

    @property
    def is_implausible(self) -> bool:
        """Whether its device said what cannot be."""
        return isinstance(self.result, RunFailure) and self.result.status is Status.IMPLAUSIBLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The device is gone; `number` is the run that it spoiled, 0 if none.

    `perhaps`: runs that were asked for in one call; it has spoiled one of them, or none.
    `suspect`: it is not right any more, and neither may be what it has not confirmed.
    `for_good`: nor is it to be believed as long as its server lives.
    """

    slot: int
    device: str
    number: int
    why: str
    suspect: bool = False
    for_good: bool = False
    perhaps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    """The device was given back, as others want it; what was queued on it has not begun.

    All that it ran is confirmed. The thread stands in line for another one.
    """

    slot: int
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoDevice:
    """A thread has waited for a device in vain; it waits on, unless we are refused."""

    slot: int
    error: NoDeviceError | AccessError


Message = Up | Done | Confirmed | Lost | Lent | NoDevice
Report = Callable[[Message | Exception], None]
"""Takes what a thread says; an exception is what it died of."""
