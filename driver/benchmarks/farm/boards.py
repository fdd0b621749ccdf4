"""Two boards at work: real compiles, real device servers, kernels that are nobody's load here.

Kernels take longer than compiles, so there nearly always is a candidate, and a device that has none
waits for the driver.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tilefarm.clock import Clock

from driver.benchmarks.farm.busy import TimeShares, shares
from driver.benchmarks.farm.devices import SleepingDevices
from driver.benchmarks.farm.proofs import Proofs
from driver.benchmarks.farm.run_environment import search_with
from driver.benchmarks.farm.served import own_tracker
from driver.farm.settings import FarmSettings

BOARDS: Final = 2
KERNEL_SECONDS: Final = 0.25
"""On the average; see `asleep.kernel_seconds`."""

_START_SECONDS: Final = 60.0
_WORKERS: Final = 2


def measure_boards(trials: int, *, tls: bool, scratch: Path, clock: Clock) -> TimeShares:
    """What the boards did while a search of so many trials went on.

    Raises:
        NoDeviceError, FarmFault: see `searching.search`.
    """
    proofs = Proofs.create(scratch, tls=tls, clock=clock)
    with (
        own_tracker("127.0.0.1:0", proofs) as (_, address),
        SleepingDevices(
            BOARDS,
            tracker=address,
            proofs=proofs,
            kernel_seconds=KERNEL_SECONDS,
            folder=scratch,
            log=scratch / "boards.log",
        ) as boards,
    ):
        boards.wait_until_registered(_START_SECONDS)
        settings = FarmSettings(
            tracker=address,
            token_file=proofs.token_file,
            tls=proofs.tls(),
            devices=BOARDS,
            workers=_WORKERS,
            ray=False,
        )
        records = scratch / "boards.sqlite"
        done = search_with(settings, trials, records=records, clock=clock, are_asleep=True)
    return shares(done)
