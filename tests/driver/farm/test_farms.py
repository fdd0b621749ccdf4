"""Devices of a run: simulated ones that are started again, leases, and reasons for having none."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, FakeRunner, Farm, eventually
from kit.objects.elves import Elf
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import (
    AccessError,
    ForbiddenError,
    ImplausibleError,
    InfraError,
    NoDeviceError,
    UnreachableError,
)
from tilefarm.lease import Lease
from tilefarm.measurement import DeviceClock, RunJob
from tilefarm.target import TARGETS
from tilefarm.trust.tls import Credentials

from device_server.tracker.client import TrackerClient
from driver.campaign.job_runner import JobRunner
from driver.farm.children import Child
from driver.farm.device_messages import NoDevice, Order
from driver.farm.device_thread import DeviceThread
from driver.farm.farms import LocalFarm, RemoteFarm
from driver.farm.leases import Leases
from driver.processes import descendants, kill_descendants

SIM = TARGETS["sim"]
CODE = Elf().build()


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as running:
        yield running


def test_leases_are_exclusive_and_given_back(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device("sim0", tracker=tracker, runner=FakeRunner())
    leases = Leases(RemoteFarm(tracker.address, CREDENTIALS), SIM, owner="test")
    lease = leases.acquire(60.0)
    assert lease.device.name == "sim0"
    with pytest.raises(NoDeviceError, match="sim0 in use by others"):
        leases.acquire(0.2)
    leases.release(lease)
    assert leases.acquire(60.0).device.name == "sim0"
    leases.close()
    again = Leases(RemoteFarm(tracker.address, CREDENTIALS), SIM, owner="test")
    assert again.acquire(60.0).device.name == "sim0"
    again.close()


def test_what_is_missing_is_named(farm: Farm) -> None:
    tracker = farm.tracker()
    leases = Leases(RemoteFarm(tracker.address, CREDENTIALS), SIM, owner="test")
    with pytest.raises(NoDeviceError, match=r"no device with target sim within 0.1 s: none is reg"):
        leases.acquire(0.1)
    farm.device("sim0", tracker=tracker, runner=FakeRunner())
    other = Leases(RemoteFarm(tracker.address, CREDENTIALS), TARGETS["sim-de10"], owner="test")
    with pytest.raises(NoDeviceError, match="1 registered, all with other targets") as none:
        other.acquire(0.1)
    assert "tilefarm device --target sim-de10" in none.value.hint
    other.close()
    leases.close()


def test_a_lease_that_the_tracker_forgot_is_lost(farm: Farm) -> None:
    tracker = farm.tracker()
    device = farm.device("sim0", tracker=tracker, runner=FakeRunner())
    leases = Leases(RemoteFarm(tracker.address, CREDENTIALS), SIM, owner="test")
    lease = leases.acquire(60.0)
    assert leases.lost(lease) == ""
    device.stop()
    eventually(lambda: bool(leases.lost(lease)))
    leases.close()


def child_of(local: LocalFarm, word: str) -> int:
    """The one whose command has that word."""
    (found,) = (
        pid for pid in local.pids if word in Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    )
    return found


def test_a_dead_simulated_device_is_started_again_and_all_end_together(tmp_path: Path) -> None:
    local = LocalFarm(SIM, 1, tmp_path, tmp_path)
    leases = Leases(local, SIM, owner="test")
    first = leases.acquire(60.0)
    before, device = set(local.pids), child_of(local, "sim0")
    os.kill(device, signal.SIGKILL)
    leases.release(first, device_lost=True)
    second = leases.acquire(60.0)
    assert second.device.name == "sim0"
    assert second.device.epoch != first.device.epoch
    after = set(local.pids)
    assert (before - after, len(after)) == ({device}, 2), "of those that live, none is missing"
    leases.close()
    local.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in before | after)
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_devices_that_are_started_here_load_the_library_that_is_asked_for(tmp_path: Path) -> None:
    local = LocalFarm(SIM, 1, tmp_path, tmp_path, runtime=Path("stand-in"))
    leases = Leases(local, SIM, owner="test")
    assert leases.acquire(60.0).device.clock is DeviceClock.SECONDS
    leases.close()
    local.close()


def test_a_dead_tracker_is_started_again_and_its_leases_go_on(tmp_path: Path) -> None:
    local = LocalFarm(SIM, 1, tmp_path, tmp_path)
    leases = Leases(local, SIM, owner="test")
    first = leases.acquire(60.0)
    os.kill(child_of(local, "tracker"), signal.SIGKILL)
    with TrackerClient(local.tracker(0.0), local.credentials) as client:
        eventually(lambda: renewed(client, first), seconds=60.0)
    assert leases.lost(first) == ""
    leases.release(first)
    second = leases.acquire(60.0)
    assert second.device.epoch == first.device.epoch
    assert second.fence > first.fence
    leases.close()
    local.close()


def renewed(client: TrackerClient, lease: Lease) -> bool:
    """Whether the tracker answers, and still knows a lease."""
    try:
        client.renew(lease)
    except UnreachableError:
        return False
    return True


def test_a_tracker_that_never_stays_up_is_no_reason_to_wait(tmp_path: Path) -> None:
    (tmp_path / "tracker.sqlite").mkdir()
    local = LocalFarm(SIM, 1, tmp_path, tmp_path)
    leases = Leases(local, SIM, owner="test")
    with pytest.raises(NoDeviceError, match="cannot keep the tracker's state"):
        leases.acquire(100.0)
    leases.close()
    local.close()


def test_a_wrong_token_is_told_at_once(farm: Farm) -> None:
    leases = Leases(
        RemoteFarm(farm.tracker().address, Credentials(token="another")), SIM, owner="test"
    )
    reports: queue.SimpleQueue[object] = queue.SimpleQueue()
    thread = DeviceThread(0, leases, wait_seconds=100.0, report=reports.put, clock=SystemClock())
    told = reports.get(timeout=60.0)
    assert isinstance(told, NoDevice)
    assert isinstance(told.error, AccessError)
    assert told.error.exit_code == 2
    thread.close()
    thread.join(60.0)
    leases.close()


def test_a_device_that_refuses_us_is_no_lost_device(farm: Farm) -> None:
    """Without the signing key nobody is served by trying one device after the other."""
    tracker = farm.tracker()
    farm.credentials = replace(CREDENTIALS, signing_key=b"k" * 32)
    farm.device("sim0", tracker=tracker, runner=FakeRunner())
    job = RunJob(artifact=Digest.of(CODE), entry="echo", buffers=())
    order = Order(number=1, job=job, blobs={job.artifact: CODE}, request_id="r")
    leases = Leases(RemoteFarm(tracker.address, CREDENTIALS), SIM, owner="test")
    runner = JobRunner(leases, devices=1, wait_seconds=60.0, clock=SystemClock())
    with pytest.raises(ForbiddenError, match="is not signed"):
        runner.run([order])
    lease = leases.acquire(0.0)
    assert lease.device.name == "sim0"
    leases.close()


def test_devices_that_never_stay_up_are_no_reason_to_wait(tmp_path: Path) -> None:
    (tmp_path / "sim0").write_text("no folder")
    local = LocalFarm(SIM, 1, tmp_path, tmp_path)
    leases = Leases(local, SIM, owner="test")
    with pytest.raises(NoDeviceError, match=r"no device of this run stays up.*sim0"):
        leases.acquire(100.0)
    leases.close()
    local.close()


def test_a_child_that_ends_early_says_why(tmp_path: Path) -> None:
    child = Child("tracker", ["tracker", "--token-file", "/nosuch/token"], tmp_path / "log")
    with pytest.raises(InfraError, match=r"exit code 2.*/nosuch/token"):
        child.ready()
    child.join()


def test_children_die_with_the_thread_that_started_them(tmp_path: Path) -> None:
    children: list[Child] = []

    def start() -> None:
        child = Child("tracker", ["tracker", "--token-file", str(tmp_path / "t")], tmp_path / "l")
        children.append(child)
        child.ready()

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    children[0].join()
    assert not children[0].alive


def test_everything_below_a_process_can_be_ended(tmp_path: Path) -> None:
    child = Child("tracker", ["tracker", "--token-file", str(tmp_path / "t")], tmp_path / "log")
    child.ready()
    assert child.pid in descendants(os.getpid())
    kill_descendants(child.pid)
    child.kill()
    child.join()
    assert child.pid not in descendants(os.getpid())


def test_a_device_that_is_given_back_for_good_is_not_taken_again(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device("sim0", tracker=tracker, runner=FakeRunner())
    leases = Leases(RemoteFarm(tracker.address, CREDENTIALS), SIM, owner="test")
    others = Leases(RemoteFarm(tracker.address, CREDENTIALS), SIM, owner="others")
    lease = leases.acquire(60.0)
    leases.release(lease, device_lost=True, why="sim0 says 1 cycle", for_good=True)
    with pytest.raises(ImplausibleError, match="sim0 says 1 cycle") as refused:
        leases.acquire(60.0)
    assert "another device" in refused.value.hint
    assert others.acquire(60.0).device.name == "sim0", "whom it has not lied to"
    with pytest.raises(NoDeviceError, match=r"sim0 is not believed any more: .*1 cycle") as none:
        leases.acquire(0.1)
    assert "another device" in none.value.hint, "waiting longer is in vain"
    others.close()
    leases.close()
