"""Row 3: a kernel that never ends is ended when its time is over, and nothing of it is left."""

from __future__ import annotations

from kit.farm.real_farm import RealFarm, gone
from kit.kernels.c_kernels import blobs, job
from tilefarm.measurement import Measurement, RunFailure, Status

from .fault_rows import Stopwatch

BUDGET_SECONDS = 0.5


def test_it_costs_its_budget_and_no_more(real_farm: RealFarm, stopwatch: Stopwatch) -> None:
    tracker = real_farm.tracker()
    device = real_farm.device(tracker.address)
    client = real_farm.use(real_farm.lease(real_farm.ask(tracker.address)))
    client.ensure(blobs())
    assert isinstance(client.run(job("increment"), request_id="warm"), Measurement)
    processes = device.below()
    with stopwatch.running(less_seconds=BUDGET_SECONDS):
        outcome = client.run(job("loop", timeout_seconds=BUDGET_SECONDS), request_id="loop")
    assert isinstance(outcome, RunFailure)
    assert outcome.status is Status.RUN_TIMEOUT
    assert len(processes) == 4, "a zygote, the device's own accelerator, a child and its own"
    assert gone(processes[2:])
    assert device.below()[:2] == processes[:2]
    assert isinstance(client.run(job("increment"), request_id="after"), Measurement)
    assert device.alive
