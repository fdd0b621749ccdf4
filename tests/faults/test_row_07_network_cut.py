"""Row 7: a network that is cut and healed costs time; what was measured meanwhile is fetched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from kit.farm.in_process import eventually
from kit.farm.proxy import Proxy
from kit.farm.real_farm import RealFarm, Served
from kit.kernels.c_kernels import job
from tilefarm.measurement import Measurement

from driver.farm.leases import Leases

from .fault_rows import Stopwatch

DETECTED_SECONDS = 10.0
"""Pings after 5 s of silence, unanswered for 3 s, and some for the machine."""


@pytest.fixture
def scene(real_farm: RealFarm) -> Iterator[tuple[Served, Proxy, Leases]]:
    """A device, the proxy in front of it, and a driver's leases."""
    tracker = real_farm.tracker()
    device = real_farm.device(tracker.address)
    with Proxy(device.address) as proxy:
        leases = real_farm.leases(tracker.address, {"sim0": proxy})
        yield device, proxy, leases
        leases.close()


@pytest.mark.parametrize("break_it", [Proxy.reset, Proxy.half_open], ids=["reset", "half open"])
def test_a_connection_that_breaks_under_a_run(
    real_farm: RealFarm,
    scene: tuple[Served, Proxy, Leases],
    stopwatch: Stopwatch,
    break_it: Callable[[Proxy], None],
) -> None:
    device, proxy, leases = scene
    answer = real_farm.begin(leases, job("slow"))
    eventually(lambda: device.computes)
    with stopwatch.running():
        break_it(proxy)
        time.sleep(0.2)
        proxy.heal()
        assert isinstance(answer.result(30).result, Measurement)
    assert device.said("event=ran") == 1


def test_a_result_that_was_made_during_the_cut(
    real_farm: RealFarm, scene: tuple[Served, Proxy, Leases], stopwatch: Stopwatch
) -> None:
    device, proxy, leases = scene
    answer = real_farm.begin(leases, job("slow"))
    eventually(lambda: device.computes)
    proxy.cut()
    eventually(lambda: device.said("event=ran") == 1)
    time.sleep(DETECTED_SECONDS)
    with stopwatch.running():
        proxy.heal()
        done = answer.result(30)
    assert isinstance(done.result, Measurement)
    assert dict(done.result.outputs)["y"]
    assert device.said("event=ran") == 1
