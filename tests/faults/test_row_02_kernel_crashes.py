"""Row 2: a kernel that crashes ends as one failed run; the device lives on."""

from __future__ import annotations

import signal

import pytest
from kit.c_kernels import blobs, job
from kit.fault_rows import Stopwatch
from kit.real_farm import RealFarm
from tilefarm.measurement import Measurement, RunFailure, Status


@pytest.mark.parametrize(
    ("entry", "number"), [("crash", signal.SIGSEGV), ("illegal", signal.SIGILL)]
)
def test_the_crash_is_the_kernels_own(
    real_farm: RealFarm, stopwatch: Stopwatch, entry: str, number: int
) -> None:
    tracker = real_farm.tracker()
    device = real_farm.device(tracker.address)
    client = real_farm.use(real_farm.lease(real_farm.ask(tracker.address)))
    client.ensure(blobs())
    assert isinstance(client.run(job("increment"), request_id="warm"), Measurement)
    with stopwatch.running():
        outcome = client.run(job(entry), request_id="crash")
    assert isinstance(outcome, RunFailure)
    assert (outcome.status, outcome.signal) == (Status.RUN_CRASH, number)
    assert isinstance(client.run(job("increment"), request_id="after"), Measurement)
    assert device.alive
