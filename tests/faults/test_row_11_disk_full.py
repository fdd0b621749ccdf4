"""Row 11: a full disk is told in one line; nothing is half written, and all goes on with space."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kit.farm.full_disk import full_disk
from kit.farm.in_process import Farm, eventually
from kit.farm.real_farm import RealFarm
from kit.kernels.c_kernels import blobs, job
from tilefarm.errors import DeviceLostError, InfraError, SuspectError
from tilefarm.measurement import Measurement, Status

from device_server.device.health_monitor import MonitorLimits
from device_server.device.settings import DeviceSettings
from tuner.trial_store import TrialStore

from .tuning import tuning
from .wrong_device_search import CANDIDATES, KERNEL, RIGHT_CYCLES, CountingRunner, searched


def test_a_devices_disk(real_farm: RealFarm) -> None:
    tracker = real_farm.tracker()
    device = real_farm.device(tracker.address)
    client = real_farm.use(real_farm.lease(real_farm.ask(tracker.address)))
    with full_disk(device.pid), pytest.raises(InfraError, match="cannot write a blob") as full:
        client.ensure(blobs())
    assert "free some space" in full.value.hint
    assert device.alive
    client.ensure(blobs())
    assert isinstance(client.run(job("increment"), request_id="r"), Measurement)
    kept = {path.name for path in (real_farm.folder / "sim0" / "blobs").iterdir()}
    assert kept >= {digest.hex for digest in blobs()}


def test_a_devices_disk_while_it_is_checked(real_farm: RealFarm) -> None:
    tracker = real_farm.tracker()
    device = real_farm.device(tracker.address)
    admin = real_farm.ask(tracker.address)
    client = real_farm.use(real_farm.lease(admin))
    client.ensure(blobs())
    assert isinstance(client.run(job("increment"), request_id="r"), Measurement)
    with full_disk(device.pid):
        with pytest.raises(DeviceLostError, match="cannot be checked: the runner failed") as lost:
            client.confirm()
        assert not isinstance(lost.value, SuspectError)
        eventually(lambda: any("free some space" in state.resting for state in admin.states()))
        assert [state.quarantine for state in admin.states()] == [""]
    admin.readmit("sim0")  # it would look again by itself, 10 s after the last time
    eventually(lambda: [state.resting for state in admin.states()] == [""])
    client.confirm()
    assert client.capabilities().spoiled_fence == 0


def fill(runner: CountingRunner, runs: int) -> None:
    """No room for the known kernel from the 60th run on."""
    runner.full |= runs == 60


def soon(settings: DeviceSettings) -> DeviceSettings:
    return replace(settings, watch=MonitorLimits(cooldown_seconds=0.2))


def test_a_search_goes_on_when_its_device_has_room_again(tmp_path: Path) -> None:
    runner = CountingRunner(kernel=KERNEL, after=fill)

    class TidiedFarm(Farm):
        """Somebody makes room as soon as a device says that it has none."""

        def log(self, event: str, **fields: object) -> None:
            super().log(event, **fields)
            if event == "not_checked":
                runner.full = False

    with TidiedFarm(tmp_path / "farm") as farm:
        tracker = farm.tracker()
        farm.device(tracker=tracker, runner=runner, settings=soon)
        with searched(farm, tracker, tmp_path, devices=1) as search:
            kept = search.store.trials()
            assert search.result.why == "exhausted"
    assert [event for event, _ in farm.events].count("not_checked") == 1
    assert {(t.status, t.cycles) for t in kept} == {(Status.OK, RIGHT_CYCLES)}
    assert len(kept) == CANDIDATES
    assert 0 < len(runner.seen) - CANDIDATES < 50, "what it could not confirm was run again"


def test_a_trackers_disk(real_farm: RealFarm) -> None:
    tracker = real_farm.tracker()
    client = real_farm.ask(tracker.address)
    with full_disk(tracker.pid):
        real_farm.device(tracker.address)
        lease = real_farm.lease(client)
        client.renew(lease)
        client.release(lease)
    assert tracker.alive
    newer = real_farm.lease(client)
    assert newer.fence > lease.fence
    tracker.kill()
    again = real_farm.tracker(listen=tracker.address)
    real_farm.ask(again.address).renew(newer)


@pytest.mark.parametrize("last", ["trial", "step_ended"])
def test_a_drivers_disk(real_farm: RealFarm, tmp_path: Path, last: str) -> None:
    """It is full in the middle of the search, or when program and pictures are to be written."""
    out = tmp_path / "out"
    tracker = real_farm.tracker()
    real_farm.device(tracker.address)
    with tuning(real_farm, tracker.address, out, 60) as first:
        number = first.wait_for("trial", 5)["number"]
        if last == "step_ended":
            assert first.wait_for(last)["step"] == "search"
        with full_disk(first.process.pid):
            code, errors = first.end()
    assert code == 75, errors
    # the run's own folder or what was compiled before, whichever is written next
    assert "cannot write" in errors or "cannot be written" in errors
    assert "the same command then goes on" in errors
    assert "Traceback" not in errors
    with TrialStore(out / "records.sqlite", read_only=True) as store:
        kept = store.count()
    assert kept >= number
    with tuning(real_farm, tracker.address, out, 60) as second:
        if last == "trial":
            assert second.wait_for("trial")["number"] == kept + 1
        else:
            assert kept == 60, "what was measured is not measured again"
        code, errors = second.end()
    assert (code, errors) == (0, "")
