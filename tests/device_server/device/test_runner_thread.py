"""The thread in which a device's runner is called: which calls are given up."""

from __future__ import annotations

import asyncio
import threading

import pytest
from kit.manual_clock import ManualClock
from tilefarm.errors import DeviceLostError

from device_server.device.health_state import HealthState
from device_server.device.runner_thread import RunnerThread
from device_server.device.usage_counters import UsageCounters


def runner_thread(condition: HealthState) -> RunnerThread:
    return RunnerThread(
        "sim0",
        condition,
        lambda event, **fields: None,
        counters=UsageCounters(ManualClock()),
        grace_seconds=0.0,
    )


def test_a_call_that_stood_still_with_the_whole_process_has_not_hung() -> None:
    """For an hour, in the middle of its minute; its time goes on afterwards."""
    condition, release = HealthState(), threading.Event()
    thread = runner_thread(condition)

    async def called() -> bool:
        loop = asyncio.get_running_loop()
        begin = loop.time
        running = asyncio.create_task(thread.call(lambda: release.wait(60), 60.0, what="a run"))
        await asyncio.sleep(0)
        setattr(loop, "time", lambda: begin() + 3600.0)  # noqa: B010
        for _ in range(5):
            await asyncio.sleep(0)
        assert not running.done()
        release.set()
        return await running

    assert asyncio.run(called())
    assert not condition.hung
    thread.close()


def test_a_call_that_does_not_come_back_has() -> None:
    condition, release = HealthState(), threading.Event()
    thread = runner_thread(condition)
    with pytest.raises(DeviceLostError, match=r"hangs: a run did not come back within 1\.2 s"):
        asyncio.run(thread.call(lambda: release.wait(60), 1.2, what="a run"))
    release.set()
    assert condition.hung
