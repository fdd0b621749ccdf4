"""One thread per device: holds a lease, runs what it is given, says what came of it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.errors import AccessError, FarmFault, NoDeviceError
from tilefarm.lease import Lease
from tilefarm.measurement import Measurement, RunFailure, RunJob

_RETRY_SECONDS: Final = 0.5
_HINT: Final = "check --tracker and --token-file, and that `tilefarm tracker` runs there"


class Client(Protocol):
    """What a device's client offers; see `device_server.client.DeviceClient`."""

    def ensure(self, blobs: Mapping[Digest, bytes]) -> int:
        """Upload what the device lacks; the bytes sent."""
        ...

    def run(self, job: RunJob, *, request_id: str) -> Measurement | RunFailure:
        """Run a job; raises a FarmFault when the device is lost."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class LeaseSource(Protocol):
    """Where devices come from; see `driver.farm.fleet.Leases`."""

    def acquire(self, wait_seconds: float) -> Lease:
        """One more device; raises NoDeviceError or a FarmFault."""
        ...

    def connect(self, lease: Lease) -> Client:
        """A client of it."""
        ...

    def lost(self, lease: Lease) -> str:
        """Why the lease is void; empty while it is good."""
        ...

    def release(self, lease: Lease, *, device_lost: bool = False) -> None:
        """Give it back."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One run to do: `number` is the caller's, `blobs` are what the job names."""

    number: int
    job: RunJob
    blobs: Mapping[Digest, bytes]
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """A device is leased."""

    slot: int
    lease: Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A run ended, with wall seconds at its begin, after the transfer, and at its end."""

    slot: int
    device: str
    number: int
    result: Measurement | RunFailure
    began_seconds: float
    sent_seconds: float
    ended_seconds: float
    sent_nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The device is gone; `number` is the run that it spoiled, 0 if none."""

    slot: int
    device: str
    number: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoDevice:
    """A thread has no device and will not get one."""

    slot: int
    error: NoDeviceError | AccessError


Report = Callable[[Up | Done | Lost | NoDevice], None]


class DeviceThread:
    """Leases a device, then runs jobs on it; leases another when it is lost.

    Args:
        slot: which thread of the run this is.
        source: where devices come from.
        wait_seconds: for a device, each time.
        report: takes what happens, on this thread.
    """

    def __init__(
        self, slot: int, source: LeaseSource, *, wait_seconds: float, report: Report, clock: Clock
    ) -> None:
        self._slot = slot
        self._source = source
        self._wait_seconds = wait_seconds
        self._report = report
        self._clock = clock
        self._queue: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._main, name=f"device-{slot}", daemon=True)
        self._thread.start()

    def put(self, order: Order) -> None:
        """Queue a run behind those that the device already has."""
        self._queue.put(order)

    def close(self) -> None:
        """Begin nothing new; does not wait."""
        self._closing.set()
        self._queue.put(None)

    def join(self, seconds: float) -> None:
        """Wait for the run that is under way to end and the lease to be given back."""
        self._thread.join(seconds)

    def _main(self) -> None:
        while not self._closing.is_set():
            lease = self._acquire()
            if lease is None:
                return
            self._drain()
            self._report(Up(slot=self._slot, lease=lease))
            lost = self._serve(lease)
            if lost is not None and not self._closing.is_set():
                self._report(lost)
            self._source.release(lease, device_lost=lost is not None)

    def _acquire(self) -> Lease | None:
        """A lease, or None when closing or when there is none to be had."""
        deadline = self._clock.seconds() + self._wait_seconds
        while not self._closing.is_set():
            left = max(0.0, deadline - self._clock.seconds())
            try:
                return self._source.acquire(left)
            except (NoDeviceError, AccessError) as none:
                self._report(NoDevice(slot=self._slot, error=none))
                return None
            except FarmFault as fault:
                if left <= 0:
                    why = NoDeviceError(f"no device: {fault.what}", fault.hint or _HINT)
                    self._report(NoDevice(slot=self._slot, error=why))
                    return None
                self._closing.wait(_RETRY_SECONDS)
        return None

    def _serve(self, lease: Lease) -> Lost | None:
        """Run what comes until closed (None) or the device is lost."""
        client = self._source.connect(lease)
        number = 0
        try:
            while (order := self._queue.get()) is not None:
                number = order.number
                if why := self._source.lost(lease):
                    return self._lost(lease, number, why)
                self._report(self._run(client, lease, order))
                number = 0
        except FarmFault as fault:
            return self._lost(lease, number, fault.what)
        finally:
            client.close()
        return None

    def _run(self, client: Client, lease: Lease, order: Order) -> Done:
        began = self._clock.wall_seconds()
        nbytes = client.ensure(order.blobs)
        sent = self._clock.wall_seconds()
        result = client.run(order.job, request_id=order.request_id)
        return Done(
            slot=self._slot,
            device=lease.device.name,
            number=order.number,
            result=result,
            began_seconds=began,
            sent_seconds=sent,
            ended_seconds=self._clock.wall_seconds(),
            sent_nbytes=nbytes,
        )

    def _lost(self, lease: Lease, number: int, why: str) -> Lost:
        return Lost(slot=self._slot, device=lease.device.name, number=number, why=why)

    def _drain(self) -> None:
        """Forget runs that were queued on a device that is gone; their owner has them back."""
        while not self._queue.empty():
            if self._queue.get() is None:
                self._queue.put(None)
                return
