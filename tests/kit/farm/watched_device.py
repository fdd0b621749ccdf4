"""One watched device with a flaky runner, and a tracker that soon notices that it is silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kit.farm.flaky import FlakyRunner
from kit.farm.in_process import CREDENTIALS, Farm, Server, eventually
from kit.objects.elves import Elf
from tilefarm.digest import Digest
from tilefarm.lease import Lease
from tilefarm.measurement import BufferSpec, Measurement, Role, RunJob
from tilefarm.target import TARGETS

from device_server.device.batch import Ask
from device_server.device.client import DeviceClient
from device_server.device.health_monitor import MonitorLimits
from device_server.device.known_kernel import known_kernel
from device_server.device.settings import DeviceSettings
from device_server.tracker.client import TrackerClient
from device_server.tracker.limits import TableLimits

CODE, DATA = Elf().build(), bytes(64)
BLOBS = {Digest.of(CODE): CODE, Digest.of(DATA): DATA}
KERNEL = known_kernel(TARGETS["sim"], b"an artifact that nobody loads")
LIMITS = TableLimits(device_ttl_seconds=3.0)
"""Heartbeats come five times as often."""

WATCHED = MonitorLimits(every=5, cooldown_seconds=0.1)


def job(entry: str = "echo") -> RunJob:
    buffers = (
        BufferSpec(name="x", role=Role.INPUT, nbytes=64, content=Digest.of(DATA)),
        BufferSpec(name="y", role=Role.OUTPUT, nbytes=64, fetch=True),
    )
    return RunJob(artifact=Digest.of(CODE), entry=entry, buffers=buffers, timeout_seconds=60.0)


def watched(settings: DeviceSettings) -> DeviceSettings:
    return replace(settings, watch=WATCHED, grace_seconds=0.2)


class Bed:
    """A tracker that notices silence soon, and one watched device with a flaky runner."""

    def __init__(self, farm: Farm) -> None:
        self.farm = farm
        self.tracker: Server = farm.tracker(limits=LIMITS)
        self.runner = FlakyRunner(kernel=KERNEL)
        self._device = self._started()

    def _started(self) -> Server:
        return self.farm.device(tracker=self.tracker, runner=self.runner, settings=watched)

    def restart(self) -> None:
        """Another life of the device, with the folder of the one before."""
        self._device.stop()
        self.runner = FlakyRunner(kernel=KERNEL)
        self._device = self._started()

    @property
    def recovered(self) -> bool:
        return any(event == "recovered" for event, _ in self.farm.events)

    def asked(self) -> TrackerClient:
        return TrackerClient(self.tracker.address, CREDENTIALS)

    def lease(self, wait_seconds: float = 60.0) -> Lease | None:
        with self.asked() as client:
            return client.acquire(self.farm.target.digest, wait_seconds=wait_seconds, owner="test")

    def device(self) -> DeviceClient:
        lease = self.lease()
        assert lease is not None
        client = DeviceClient(lease, CREDENTIALS)
        client.ensure(BLOBS)
        return client

    def runs(self, device: DeviceClient, count: int, first: int = 0) -> int:
        """So many good runs; how many the device has not confirmed after the last."""
        unchecked = 0
        for number in range(first, first + count):
            (answer,) = device.run_batch([Ask(job=job(), request_id=f"r{number}", blobs={})])
            assert isinstance(answer.outcome, Measurement)
            unchecked = answer.unchecked
        return unchecked

    def says(self, of: Callable[[TrackerClient], bool]) -> None:
        with self.asked() as client:
            eventually(lambda: of(client))
