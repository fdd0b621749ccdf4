"""One thread per device: holds a lease, runs what it is given, says what came of it.

A device that somebody with a fairer claim waits for is given back between two runs, and the thread
stands in line again. One that spoils run after run, because its disk is full, rests between them:
it would spoil all candidates of a search before anybody can mend it. Where the host is too busy to
time a run, that is made again after such rests, and is spoiled only if a minute does not help.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tilefarm.clock import Clock
from tilefarm.errors import (
    AccessError,
    AnswerError,
    BusyError,
    ClockError,
    DeviceLostError,
    DevicesInUseError,
    FarmFault,
    ImplausibleError,
    NoDeviceError,
)
from tilefarm.lease import Lease
from tilefarm.measurement import RunFailure
from tilefarm.threads import start_thread

from driver.farm.device_messages import (
    Confirm,
    Confirmed,
    DeviceBusy,
    DeviceLent,
    DeviceLost,
    DeviceUp,
    NoDevice,
    Order,
    Report,
    RunEnded,
)
from driver.farm.lease_source import LeaseSource
from driver.farm.measurer import Measurer
from driver.farm.order_queue import OrderQueue
from driver.farm.retrying_client import Client, RetryingClient

RETRY_SECONDS: Final = 0.5
_REST_SECONDS: Final = 0.2
_LONGEST_REST_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.5
_BUSY_SECONDS: Final = 60.0
"""A build of somebody's is over by then, or goes on for longer than a search wants to wait."""
_PATIENCE_SECONDS: Final = 30.0
_HINT: Final = "check --tracker and --token-file, and that `tilefarm tracker` runs there"


def rest_seconds(spoiled: int) -> float:
    """How long to wait when so many runs in a row were spoiled by the farm's fault."""
    return min(_LONGEST_REST_SECONDS, _REST_SECONDS * 2.0 ** min(spoiled - 1, 100))


def _anew(order: Order) -> Order:
    """The same run, asked for as another one: a device remembers how those before ended."""
    return replace(order, request_id=f"{order.request_id}+")


def join_all(threads: Sequence[DeviceThread], within_seconds: float, clock: Clock) -> None:
    """Wait for the end of threads that are closed, for so long altogether."""
    until = clock.seconds() + within_seconds
    for thread in threads:
        thread.join(max(0.0, until - clock.seconds()))


class DeviceThread:
    """Leases a device, then runs jobs on it; leases another when it is lost, or lent to others.

    Args:
        slot: which thread of the run this is.
        source: where devices come from.
        wait_seconds: for a device, each time, before it says that there is none.
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
        self._orders = OrderQueue()
        self._closing = threading.Event()
        self._has_lent = False
        self._busy_since: float | None = None
        """When a run could not be timed, unless one could since."""
        self._thread = start_thread(self._main, name=f"device-{slot}", broken=report)

    def put(self, lease: Lease, order: Order) -> None:
        """Queue a run behind those that the device already has.

        Once the lease has ended, the run is forgotten; its owner has it back.
        """
        self._orders.put(lease.lease_id, order)

    def confirm(self, lease: Lease) -> None:
        """Have the device confirm its results, behind the runs that it has."""
        self._orders.put(lease.lease_id, Confirm(lease.device.name))

    @property
    def idle(self) -> bool:
        """Whether nothing will come of it unless it is given something to do."""
        return not self._thread.is_alive() or self._orders.is_awaited

    def close(self) -> None:
        """Begin nothing new; does not wait."""
        self._closing.set()
        self._orders.close()

    def join(self, seconds: float) -> None:
        """Wait for the run that is under way to end and the lease to be given back."""
        self._thread.join(seconds)

    def _main(self) -> None:
        while not self._closing.is_set():
            lease = self._acquire()
            if lease is None:
                return
            self._report(DeviceUp(lease, slot=self._slot))
            ended = self._serve(lease)
            if ended is not None and not self._closing.is_set():
                self._report(ended)
            self._has_lent = isinstance(ended, DeviceLent)
            lost = ended if isinstance(ended, DeviceLost) else None
            self._source.release(
                lease,
                device_lost=lost is not None and not lost.rests,
                why=lost.why if lost is not None else "",
                for_good=lost is not None and lost.for_good,
            )

    def _acquire(self) -> Lease | None:
        """A lease, or None when closing or refused.

        A run may go on with the devices that its other threads have, so this one waits on when it
        has said that there is none. Who has lent a device says nothing while others use them all.
        """
        deadline = self._clock.seconds() + self._wait_seconds
        while not self._closing.is_set():
            left = max(0.0, deadline - self._clock.seconds())
            none: NoDeviceError | None = None
            pause_seconds = RETRY_SECONDS
            try:
                return self._source.acquire(left, self._closing.is_set)
            except AccessError as refused:
                self._report(NoDevice(refused, slot=self._slot))
                return None
            except DevicesInUseError as in_use:
                none, pause_seconds = in_use, 0.0
            except NoDeviceError as error:
                none = error
            except FarmFault as fault:
                if left <= 0:
                    none = NoDeviceError(f"no device: {fault.what}", fault.hint or _HINT)
                if isinstance(fault, BusyError):
                    pause_seconds = fault.retry_seconds
            if none is not None:
                if not (self._has_lent and isinstance(none, DevicesInUseError)):
                    self._report(NoDevice(none, slot=self._slot))
                deadline = self._clock.seconds() + max(self._wait_seconds, _PATIENCE_SECONDS)
            self._closing.wait(pause_seconds)
        return None

    def _serve(self, lease: Lease) -> DeviceLost | DeviceLent | None:
        """Run what comes until closed or refused (None), or the device is lost, or lent."""
        client = RetryingClient(
            lambda: self._source.connect(lease),
            void=lambda: self._source.void(lease),
            patience_seconds=lease.ttl_seconds,
            wait=self._closing.wait,
            clock=self._clock,
        )
        measurer = Measurer(client, slot=self._slot, device=lease.device.name, clock=self._clock)
        spoiled = 0
        try:
            while (what := self._next(lease, measurer.together)) is not None:
                if isinstance(what, DeviceLent):
                    self._confirm(client, lease)
                    return what
                if why := self._source.lost(lease):
                    return self._lost(lease, measurer, why)  # nothing has begun
                if isinstance(what, Confirm):
                    self._confirm(client, lease)
                    continue
                done = measurer.run(what)
                again = [o for o, ended in zip(what, done, strict=False) if self._retimes(ended)]
                self._orders.put_back(lease.lease_id, [*map(_anew, again), *what[len(done) :]])
                numbers = {order.number for order in again}
                for each in done:
                    if each.number not in numbers:
                        self._report(each)
                    spoiled = spoiled + 1 if each.is_spoiled else 0
                if spoiled and self._closing.wait(rest_seconds(spoiled)):
                    return None
        except (AccessError, ClockError) as refusal:
            # It may be well, but not for us: nobody is served by losing one after the other.
            self._report(self._lost(lease, measurer, refusal.what))
            self._report(NoDevice(refusal, slot=self._slot))
            self._closing.set()
        except FarmFault as fault:
            lost = self._lost(lease, measurer, fault.what)
            return replace(
                lost,
                for_good=isinstance(fault, ImplausibleError | AnswerError),
                rests=isinstance(fault, DeviceLostError) and fault.retry_seconds > 0,
            )
        finally:
            client.close()
        return None

    def _retimes(self, ended: RunEnded) -> bool:
        """Whether a run is to be made again, as its host was too busy to time it, not for long."""
        if not (isinstance(ended.result, RunFailure) and ended.result.untimed):
            self._busy_since = None
            return False
        now = self._clock.seconds()
        if self._busy_since is None:
            self._busy_since = now
            why = ended.result.why
            self._report(DeviceBusy(ended.device, why, _BUSY_SECONDS, slot=self._slot))
        return now - self._busy_since < _BUSY_SECONDS

    def _next(self, lease: Lease, most: int) -> Sequence[Order] | Confirm | DeviceLent | None:
        """What to do next, of runs so many; a device that others want is given back, and what is
        queued waits.
        """
        while not self._source.wanted(lease):
            what = self._orders.take(lease.lease_id, most, within_seconds=_LOOK_SECONDS)
            if what is None or what:
                return what
        return DeviceLent(lease.device.name, slot=self._slot)

    def _confirm(self, client: Client, lease: Lease) -> None:
        client.confirm()
        self._report(Confirmed(lease.device.name, slot=self._slot))

    def _lost(self, lease: Lease, measurer: Measurer, why: str) -> DeviceLost:
        return DeviceLost(
            slot=self._slot,
            device=lease.device.name,
            number=measurer.number,
            perhaps=measurer.perhaps,
            why=why,
        )
