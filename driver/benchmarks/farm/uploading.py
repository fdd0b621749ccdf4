"""Blobs on their way to a device: how many bytes a second, and what both ends compute for that."""

from __future__ import annotations

import random
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from tilefarm.clock import Clock
from tilefarm.digest import Digest

from driver.benchmarks.farm.devices import TARGET
from driver.benchmarks.farm.proofs import Proofs
from driver.benchmarks.farm.served import simulators
from driver.benchmarks.farm.usage import tree_seconds
from driver.farm.farms import RemoteFarm
from driver.farm.leases import Leases

BLOB_NBYTES: Final = 64 << 20
"""Of each upload: what the constants of a large network come to."""

_UPLOADS: Final = 5
_DEVICE_WAIT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadFigures:
    """Uploads of one large blob each to a simulator on this machine, one after the other.

    Attributes:
        nbytes_per_second: of the median upload.
        driver_seconds: processor seconds of the driver, a byte.
        device_seconds: of the device, a byte.
    """

    nbytes_per_second: float
    driver_seconds: float
    device_seconds: float


def measure_upload(*, tls: bool, scratch: Path, clock: Clock) -> UploadFigures:
    """Upload.

    Raises:
        NoDeviceError, FarmFault: there is no device, or it takes no blobs.
    """
    noise = random.Random(0)
    blobs = [noise.randbytes(BLOB_NBYTES) for _ in range(_UPLOADS)]
    named = [{Digest.of(blob): blob} for blob in blobs]
    proofs = Proofs.create(scratch, tls=tls, clock=clock)
    with (
        simulators(1, proofs) as farm,
        closing(RemoteFarm(farm.tracker, proofs.shown())) as reached,
        closing(Leases(reached, TARGET, owner="bench", clock=clock)) as leases,
        closing(leases.connect(leases.acquire(_DEVICE_WAIT_SECONDS))) as device,
    ):
        device.ensure({Digest.of(b""): b""})
        used, farm_used = time.process_time(), tree_seconds(farm.pids)
        seconds = []
        for blob in named:
            began = clock.seconds()
            device.ensure(blob)
            seconds.append(clock.seconds() - began)
        used, farm_used = time.process_time() - used, tree_seconds(farm.pids) - farm_used
    nbytes = _UPLOADS * BLOB_NBYTES
    return UploadFigures(
        nbytes_per_second=BLOB_NBYTES / median(seconds),
        driver_seconds=used / nbytes,
        device_seconds=farm_used / nbytes,
    )
