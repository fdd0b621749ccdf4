"""Row 14: wall clocks that are off by an hour, and jump; leases live by durations alone."""

from __future__ import annotations

from pathlib import Path

from kit.farm.real_farm import RealFarm
from kit.kernels.c_kernels import blobs, job
from tilefarm.lease import Lease
from tilefarm.measurement import Measurement

from .skew import Skew

HOUR_SECONDS = 3600


def ran(farm: RealFarm, lease: Lease, request_id: str) -> bool:
    device = farm.use(lease)
    device.ensure(blobs())
    return isinstance(device.run(job("increment"), request_id=request_id), Measurement)


def test_a_lease_outlives_every_jump_and_its_fence_never_falls(
    real_farm: RealFarm, tmp_path: Path
) -> None:
    of_tracker = Skew(tmp_path / "skew of the tracker", HOUR_SECONDS)
    of_device = Skew(tmp_path / "skew of the device", -HOUR_SECONDS)
    real_farm.environment = of_tracker.environment
    tracker = real_farm.tracker()
    assert tracker.said("event=ready") == 1
    real_farm.environment = of_device.environment
    real_farm.device(tracker.address)
    client = real_farm.ask(tracker.address)
    lease = real_farm.lease(client)
    for hours in (-1, 1, 0, -2):
        of_tracker.jump(hours * HOUR_SECONDS)
        of_device.jump(-hours * HOUR_SECONDS)
        client.renew(lease)
        assert ran(real_farm, lease, f"at {hours}")
        assert [state.owner for state in client.states()] == ["test"]


def test_a_tracker_that_starts_anew_in_the_past_gives_higher_fences(
    real_farm: RealFarm, tmp_path: Path
) -> None:
    skew = Skew(tmp_path / "skew", HOUR_SECONDS)
    real_farm.environment = skew.environment
    first = real_farm.tracker()
    real_farm.environment = {}
    real_farm.device(first.address)
    client = real_farm.ask(first.address)
    old = real_farm.lease(client)
    assert ran(real_farm, old, "old")
    client.release(old)
    first.kill()
    (real_farm.folder / "tracker.sqlite").unlink()
    skew.jump(-HOUR_SECONDS)
    real_farm.environment = skew.environment
    again = real_farm.tracker(listen=first.address)
    new = real_farm.lease(real_farm.ask(again.address))
    assert new.fence > old.fence
    assert ran(real_farm, new, "new")
