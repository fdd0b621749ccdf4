"""Row 6: a tracker that is killed and started again: runs go on, leases are as before."""

from __future__ import annotations

from pathlib import Path

from kit.farm.in_process import CREDENTIALS, Farm, eventually
from kit.farm.real_farm import RealFarm
from kit.kernels.c_kernels import job
from kit.manual_clock import ManualClock
from tilefarm.errors import UnreachableError
from tilefarm.lease import Lease
from tilefarm.measurement import Measurement

from device_server.tracker.client import TrackerClient
from device_server.tracker.limits import TableLimits

from .fault_rows import Stopwatch


def _renewed(client: TrackerClient, lease: Lease) -> bool:
    """Whether a tracker that has just begun is there already, and still knows a lease."""
    try:
        client.renew(lease)
    except UnreachableError:
        return False
    return True


def test_a_run_goes_on_and_leases_are_as_they_were(
    real_farm: RealFarm, stopwatch: Stopwatch
) -> None:
    tracker = real_farm.tracker()
    client = real_farm.ask(tracker.address)
    idle = real_farm.device(tracker.address, name="sim1")
    held = real_farm.lease(client)
    busy = real_farm.device(tracker.address, name="sim0")
    answer = real_farm.begin(real_farm.leases(tracker.address), job("slow"))
    eventually(lambda: busy.computes)
    with stopwatch.running():
        tracker.kill()
        again = real_farm.tracker(listen=tracker.address)
        eventually(lambda: _renewed(client, held))
        client.release(held)
        fresh = real_farm.lease(client)
    assert fresh.fence > held.fence
    done = answer.result(60)
    assert isinstance(done.result, Measurement)
    assert done.device == "sim0"
    assert busy.said("event=ran") == 1, "nothing is run twice"
    assert idle.alive
    assert again.said("event=expired") == 0


def test_a_lease_that_nobody_renews_has_only_the_time_that_was_left(tmp_path: Path) -> None:
    clock = ManualClock()
    limits = TableLimits(device_ttl_seconds=100.0, lease_ttl_seconds=12.0)
    state = tmp_path / "tracker.sqlite"
    with Farm(tmp_path) as farm:
        first = farm.tracker(state=state, limits=limits, clock=clock)
        for name in ("sim0", "sim1"):
            farm.device(name, tracker=first)
        with TrackerClient(first.address, CREDENTIALS) as client:
            assert client.acquire(farm.target.digest, wait_seconds=60.0, owner="gone")
            assert owners(client, clock, 9) == [{"gone"}] * 9
            # A new lease has the time kept at once.
            assert client.acquire(farm.target.digest, wait_seconds=60.0, owner="next")
        first.stop()
        clock.advance(3600.0)
        again = farm.tracker(listen=first.address, state=state, limits=limits, clock=clock)
        with TrackerClient(again.address, CREDENTIALS) as client:
            assert owners(client, clock, 3) == [{"gone", "next"}, {"gone", "next"}, {"next"}]


def owners(client: TrackerClient, clock: ManualClock, seconds: int) -> list[set[str]]:
    """Who has a device after each of the next seconds."""
    found = []
    for _ in range(seconds):
        clock.advance(1.0)
        found.append({state.owner for state in client.states()} - {""})
    return found


def test_a_device_comes_back_to_a_tracker_that_has_forgotten_it(
    real_farm: RealFarm, stopwatch: Stopwatch
) -> None:
    tracker = real_farm.tracker()
    real_farm.device(tracker.address)
    client = real_farm.ask(tracker.address)
    old = real_farm.lease(client)
    with stopwatch.running():
        tracker.kill()
        (real_farm.folder / "tracker.sqlite").unlink()
        real_farm.tracker(listen=tracker.address)
        new = real_farm.lease(client)
    assert new.device == old.device
    assert new.fence > old.fence, "whoever has the old lease is refused by the device"
