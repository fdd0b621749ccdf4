"""Row 11: a full disk is told in one line; nothing is half written, and all goes on with space."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.c_kernels import blobs, job
from kit.full_disk import full_disk
from kit.real_farm import RealFarm
from kit.tuning import tuning
from tilefarm.errors import CapacityError
from tilefarm.measurement import Measurement

from tuner.store import Store


def test_a_devices_disk(real_farm: RealFarm) -> None:
    tracker = real_farm.tracker()
    device = real_farm.device(tracker.address)
    client = real_farm.use(real_farm.lease(real_farm.ask(tracker.address)))
    with full_disk(device.pid), pytest.raises(CapacityError, match="cannot write a blob") as full:
        client.ensure(blobs())
    assert "free some space" in full.value.hint
    assert device.alive
    client.ensure(blobs())
    assert isinstance(client.run(job("increment"), request_id="r"), Measurement)
    kept = {path.name for path in (real_farm.folder / "sim0" / "blobs").iterdir()}
    assert kept >= {digest.hex for digest in blobs()}


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


def test_a_drivers_disk(real_farm: RealFarm, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tracker = real_farm.tracker()
    real_farm.device(tracker.address)
    with tuning(real_farm, tracker.address, out, 60) as first:
        number = first.wait_for("trial", 5)["number"]
        with full_disk(first.process.pid):
            code, errors = first.end()
    assert code == 2
    assert "records.sqlite" in errors
    assert "see that the disk has space" in errors
    assert "Traceback" not in errors
    with Store(out / "records.sqlite", read_only=True) as store:
        kept = store.count()
    assert kept >= number
    with tuning(real_farm, tracker.address, out, 60) as second:
        assert second.wait_for("trial")["number"] == kept + 1
        code, errors = second.end()
    assert (code, errors) == (0, "")
