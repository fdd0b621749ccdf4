"""The whole way with nothing left out: real compiles and real simulators, on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from tilefarm.clock import Clock

from driver.benchmarks.farm.busy import TimeShares, TrialSeconds, path, shares
from driver.benchmarks.farm.proofs import Proofs
from driver.benchmarks.farm.run_environment import search_with
from driver.benchmarks.farm.served import simulators
from driver.farm.settings import FarmSettings

DEVICES: Final = 2
WORKERS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RealFigures:
    """A search on two simulators and two compile processes.

    Attributes:
        trials: how many ended, in `seconds` from `FarmSearch.began` on.
        driver_seconds: processor seconds of the driver, a trial.
        farm_seconds: of tracker, devices and runners, a trial; the kernel is part of it.
        kernel_seconds: of a kernel: the median of what runs took. A child has one thread that
            computes all the time; the mean would count what it waits for a core.
    """

    trials: int
    seconds: float
    shares: TimeShares
    path: TrialSeconds
    driver_seconds: float
    farm_seconds: float
    kernel_seconds: float

    @property
    def overhead_seconds(self) -> float:
        """Processor seconds of a trial besides its compile and its kernel."""
        return self.driver_seconds + self.farm_seconds - self.kernel_seconds


def measure_real(trials: int, *, tls: bool, scratch: Path, clock: Clock) -> RealFigures:
    """Search for so many trials.

    Raises:
        NoDeviceError, FarmFault: see `searching.search`.
    """
    proofs = Proofs.create(scratch, tls=tls, clock=clock)
    with simulators(DEVICES, proofs) as farm:
        settings = FarmSettings(
            tracker=farm.tracker,
            token_file=proofs.token_file,
            tls=proofs.tls(),
            devices=DEVICES,
            workers=WORKERS,
            ray=False,
        )
        records = scratch / "real.sqlite"
        done = search_with(settings, trials, records=records, clock=clock, farm=farm.pids)
    return RealFigures(
        trials=done.told,
        seconds=done.ended - done.began,
        shares=shares(done),
        path=path(done),
        driver_seconds=done.processor.driver / done.told,
        farm_seconds=done.processor.farm / done.told,
        kernel_seconds=median(done.kernels),
    )
