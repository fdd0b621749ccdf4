"""Clients that wait for devices: let in up to a bound, served in turn as devices come free."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from tilefarm.clock import Clock
from tilefarm.errors import BusyError
from tilefarm.lease import Lease
from tilefarm.rpc import tracker_calls
from tilefarm.watch.log import Log
from tilefarm.watch.trace_context import current_context, doing

from device_server.tracker.leases import LeaseTable
from device_server.tracker.wait_queue import Ticket, in_turn

MOST: Final = 200
"""Clients in the line; the next one is told to come again."""

MOST_OF_USER: Final = 100
"""Of them may be one user's, so that no user fills the line; with one secret all are one user."""

MOST_LEFT: Final = 1024
"""Places of clients that may come again, as those do that wait in slices."""

_MAX_WAIT_SECONDS: Final = 3600.0
_RETRY_SECONDS: Final = 1.0
_SPREAD: Final = 16
"""Those who are sent away are told one of so many delays, so that they do not come back as one."""


@dataclass(slots=True, eq=False)
class _Waiter:
    place: Ticket
    granted: asyncio.Future[Lease]


class WaitingLine:
    """The line in front of one table. Lives in one event loop.

    Between two calls nobody waits for whom there is a device, but those who hold as many leases
    as they may.
    """

    def __init__(self, table: LeaseTable, clock: Clock, log: Log) -> None:
        self._table = table
        self._clock = clock
        self._log = log
        self._arrivals = itertools.count()
        self._refusals = itertools.count()
        self._waiters: dict[int, _Waiter] = {}
        self._left: OrderedDict[tuple[str, str], Ticket] = OrderedDict()
        self.served = 0
        """Leases that ever went to somebody in the line."""

    async def lease(self, wish: tracker_calls.Acquire, user: str) -> Lease | None:
        """A lease as soon as it is this client's turn; None if it is not in the time of the wish.

        Raises:
            BusyError: too many wait already, or the user holds as many leases as one may.
        """
        self.serve()
        place = self._place(wish, user)
        lease = self._granted(place)
        wait_seconds = _bounded(wish.wait_seconds)
        if lease is not None or not wait_seconds:
            return lease
        if len(self._waiters) >= MOST:
            raise self._full(f"{len(self._waiters)} clients wait")
        of_user = sum(waiter.place.user == user for waiter in self._waiters.values())
        if user and of_user >= MOST_OF_USER:
            raise self._full(f"{of_user} clients of {user} wait")
        with self._waiting(place) as waiter:
            try:
                async with asyncio.timeout(wait_seconds):
                    return await waiter.granted
            except TimeoutError:
                # The lease may have come in the very moment in which the time was up.
                return waiter.granted.result() if _has(waiter) else None
            except asyncio.CancelledError:
                if _has(waiter):
                    self._table.release(waiter.granted.result().lease_id, user)
                raise

    def serve(self, heir: Ticket | None = None) -> None:
        """Lease what has come free to those whose turn it is.

        Args:
            heir: for whom a device was given back; it is their turn, but for higher priorities.
        """
        if not self._table.freed():
            return
        places = self.places()
        if heir is not None:
            places.sort(key=lambda place: (-place.wish.priority, place.number != heir.number))
        while self._serve_one(places):
            places = self.places()  # Who got a device has another turn now.

    def places(self) -> list[Ticket]:
        """Who waits, in the order of service."""
        # One that is done has run out of time, or its client went away: it leaves by itself.
        places = [w.place for w in self._waiters.values() if not w.granted.done()]
        return in_turn(places, self._table.shares())

    def _serve_one(self, places: Sequence[Ticket]) -> bool:
        """Leases a device to the first of those for whom there is one."""
        in_vain = set()
        for place in places:
            sought = place.wish.target, place.wish.labels
            if sought in in_vain or self._table.has_enough(place.share):
                continue
            lease = self._granted(place)
            if lease is None:
                in_vain.add(sought)
                continue
            self._waiters.pop(place.number).granted.set_result(lease)
            self.served += 1
            return True
        return False

    def _granted(self, place: Ticket) -> Lease | None:
        given = self._table.given(place.wish, place.user)
        if given is not None:
            return given  # asked for again: the answer was lost, and the lease is told already
        lease = self._table.acquire(place.wish, place.user)
        if lease is not None:
            with doing(place.work):  # another's call may have brought the device
                self._log(
                    "leased",
                    lease=lease.lease_id,
                    device=lease.device.name,
                    fence=lease.fence,
                    owner=place.wish.owner,
                    user=place.user,
                    waited_seconds=self._clock.seconds() - place.since,
                )
        return lease

    def _place(self, wish: tracker_calls.Acquire, user: str) -> Ticket:
        """Who comes again with the same request has kept the place in the line."""
        kept = self._left.get((user, wish.request_id))
        if kept is not None and kept.number not in self._waiters:
            return replace(kept, wish=wish, work=current_context())
        return Ticket(
            wish=wish,
            user=user,
            number=next(self._arrivals),
            since=self._clock.seconds(),
            work=current_context(),
        )

    @contextmanager
    def _waiting(self, place: Ticket) -> Iterator[_Waiter]:
        waiter = _Waiter(place, asyncio.get_running_loop().create_future())
        self._waiters[place.number] = waiter
        try:
            yield waiter
        finally:
            self._waiters.pop(place.number, None)
            if place.wish.request_id and not _has(waiter):
                self._left[place.user, place.wish.request_id] = place
                self._left.move_to_end((place.user, place.wish.request_id))
                if len(self._left) > MOST_LEFT:
                    self._left.popitem(last=False)

    def _full(self, who: str) -> BusyError:
        share = next(self._refusals) % _SPREAD / _SPREAD
        return BusyError(
            f"{who} for devices already",
            "come again when the line is shorter: `tilefarm top` shows it",
            _RETRY_SECONDS * (1 + share),
        )


def _has(waiter: _Waiter) -> bool:
    return waiter.granted.done() and not waiter.granted.cancelled()


def _bounded(wait_seconds: float) -> float:
    if math.isnan(wait_seconds):
        return 0.0
    return min(max(wait_seconds, 0.0), _MAX_WAIT_SECONDS)
