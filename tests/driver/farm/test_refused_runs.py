"""What a device refuses to run is the asker's fault: a result, and the device stays as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit.farm.in_process import CREDENTIALS, FakeRunner, Farm, Server
from kit.objects.elves import Elf
from kit.search.stand_ins import StandInClient, StandInDevices, cycles_of_tile
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import (
    BusyError,
    CapacityError,
    FarmFault,
    ProtocolError,
    SettingsError,
    TilefarmError,
)
from tilefarm.lease import Lease
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob, Status
from tilefarm.rpc.device_calls import RunReply

from device_server.device.batch import Ask
from device_server.device.blob_store import StoreLimits
from device_server.device.settings import DeviceSettings
from device_server.tenancy import OWN, Tenancy
from device_server.tracker.client import TrackerClient
from driver.campaign.job_runner import JobRunner
from driver.farm.device_messages import Order
from driver.farm.farms import RemoteFarm
from driver.farm.leases import Leases

CODE = Elf().build()
DATA = bytes(range(256)) * 40


def order(data: bytes = DATA, *, outputs: int = 1, **changes: Any) -> Order:
    """A run that gives its input back; `outputs` times."""
    buffers = [BufferSpec(name="x", role=Role.INPUT, nbytes=len(data), content=Digest.of(data))]
    buffers += [
        BufferSpec(name=f"y{n}", role=Role.OUTPUT, nbytes=len(data), fetch=True)
        for n in range(outputs)
    ]
    job = RunJob(
        artifact=Digest.of(CODE), entry="echo", buffers=tuple(buffers), timeout_seconds=60.0
    )
    job = replace(job, **changes)
    blobs = {Digest.of(content): content for content in (CODE, data)}
    return Order(number=0, job=job, blobs=blobs, request_id=f"r{len(data)}")


def limited(limits: StoreLimits) -> Callable[[DeviceSettings], DeviceSettings]:
    return lambda settings: replace(settings, limits=limits)


def outcomes(farm: Farm, tracker: Server, orders: Sequence[Order]) -> list[object]:
    """How they end on all devices of a farm, one after the other."""
    leases = Leases(RemoteFarm(tracker.address, CREDENTIALS), farm.target, owner="test")
    try:
        runner = JobRunner(leases, devices=1, wait_seconds=60.0, clock=SystemClock())
        return [runner.run([order])[0].result for order in orders]
    finally:
        leases.close()


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as served:
        yield served


LARGE = bytes(20_000)
SMALL_BLOBS = StoreLimits(blob_nbytes=15_000, total_nbytes=1 << 20)
SMALL_STORE = StoreLimits(blob_nbytes=20_100, total_nbytes=20_100)


@pytest.mark.parametrize(
    ("limits", "asked", "status", "why"),
    [
        (SMALL_BLOBS, order(LARGE), Status.RESOURCE_EXCEEDED, "is over 15000 bytes"),
        (SMALL_STORE, order(LARGE), Status.RESOURCE_EXCEEDED, "cannot hold|does not fit"),
        (SMALL_STORE, order(DATA, outputs=2), Status.OK, ""),
        (StoreLimits(), order(samples=10**6), Status.RESOURCE_EXCEEDED, "1000000 samples are over"),
        (StoreLimits(), order(samples=1 << 40), Status.LOAD_ERROR, "Run cannot say this"),
        (StoreLimits(), order(timeout_seconds=0.0), Status.LOAD_ERROR, "is not above 0 s"),
        (StoreLimits(), order(timeout_seconds=1e9), Status.OK, ""),
    ],
)
def test_a_refused_run_is_a_result_and_the_device_serves_on(
    farm: Farm, limits: StoreLimits, asked: Order, status: Status, why: str
) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker, settings=limited(limits))
    first, second = outcomes(farm, tracker, [asked, order(DATA[:10])])
    if status is Status.OK:
        assert isinstance(first, Measurement)
    else:
        assert isinstance(first, RunFailure)
        assert first.status is status
        assert first.why
        assert any(part in first.why for part in why.split("|"))
    assert isinstance(second, Measurement)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        assert [(s.quarantine, s.resting) for s in client.states()] == [("", "")]


class Doubling(FakeRunner):
    """Gives the input twice: more than the store takes as one blob."""

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure:
        result = super().run(job, blob, tenancy)
        if isinstance(result, RunFailure):
            return result
        return replace(result, outputs=tuple((name, 2 * y) for name, y in result.outputs))


def test_outputs_that_do_not_fit_are_the_jobs_fault(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker, runner=Doubling(), settings=limited(SMALL_BLOBS))
    (result,) = outcomes(farm, tracker, [order()])
    assert isinstance(result, RunFailure)
    assert result.status is Status.RESOURCE_EXCEEDED
    assert "no room for the outputs" in result.why


class Refusing(StandInClient):
    """Refuses what has a certain request id, in one of two ways."""

    refusal: TilefarmError
    ahead = False

    def send_ahead(self, blobs: Mapping[Digest, bytes]) -> None:
        if self.ahead:
            raise self.refusal
        super().send_ahead(blobs)

    def run_batch(self, asked: Sequence[Ask]) -> list[RunReply]:
        raise self.refusal


def refusing(refusal: TilefarmError, *, ahead: bool) -> StandInDevices:
    class Devices(StandInDevices):
        def connect(self, lease: Lease) -> StandInClient:
            client = Refusing(lease.device.name, cycles_of_tile)
            client.refusal, client.ahead = refusal, ahead
            return client

    return Devices(1)


@pytest.mark.parametrize("ahead", [False, True], ids=["run", "upload"])
@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (CapacityError("too large", "make it smaller"), Status.RESOURCE_EXCEEDED),
        (ProtocolError("nonsense"), Status.LOAD_ERROR),
        (SettingsError("cannot say this"), Status.LOAD_ERROR),
    ],
)
def test_a_refusal_costs_no_device(refusal: TilefarmError, status: Status, ahead: bool) -> None:
    devices = refusing(refusal, ahead=ahead)
    runner = JobRunner(devices, devices=1, wait_seconds=0.1, clock=SystemClock())
    (done,) = runner.run([order()])
    assert isinstance(done.result, RunFailure)
    assert done.result.status is status
    assert done.result.why.startswith(refusal.what)
    assert refusal.hint in done.result.why
    assert devices.released == [("sim0", False)]


def test_a_device_that_is_busy_has_refused_nothing() -> None:
    busy: FarmFault = BusyError("come again", retry_seconds=0.01)
    devices = refusing(busy, ahead=False)
    runner = JobRunner(devices, devices=1, wait_seconds=0.0, clock=SystemClock())
    with pytest.raises(FarmFault, match="lost 3 times: come again"):
        runner.run([order()])
    assert devices.released[0] == ("sim0", True)
