"""Row 25: a run ends with its lease, soon, and keeps nobody from the device.

The bound is for one that was given back, which the device hears with its next heartbeat: a third of
the ten seconds after which a silent device is forgotten. A newer one ends it with its first call.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import pytest
from kit.farm.in_process import eventually
from kit.farm.real_farm import RealFarm, Served, gone
from kit.kernels.c_kernels import blobs, job
from kit.reports.observed import log_lines
from tilefarm.errors import LeaseError
from tilefarm.lease import Lease
from tilefarm.measurement import Measurement, RunFailure

from device_server.tracker.client import TrackerClient

from .fault_rows import Stopwatch

_ENDLESS: Final = job("loop", timeout_seconds=3600.0)


class Abandoned:
    """A device on which a run goes on for an hour, under a lease."""

    def __init__(self, farm: RealFarm) -> None:
        self.farm = farm
        self.tracker: Served = farm.tracker()
        self.device: Served = farm.device(self.tracker.address)
        self.client: TrackerClient = farm.ask(self.tracker.address)
        self.lease: Lease = farm.lease(self.client)
        user = farm.use(self.lease)
        user.ensure(blobs())
        user.run(job("increment"), request_id="warm")
        thread = ThreadPoolExecutor(1)
        self.run: Future[Measurement | RunFailure] = thread.submit(
            user.run, _ENDLESS, request_id="endless"
        )
        thread.shutdown(wait=False)
        busy = self.busy_seconds()
        eventually(lambda: self.busy_seconds() > busy + 0.5)
        # Of the child there are two: itself, and the process that plays its accelerator.
        _zygote, _own_accelerator, *self.child = self.device.below()

    def busy_seconds(self) -> float:
        usage = self.client.states()[0].usage
        return usage.busy_seconds if usage else 0.0

    def runs(self) -> int:
        usage = self.client.states()[0].usage
        return usage.runs if usage else 0

    def ran(self) -> list[str]:
        """How the device's runs ended, by its log."""
        lines = log_lines(self.farm.folder / "sim0.log")
        return [str(line["status"]) for line in lines if line["event"] == "ran"]


def test_a_lease_that_is_given_back_takes_its_run_along(
    real_farm: RealFarm, stopwatch: Stopwatch
) -> None:
    abandoned = Abandoned(real_farm)
    abandoned.client.release(abandoned.lease)
    with stopwatch.running(), pytest.raises(LeaseError, match="given back or has expired"):
        abandoned.run.result(60)
    assert gone(abandoned.child)
    assert abandoned.ran() == ["ok", "cancelled"]
    again = real_farm.use(abandoned.lease)
    with pytest.raises(LeaseError, match="given back or has expired"):
        again.run(job("increment"), request_id="again")


def test_a_newer_lease_waits_for_nobody(real_farm: RealFarm) -> None:
    """And gets no answer but its own, whatever id its request has."""
    abandoned = Abandoned(real_farm)
    abandoned.client.release(abandoned.lease)
    newer = real_farm.use(real_farm.lease(abandoned.client))
    assert isinstance(newer.run(job("increment"), request_id="endless"), Measurement)
    with pytest.raises(LeaseError, match=r"newer lease|given back"):
        abandoned.run.result(60)
    assert abandoned.ran() == ["ok", "cancelled", "ok"]
    eventually(lambda: abandoned.runs() == 3)
    assert abandoned.client.refused_runs("sim0") == ()


def test_a_device_whose_tracker_forgot_its_lease_ends_what_it_does(real_farm: RealFarm) -> None:
    """Nobody leases anew."""
    abandoned = Abandoned(real_farm)
    abandoned.tracker.kill()
    for file in real_farm.folder.glob("tracker.sqlite*"):
        file.unlink()
    real_farm.tracker(listen=abandoned.tracker.address)
    with pytest.raises(LeaseError, match="given back or has expired"):
        abandoned.run.result(60)
    assert gone(abandoned.child)
