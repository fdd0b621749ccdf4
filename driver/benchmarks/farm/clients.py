"""Clients of a tracker that lease a device, hold it a moment and give it back, again and again.

Some do so as often as they can: the more they get, the more they ask for. Others come when their
time has come, whatever became of those before: they are what a farm of a known size asks for.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.errors import UnreachableError
from tilefarm.names import RandomIds
from tilefarm.rpc import methods, tracker_calls
from tilefarm.rpc.caller import AsyncCaller
from tilefarm.trust.tls import Credentials

CLIENTS: Final = 32
HOLD_SECONDS: Final = 0.1
_WAIT_SECONDS: Final = 5.0
_CALL_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLoad:
    """How long every lease took to come, of clients that leased for `seconds`."""

    acquire_seconds: tuple[float, ...]
    seconds: float

    @property
    def per_second(self) -> float:
        """Leases given in a second."""
        return len(self.acquire_seconds) / self.seconds

    def percentile(self, percent: float) -> float:
        """Seconds within which that share of the leases came."""
        return percentile(self.acquire_seconds, percent)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of all do not exceed; not a number where there is none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


async def saturating_load(
    tracker: str, credentials: Credentials, target: Digest, *, seconds: float, clock: Clock
) -> LeaseLoad:
    """Let `CLIENTS` clients lease for so long, each as often as it can."""
    took: list[float] = []
    async with _callers(tracker, credentials, target, clock) as callers:
        began = clock.seconds()

        async def client(caller: AsyncCaller) -> None:
            while clock.seconds() < began + seconds:
                took.append(await _lease(caller, target, clock))

        await asyncio.gather(*map(client, callers))
        return LeaseLoad(acquire_seconds=tuple(took), seconds=clock.seconds() - began)


async def arriving_load(
    tracker: str,
    credentials: Credentials,
    target: Digest,
    *,
    per_second: float,
    renewals: int,
    seconds: float,
    clock: Clock,
) -> LeaseLoad:
    """Let clients come for so long, so many in a second on the average, at times of their own.

    What a lease took counts from when its client was due, also where the bench itself was late.

    Args:
        tracker, credentials, target: whom to ask, as whom, for what.
        per_second: leases.
        renewals: of each lease while it is held.
        seconds: for which clients come.
        clock: tells when they are due.
    """
    dice = random.Random(0)
    async with (
        _callers(tracker, credentials, target, clock) as callers,
        asyncio.TaskGroup() as clients,
    ):
        began = due = clock.seconds()
        leases: list[asyncio.Task[float]] = []
        for caller in itertools.cycle(callers):
            due += dice.expovariate(per_second)
            if due >= began + seconds:
                break
            await asyncio.sleep(due - clock.seconds())
            lease = _lease(caller, target, clock, due=due, renewals=renewals)
            leases.append(clients.create_task(lease))
    return LeaseLoad(acquire_seconds=tuple(lease.result() for lease in leases), seconds=seconds)


@asynccontextmanager
async def _callers(
    tracker: str, credentials: Credentials, target: Digest, clock: Clock
) -> AsyncIterator[list[AsyncCaller]]:
    """`CLIENTS` connections, which have carried a lease: connecting is not what is timed."""
    callers = [
        AsyncCaller(tracker, credentials, peer="tracker", lost=UnreachableError)
        for _ in range(CLIENTS)
    ]
    try:
        await asyncio.gather(*(_lease(caller, target, clock) for caller in callers))
        yield callers
    finally:
        await asyncio.gather(*(caller.close() for caller in callers))


async def _lease(
    caller: AsyncCaller,
    target: Digest,
    clock: Clock,
    *,
    due: float | None = None,
    renewals: int = 0,
) -> float:
    """One lease, held, renewed and given back; the seconds from when it was due until it came."""
    wish = tracker_calls.Acquire(
        request_id=RandomIds().fresh("acquire"),
        target=target,
        owner="bench",
        wait_seconds=_WAIT_SECONDS,
    )
    began = clock.seconds() if due is None else due
    reply = await caller.unary(methods.ACQUIRE, wish, timeout_seconds=_WAIT_SECONDS + _CALL_SECONDS)
    took = clock.seconds() - began
    if reply.lease is None:
        return took
    lease_id = reply.lease.lease_id
    for _ in range(renewals):
        await asyncio.sleep(HOLD_SECONDS)
        renew = tracker_calls.Renew(lease_id=lease_id, lends=True)
        await caller.unary(methods.RENEW, renew, timeout_seconds=_CALL_SECONDS)
    await asyncio.sleep(HOLD_SECONDS)
    release = tracker_calls.Release(lease_id=lease_id)
    await caller.unary(methods.RELEASE, release, timeout_seconds=_CALL_SECONDS)
    return took
