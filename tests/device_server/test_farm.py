"""Client, tracker and device together, with a fake runner."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from kit.farm.in_process import CREDENTIALS, FakeRunner, Farm, Server, eventually
from kit.farm.proxy import Proxy
from kit.manual_clock import ManualClock
from kit.objects.elves import Elf
from tilefarm.digest import Digest
from tilefarm.errors import (
    AccessError,
    CapacityError,
    CorruptBlobError,
    DeviceLostError,
    InfraError,
    LeaseError,
    MissingBlobError,
    ProtocolError,
    SettingsError,
)
from tilefarm.lease import Lease
from tilefarm.measurement import (
    BufferSpec,
    Measurement,
    Precision,
    Role,
    RunFailure,
    RunJob,
    Status,
)
from tilefarm.trust.tls import Credentials

from device_server.device.blob_store import StoreLimits
from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient
from device_server.tracker.limits import TableLimits

CODE = Elf().build()
DATA = bytes(range(256)) * 3000
BLOBS = {Digest.of(CODE): CODE, Digest.of(DATA): DATA}


def job(entry: str = "echo", artifact: bytes = CODE, data: bytes = DATA) -> RunJob:
    return RunJob(
        artifact=Digest.of(artifact),
        entry=entry,
        buffers=(
            BufferSpec(name="x", role=Role.INPUT, nbytes=len(data), content=Digest.of(data)),
            BufferSpec(name="y", role=Role.OUTPUT, nbytes=len(data), fetch=True),
        ),
        repeats=2,
        timeout_seconds=60.0,
    )


def leased(farm: Farm, tracker: Server, owner: str = "test") -> Lease:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner=owner)
    assert lease is not None
    return lease


def test_a_job_runs_on_a_leased_device_and_its_outputs_come_back(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as device:
        assert device.ensure(BLOBS) == len(CODE) + len(DATA)
        assert device.ensure(BLOBS) == 0
        result = device.run(job(), request_id="r1")
    assert isinstance(result, Measurement)
    assert dict(result.outputs) == {"y": DATA}
    assert len(result.seconds) == 2


def test_the_tracker_lists_devices_with_their_owners(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device("b", tracker=tracker)
    farm.device("a", tracker=tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        eventually(lambda: len(client.devices()) == 2)
        assert [device.name for device in client.devices()] == ["a", "b"]
        leased(farm, tracker, owner="me")
        assert sorted(state.owner for state in client.states()) == ["", "me"]


def test_labels_select_a_device(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device("plain", tracker=tracker)
    farm.device(
        "special", tracker=tracker, settings=lambda s: replace(s, labels=(("site", "lab"),))
    )
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(
            farm.target.digest, (("site", "lab"),), wait_seconds=60.0, owner="test"
        )
    assert lease is not None
    assert lease.device.name == "special"


def test_of_two_clients_that_race_one_waits_for_the_other(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    got: list[Lease] = []
    threads = [threading.Thread(target=lambda: got.append(leased(farm, tracker))) for _ in range(2)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(got) == 1)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        client.release(got[0])
    for thread in threads:
        thread.join(60)
    assert got[1].fence > got[0].fence


def test_nobody_waits_longer_than_asked(farm: Farm) -> None:
    tracker = farm.tracker()
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        assert client.acquire(farm.target.digest, wait_seconds=0.1, owner="test") is None


def test_an_abandoned_lease_expires_and_the_device_refuses_its_holder(farm: Farm) -> None:
    clock = ManualClock()
    limits = TableLimits(device_ttl_seconds=100.0, lease_ttl_seconds=3.0)
    tracker = farm.tracker(limits=limits, clock=clock)
    farm.device(tracker=tracker)
    old = leased(farm, tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        pass_time(client, clock, 3)
        with pytest.raises(LeaseError):
            client.renew(old)
    new = leased(farm, tracker)
    with DeviceClient(new, CREDENTIALS) as device:
        device.ensure(BLOBS)
    with DeviceClient(old, CREDENTIALS) as device, pytest.raises(LeaseError, match="out of date"):
        device.run(job(), request_id="late")


def test_a_renewed_lease_lives_on(farm: Farm) -> None:
    clock = ManualClock()
    limits = TableLimits(device_ttl_seconds=100.0, lease_ttl_seconds=3.0)
    tracker = farm.tracker(limits=limits, clock=clock)
    farm.device(tracker=tracker)
    lease = leased(farm, tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        for _ in range(4):
            pass_time(client, clock, 2)
            assert client.acquire(farm.target.digest, wait_seconds=0.2, owner="other") is None
            client.renew(lease)


def pass_time(client: TrackerClient, clock: ManualClock, seconds: int) -> None:
    """Let the tracker live for so long."""
    for _ in range(seconds):
        clock.advance(1.0)
        client.states()


@pytest.mark.parametrize("token", ["", "another"])
def test_a_stranger_gets_nothing(farm: Farm, token: str) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    lease = leased(farm, tracker)
    with (
        TrackerClient(tracker.address, Credentials(token=token)) as client,
        pytest.raises(AccessError),
    ):
        client.devices()
    with DeviceClient(lease, Credentials(token=token)) as device, pytest.raises(AccessError):
        device.ensure(BLOBS)


def test_a_missing_blob_is_a_precondition(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as device:
        with pytest.raises(MissingBlobError):
            device.run(job(), request_id="r1")
        device.ensure(BLOBS)
        assert isinstance(device.run(job(), request_id="r1"), Measurement)


def test_an_upload_goes_on_where_an_earlier_process_left_it(farm: Farm) -> None:
    incoming = farm.folder / "sim0" / "incoming"
    incoming.mkdir(parents=True)
    (incoming / Digest.of(DATA).hex).write_bytes(DATA[:300_000])
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as device:
        assert device.ensure({Digest.of(DATA): DATA}) == len(DATA) - 300_000
        assert device.read(Digest.of(DATA)) == DATA
    assert not list(incoming.iterdir())


def test_a_corrupted_upload_is_told_and_leaves_nothing(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    promised = Digest.of(b"something else")
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as device:
        with pytest.raises(CorruptBlobError):
            device.ensure({promised: DATA})
        with pytest.raises(MissingBlobError):
            device.read(promised)
    assert not list((farm.folder / "sim0" / "incoming").iterdir())
    assert not list((farm.folder / "sim0" / "blobs").iterdir())


def test_a_blob_over_the_cap_is_refused(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(
        tracker=tracker,
        settings=lambda s: replace(s, limits=StoreLimits(blob_nbytes=1000, total_nbytes=5000)),
    )
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as device:
        with pytest.raises(CapacityError):
            device.ensure({Digest.of(DATA): DATA})
        small = b"x" * 1000
        assert device.ensure({Digest.of(small): small}) == 1000


def test_a_kernel_that_crashes_is_a_result_and_the_server_lives(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as device:
        device.ensure(BLOBS)
        failure = device.run(job("crash"), request_id="r1")
        assert isinstance(failure, RunFailure)
        assert (failure.status, failure.signal) == (Status.RUN_CRASH, 11)
        assert isinstance(device.run(job(), request_id="r2"), Measurement)


def test_a_runner_that_breaks_is_the_farms_fault_and_the_server_lives(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as device:
        device.ensure(BLOBS)
        failure = device.run(job("broken"), request_id="r1")
        assert isinstance(failure, RunFailure)
        assert failure.status is Status.INFRA_ERROR
        assert isinstance(device.run(job(), request_id="r2"), Measurement)


def test_a_runner_that_hangs_loses_the_device_until_it_starts_anew(farm: Farm) -> None:
    tracker = farm.tracker(limits=TableLimits(device_ttl_seconds=3.0))
    runner = FakeRunner()
    farm.device(tracker=tracker, runner=runner)
    with (
        DeviceClient(leased(farm, tracker), CREDENTIALS) as device,
        TrackerClient(tracker.address, CREDENTIALS) as client,
    ):
        device.ensure(BLOBS)
        for request in ("r1", "r2"):
            with pytest.raises(DeviceLostError, match="hangs"):
                device.run(replace(job("stuck"), timeout_seconds=0.1), request_id=request)
        eventually(lambda: any("hangs: a run of" in s.resting for s in client.states()))
        assert client.acquire(farm.target.digest, (), wait_seconds=0.0, owner="other") is None
    runner.release.set()


def test_the_same_request_gets_the_same_answer_without_a_second_run(farm: Farm) -> None:
    tracker = farm.tracker()
    runner = FakeRunner()
    farm.device(tracker=tracker, runner=runner)
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as device:
        device.ensure(BLOBS)
        first = device.run(job(), request_id="r1")
        assert device.run(job(), request_id="r1") == first
        assert len(runner.seen) == 1
        with pytest.raises(ProtocolError, match="another job"):
            device.run(job("crash"), request_id="r1")


@pytest.mark.parametrize(
    ("artifact", "reason"),
    [
        (b"not an object at all", "not an ELF"),
        (Elf(undefined=("system",)).build(), "system"),
        (Elf(machine=183).build(), "machine 183"),
    ],
)
def test_an_artifact_that_asks_for_more_never_reaches_the_runner(
    farm: Farm, artifact: bytes, reason: str
) -> None:
    tracker = farm.tracker()
    runner = FakeRunner()
    farm.device(tracker=tracker, runner=runner)
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as device:
        device.ensure({**BLOBS, Digest.of(artifact): artifact})
        assert reason in device.load_module(Digest.of(artifact))
        assert device.load_module(Digest.of(CODE)) == ""
        failure = device.run(job(artifact=artifact), request_id="r1")
    assert isinstance(failure, RunFailure)
    assert failure.status is Status.VERIFY_REJECTED
    assert reason in failure.why
    assert not runner.seen


def test_a_job_that_contradicts_its_blobs_is_refused(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as device:
        device.ensure(BLOBS)
        for wrong in (
            replace(job(), samples=0),
            replace(job(), samples=2),
            replace(job(), timeout_seconds=0.0),
            replace(job(), precision=Precision(error=0.1, seconds=1e6)),
            replace(job(), buffers=(replace(job().buffers[0], content=None),)),
        ):
            with pytest.raises(ProtocolError):
                device.run(wrong, request_id="r1")


def test_a_device_registers_again_when_the_tracker_starts_anew(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    old = leased(farm, tracker)
    with DeviceClient(old, CREDENTIALS) as device:
        device.ensure(BLOBS)
        tracker.stop()
        assert isinstance(device.run(job(), request_id="r1"), Measurement)
    again = farm.tracker(listen=tracker.address)
    new = leased(farm, again)
    assert new.fence > old.fence
    with DeviceClient(new, CREDENTIALS) as device:
        assert isinstance(device.run(job(), request_id="r2"), Measurement)


def test_acquire_forgives_a_tracker_that_is_away_for_a_moment(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    leased(farm, tracker)
    tracker.stop()
    got: list[Lease] = []
    waiting = threading.Thread(target=lambda: got.append(leased(farm, tracker)))
    waiting.start()
    farm.tracker(listen=tracker.address)
    waiting.join(60)
    assert got


def test_a_device_that_starts_anew_voids_older_leases(farm: Farm) -> None:
    tracker = farm.tracker()
    first = farm.device(tracker=tracker)
    old = leased(farm, tracker)
    first.stop()
    farm.device(tracker=tracker, settings=lambda s: replace(s, listen=first.address))
    with DeviceClient(old, CREDENTIALS) as device, pytest.raises(LeaseError, match="anew"):
        device.ensure(BLOBS)
    with TrackerClient(tracker.address, CREDENTIALS) as client, pytest.raises(LeaseError):
        client.renew(old)


def test_a_device_that_goes_away_is_lost_quickly(farm: Farm) -> None:
    tracker = farm.tracker()
    server = farm.device(tracker=tracker)
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as device:
        device.ensure(BLOBS)
        server.stop()
        with pytest.raises(DeviceLostError, match="sim0"):
            device.run(job(), request_id="r1")


def test_a_lost_device_is_not_leased_before_its_next_heartbeat(farm: Farm) -> None:
    tracker = farm.tracker(limits=TableLimits(device_ttl_seconds=7.5))
    with Proxy(tracker.address) as proxy, TrackerClient(tracker.address, CREDENTIALS) as client:
        farm.device(settings=lambda s: replace(s, tracker=proxy.address))
        lease = leased(farm, tracker)
        # Both the lease and the first heartbeat follow the registration.
        eventually(lambda: client.states()[0].usage is not None)
        proxy.cut("up")
        client.release(lease, device_lost=True)
        assert client.acquire(farm.target.digest, wait_seconds=0.0, owner="test") is None
        proxy.heal()
        assert client.acquire(farm.target.digest, wait_seconds=60.0, owner="test") is not None


def test_two_servers_never_share_a_port_or_a_folder(farm: Farm) -> None:
    tracker = farm.tracker()
    with pytest.raises(SettingsError, match="the port is in use") as taken:
        farm.tracker(listen=tracker.address)
    assert "ss -ltnp" in taken.value.hint
    with pytest.raises(SettingsError, match="the folder is absent"):
        farm.tracker(listen=f"unix:{farm.folder}/nosuch/t.sock")
    farm.device("one")
    with pytest.raises(SettingsError, match="keeps its blobs"):
        farm.device("one")


@pytest.mark.parametrize(
    "listen", ["0.0.0.0:0", "192.168.1.5:4000", "[::]:0", "nonsense", "a:b", "127.0.0.1:65536"]
)
def test_only_loopback_is_served(farm: Farm, listen: str) -> None:
    with pytest.raises(SettingsError):
        farm.tracker(listen=listen)


def test_a_unix_socket_serves_as_well(farm: Farm) -> None:
    path = farm.folder / "t.sock"
    tracker = farm.tracker(listen=f"unix:{path}")
    assert path.stat().st_mode & 0o777 == 0o600
    farm.device(tracker=tracker)
    assert leased(farm, tracker).device.name == "sim0"


def test_an_absent_tracker_is_told_at_once(farm: Farm) -> None:
    tracker = farm.tracker()
    tracker.stop()
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        with pytest.raises(InfraError, match="does not answer"):
            client.devices()
        with pytest.raises(InfraError, match="does not answer"):
            client.acquire(farm.target.digest, wait_seconds=0.3, owner="test")
