"""Row 19: a device that starts anew voids its leases, and is checked before anything runs."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from kit.farm.real_farm import RealFarm
from kit.kernels.c_kernels import blobs, job
from tilefarm.digest import Digest
from tilefarm.errors import DeviceLostError, LeaseError
from tilefarm.measurement import Measurement


def test_leases_of_the_old_life_are_void_and_the_board_is_programmed_and_proved(
    real_farm: RealFarm, tmp_path: Path
) -> None:
    (tmp_path / "vta.bit").write_bytes(b"bits")
    # What the board runs is gone with its power, so it is asked.
    (tmp_path / "hooks.toml").write_text(
        f"""
        [bitstream]
        file = "vta.bit"
        command = ["/bin/sh", "-c", "echo {{digest}} | tee -a {tmp_path}/log > {tmp_path}/runs"]
        report = ["/bin/sh", "-c", "cat {tmp_path}/runs || true"]
        """
    )
    tracker = real_farm.tracker()
    hooks = ("--hooks", str(tmp_path / "hooks.toml"))
    first = real_farm.device(tracker.address, *hooks)
    asked = real_farm.ask(tracker.address)
    old = real_farm.use(real_farm.lease(asked))
    old.ensure(blobs())
    assert isinstance(old.run(job("increment"), request_id="before"), Measurement)
    first.kill()
    (tmp_path / "runs").unlink()
    second = real_farm.device(tracker.address, *hooks, listen=first.address)
    with pytest.raises((LeaseError, DeviceLostError)):
        old.run(job("increment"), request_id="late")
    with pytest.raises(LeaseError):
        real_farm.use(old.lease).run(job("increment"), request_id="later")
    new = real_farm.use(real_farm.lease(asked))
    assert new.lease.device.epoch != old.lease.device.epoch
    new.ensure(blobs())
    assert isinstance(new.run(job("increment"), request_id="after"), Measurement)
    assert (tmp_path / "log").read_text().split() == [Digest.of(b"bits").hex] * 2
    assert second.said("event=proved") == 2
    assert second.end() in (0, -signal.SIGTERM)
