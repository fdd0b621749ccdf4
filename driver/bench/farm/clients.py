"""Clients of a tracker that lease a device, hold it a moment and give it back, again and again."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.errors import UnreachableError
from tilefarm.names import RandomIds
from tilefarm.rpc import calls, methods
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


async def lease_load(
    tracker: str, credentials: Credentials, target: Digest, *, seconds: float, clock: Clock
) -> LeaseLoad:
    """Let `CLIENTS` clients lease for so long, each with a connection of its own."""
    began = clock.seconds()
    took: list[float] = []

    async def client() -> None:
        caller = AsyncCaller(tracker, credentials, peer="tracker", lost=UnreachableError)
        try:
            await _lease(caller, target, clock)  # It connects first, which is not what is timed.
            while clock.seconds() < began + seconds:
                took.append(await _lease(caller, target, clock))
        finally:
            await caller.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return LeaseLoad(acquire_seconds=tuple(took), seconds=clock.seconds() - began)


async def _lease(caller: AsyncCaller, target: Digest, clock: Clock) -> float:
    """One lease, held and given back; the seconds until it came."""
    wish = calls.Acquire(
        request_id=RandomIds().fresh("acquire"),
        target=target,
        owner="bench",
        wait_seconds=_WAIT_SECONDS,
    )
    began = clock.seconds()
    reply = await caller.unary(methods.ACQUIRE, wish, timeout_seconds=_WAIT_SECONDS + _CALL_SECONDS)
    took = clock.seconds() - began
    if reply.lease is not None:
        await asyncio.sleep(HOLD_SECONDS)
        await caller.unary(
            methods.RELEASE,
            calls.Release(lease_id=reply.lease.lease_id),
            timeout_seconds=_CALL_SECONDS,
        )
    return took
