"""Row 1: a device server that is killed while a kernel runs: noticed at once, retried elsewhere."""

from __future__ import annotations

import time

from kit.farm.in_process import eventually
from kit.farm.real_farm import RealFarm, gone
from kit.kernels.c_kernels import job
from tilefarm.measurement import Measurement

from .fault_rows import Stopwatch, allowed_seconds

NOTICED_SECONDS = 1.0


def test_another_device_takes_the_run(real_farm: RealFarm, stopwatch: Stopwatch) -> None:
    tracker = real_farm.tracker()
    first = real_farm.device(tracker.address, name="sim0")
    second = real_farm.device(tracker.address, name="sim1")
    admin = real_farm.ask(tracker.address)
    eventually(lambda: len(admin.states()) == 2)
    answer = real_farm.begin(real_farm.leases(tracker.address), job("slow"))
    eventually(lambda: first.computes)
    children = first.below()
    assert children, "the runner is a process of its own"
    with stopwatch.running():
        first.kill()
        assert gone(children)
        began = time.monotonic()
        eventually(lambda: tracker.said("device_lost=True") == 1)
        assert time.monotonic() - began < allowed_seconds(NOTICED_SECONDS)
        done = answer.result(60)
    assert isinstance(done.result, Measurement)
    assert done.device == "sim1"
    assert second.said("event=ran") == 1


def test_the_restarted_device_takes_the_run(real_farm: RealFarm, stopwatch: Stopwatch) -> None:
    tracker = real_farm.tracker()
    first = real_farm.device(tracker.address)
    answer = real_farm.begin(real_farm.leases(tracker.address), job("slow"))
    eventually(lambda: first.computes)
    with stopwatch.running():
        first.kill()
        again = real_farm.device(tracker.address, listen=first.address)
        done = answer.result(60)
    assert isinstance(done.result, Measurement)
    assert again.said("event=ran") == 1
