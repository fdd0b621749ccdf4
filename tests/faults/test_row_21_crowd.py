"""Row 21: everybody asks the tracker at once: a bounded line, the others come when told."""

from __future__ import annotations

import asyncio

import pytest
from kit.farm.real_farm import RealFarm
from tilefarm.clock import SystemClock
from tilefarm.errors import BusyError, UnreachableError
from tilefarm.rpc import methods, tracker_calls
from tilefarm.rpc.caller import AsyncCaller
from tilefarm.rpc.empty import Empty

from device_server.tracker.client import TrackerClient
from device_server.tracker.waiting import MOST
from driver.benchmarks.farm.clients import percentile

from .fault_rows import Stopwatch

CROWD = MOST + 100


class OwnSleeps(SystemClock):
    """No time passes by it but what its owner sleeps: a machine that stands still costs none."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def seconds(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        super().sleep(seconds)


async def _connected(caller: AsyncCaller) -> None:
    """Hundreds of connections at once take their time, and gRPC turns some away at first."""
    while True:
        try:
            await caller.unary(methods.LIST_DEVICES, Empty(), timeout_seconds=60.0)
        except UnreachableError:
            await asyncio.sleep(0.2)
        else:
            return


def test_a_crowd_is_answered_and_waits_no_longer_than_it_is_told(
    real_farm: RealFarm, stopwatch: Stopwatch
) -> None:
    tracker = real_farm.tracker()
    clock, its_own = SystemClock(), OwnSleeps()

    async def knock(number: int) -> tuple[float, float]:
        """Seconds until a client is sent away, and for how long."""
        caller = AsyncCaller(
            tracker.address, real_farm.credentials, peer="tracker", lost=UnreachableError
        )
        wish = tracker_calls.Acquire(
            request_id=f"r{number}", target=real_farm.target.digest, wait_seconds=60.0, owner="x"
        )
        try:
            await _connected(caller)
            began = clock.seconds()
            with pytest.raises(BusyError) as refused:
                await caller.unary(methods.ACQUIRE, wish, timeout_seconds=90.0)
            return clock.seconds() - began, refused.value.retry_seconds
        finally:
            await caller.close()

    async def crowd() -> list[tuple[float, float]]:
        tasks = [asyncio.create_task(knock(number)) for number in range(CROWD)]
        ended = asyncio.as_completed(tasks)
        sent_away = [await next(ended) for _ in range(CROWD - MOST)]
        await asyncio.to_thread(one_more)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return sent_away

    def one_more() -> None:
        """A driver's client comes to a full line: it asks again when it was told, until it ends."""
        with TrackerClient(tracker.address, real_farm.credentials, clock=its_own) as client:
            assert len(client.overview().waiting) == MOST
            with pytest.raises(BusyError, match=f"{MOST} clients wait"):
                client.acquire(real_farm.target.digest, wait_seconds=3.0, owner="late")

    answered = asyncio.run(crowd())
    assert len(answered) == CROWD - MOST
    stopwatch.took(percentile([seconds for seconds, _ in answered], 99))
    delays = [delay for _, delay in answered]
    assert min(delays) >= 1.0
    assert len(set(delays)) > 8, "they do not all come back at once"
    assert its_own.slept
    assert min(its_own.slept) >= 1.0
