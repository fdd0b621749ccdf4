"""Row 5: a device that says nothing any more is noticed, by those who use it and by the tracker."""

from __future__ import annotations

import pytest
from kit.farm.in_process import eventually
from kit.farm.real_farm import RealFarm
from kit.kernels.c_kernels import blobs, job
from tilefarm.errors import DeviceLostError

from .fault_rows import Stopwatch


def test_a_frozen_device_server_is_noticed(real_farm: RealFarm, stopwatch: Stopwatch) -> None:
    tracker = real_farm.tracker()
    device = real_farm.device(tracker.address)
    asked = real_farm.ask(tracker.address)
    client = real_farm.use(real_farm.lease(asked))
    client.ensure(blobs())
    client.run(job("increment"), request_id="warm")
    device.freeze()
    with stopwatch.running(), pytest.raises(DeviceLostError):
        client.run(job("increment", timeout_seconds=60.0), request_id="lost")
    eventually(lambda: not asked.states())
    device.thaw()
    eventually(lambda: bool(asked.states()))
