"""What a device thread is told to do, and what it says: to whoever runs something on devices.

A campaign hears these as they are. `number` is the caller's for a run, `slot` the thread's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilefarm.digest import Digest
from tilefarm.errors import AccessError, NoDeviceError
from tilefarm.lease import Lease
from tilefarm.measurement import DeviceClock, Measurement, RunFailure, RunJob, Status, is_spoiled

from driver.farm.plausible import UNKNOWN, RunBounds


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
    bounds: RunBounds = UNKNOWN


@dataclass(frozen=True, slots=True)
class Confirm:
    """Have a device prove that it was right; answered by `Confirmed` or `DeviceLost`."""

    device: str


@dataclass(frozen=True, slots=True)
class DeviceUp:
    """A device is leased and ready."""

    lease: Lease
    slot: int = 0

    @property
    def device(self) -> str:
        """Its name."""
        return self.lease.device.name


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """A run ended, with wall seconds at its begin, after what was sent ahead, and at its end.

    `unchecked` runs, this one included, has the device not confirmed yet; 0 confirms all of them.
    """

    number: int
    device: str
    result: Measurement | RunFailure
    began_seconds: float = 0.0
    sent_seconds: float = 0.0
    ended_seconds: float = 0.0
    unchecked: int = 0
    slot: int = 0

    @property
    def seconds(self) -> float:
        """What the run took, its way there and back included."""
        return self.ended_seconds - self.began_seconds

    @property
    def is_spoiled(self) -> bool:
        """Whether it is to be done again."""
        return is_spoiled(self.result)

    @property
    def is_implausible(self) -> bool:
        """Whether its device said what cannot be."""
        return isinstance(self.result, RunFailure) and self.result.status is Status.IMPLAUSIBLE


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A device was right until now."""

    device: str
    slot: int = 0


@dataclass(frozen=True, slots=True)
class DeviceLost:
    """A device stopped answering, is not right, or its lease was lost.

    `number` is the run that it spoiled, 0 if none. `perhaps`: runs that were asked for in one call;
    it has spoiled one of them, or none. `for_good`: it is not to be believed as long as its server
    lives. `rests`: its answers are right, and it says itself when it is to be had again.
    """

    device: str
    why: str = ""
    number: int = 0
    perhaps: tuple[int, ...] = ()
    for_good: bool = False
    rests: bool = False
    slot: int = 0


@dataclass(frozen=True, slots=True)
class DeviceLent:
    """A device was given back, as others want it; what was queued on it has not begun.

    All that it ran is confirmed. The thread stands in line for another one.
    """

    device: str
    slot: int = 0


@dataclass(frozen=True, slots=True)
class DeviceBusy:
    """A device's host is too busy to time anything; its thread waits until it is not, for a while.

    Said once, until something could be timed there.
    """

    device: str
    why: str
    wait_seconds: float
    slot: int = 0


@dataclass(frozen=True, slots=True)
class NoDevice:
    """A thread has waited for a device in vain; it waits on, unless we are refused."""

    error: NoDeviceError | AccessError
    slot: int = 0


Message = DeviceUp | RunEnded | Confirmed | DeviceLost | DeviceLent | DeviceBusy | NoDevice
Report = Callable[[Message | Exception], None]
"""Takes what a thread says; an exception is what it died of."""
