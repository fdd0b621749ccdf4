"""A real tracker, a real driver, and as many devices and compile workers as asked for, asleep."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.artifact import Artifact
from tilefarm.clock import Clock
from tilefarm.errors import InfraError

from compile_worker.compiler import compile_kernel
from driver.benchmarks.farm.asleep import SleepingPlace
from driver.benchmarks.farm.clients import LeaseLoad, arriving_load, saturating_load
from driver.benchmarks.farm.devices import TARGET, SleepingDevices
from driver.benchmarks.farm.proofs import Proofs
from driver.benchmarks.farm.searching import FarmSearch, SearchSetup, layer_tasks, search
from driver.benchmarks.farm.served import own_tracker
from driver.benchmarks.farm.usage import peak_nbytes, processor_seconds, resident_nbytes
from driver.campaign.measuring import Task
from driver.farm.compiling.executor import Workers
from driver.farm.farms import RemoteFarm
from driver.farm.leases import Leases

_STORM_SECONDS: Final = 120.0
_ENDLESS: Final = 1_000_000
_RENEWAL_SECONDS: Final = 10.0
"""From one renewal to the next: a third of a lease's time to live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmScale:
    """What is simulated.

    Attributes:
        seconds: of each of the four loads: heartbeats alone, leases as they are needed, as many
            as there can be, a search.
        kernel_seconds, compile_seconds: a kernel takes between half and one and a half of the
            first, evenly; a compile takes the second.
    """

    devices: int
    workers: int
    seconds: float
    kernel_seconds: float
    compile_seconds: float

    @property
    def leases_per_second(self) -> float:
        """All devices at work, each kernel under a lease of its own: more than a search asks for,
        which leases a device once for all its kernels.
        """
        return self.devices / self.kernel_seconds

    @property
    def renewals(self) -> int:
        """Of a lease that is held for one kernel."""
        return round(self.kernel_seconds / _RENEWAL_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerLoad:
    """What the tracker did under one load: processor seconds in some seconds."""

    processor_seconds: float
    seconds: float

    @property
    def share(self) -> float:
        """Of one core."""
        return self.processor_seconds / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerFigures:
    """What the tracker needed: what it holds when it begins to serve, the most that it ever held,
    and what it did under each load.
    """

    start_nbytes: int
    peak_nbytes: int
    beating: TrackerLoad
    leasing: TrackerLoad
    saturating: TrackerLoad
    searching: TrackerLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleFigures:
    """What came of it.

    Attributes:
        storm_seconds: from the start of a tracker that knows nobody until every device, which had
            been calling it all the while, is registered.
        needed, saturated: of leases at the rate that the devices need, and as many as there can be.
        done: the search.
    """

    storm_seconds: float
    tracker: TrackerFigures
    needed: LeaseLoad
    saturated: LeaseLoad
    done: FarmSearch


def measure_scale(scale: FarmScale, *, tls: bool, scratch: Path, clock: Clock) -> ScaleFigures:
    """Start it all, with TLS or without, load it in four ways, end it all.

    Raises:
        NoDeviceError, FarmFault: a part of it did not start, or gave up.
    """
    proofs = Proofs.create(scratch, tls=tls, clock=clock)
    shown = proofs.shown()
    with own_tracker("127.0.0.1:0", proofs) as (_, address):
        pass  # It was there for a free port only: devices call it before the one to measure starts.
    with SleepingDevices(
        scale.devices,
        tracker=address,
        proofs=proofs,
        kernel_seconds=scale.kernel_seconds,
        folder=scratch,
        log=scratch / "devices.log",
    ) as devices:
        began = clock.seconds()
        with own_tracker(address, proofs) as (tracker, _):
            start_nbytes = resident_nbytes(tracker.pid)
            devices.wait_until_registered(_STORM_SECONDS)
            storm_seconds = clock.seconds() - began
            watch = _Watch(tracker.pid, clock)
            clock.sleep(scale.seconds)
            beating = watch.lap()
            asked = address, shown, TARGET.digest
            needed = asyncio.run(
                arriving_load(
                    *asked,
                    per_second=scale.leases_per_second,
                    renewals=scale.renewals,
                    seconds=scale.seconds,
                    clock=clock,
                )
            )
            leasing = watch.lap()
            saturated = asyncio.run(saturating_load(*asked, seconds=scale.seconds, clock=clock))
            saturating = watch.lap()
            done = _search(scale, RemoteFarm(address, shown), scratch, clock)
            return ScaleFigures(
                storm_seconds=storm_seconds,
                tracker=TrackerFigures(
                    start_nbytes=start_nbytes,
                    peak_nbytes=peak_nbytes(tracker.pid),
                    beating=beating,
                    leasing=leasing,
                    saturating=saturating,
                    searching=watch.lap(),
                ),
                needed=needed,
                saturated=saturated,
                done=done,
            )


class _Watch:
    """The processor seconds of a process since they were last asked for."""

    def __init__(self, pid: int, clock: Clock) -> None:
        self._pid = pid
        self._clock = clock
        self._at = clock.seconds()
        self._used = processor_seconds(pid)

    def lap(self) -> TrackerLoad:
        at, used = self._clock.seconds(), processor_seconds(self._pid)
        load = TrackerLoad(processor_seconds=used - self._used, seconds=at - self._at)
        self._at, self._used = at, used
        return load


def _search(scale: FarmScale, farm: RemoteFarm, scratch: Path, clock: Clock) -> FarmSearch:
    tasks = layer_tasks(TARGET)
    template = _template(next(iter(tasks.values())))

    def place(_: Path | None = None) -> SleepingPlace:
        return SleepingPlace(template.code, template.symbols, scale.compile_seconds)

    places = [place() for _ in range(scale.workers)]
    executor = Workers(places, place, timeout_seconds=_STORM_SECONDS, clock=clock)
    leases = Leases(farm, TARGET, owner="bench", clock=clock)
    try:
        return search(
            tasks,
            executor,
            leases,
            SearchSetup(
                devices=scale.devices,
                workers=scale.workers,
                trials=_ENDLESS,
                seconds=scale.seconds,
            ),
            records=scratch / "scale.sqlite",
            clock=clock,
        )
    finally:
        executor.close()
        leases.close()


def _template(task: Task) -> Artifact:
    """A shared object that devices accept: the default schedule of a task."""
    made = compile_kernel(task.compile_job(task.trace(dict(task.space.default))))
    if not isinstance(made, Artifact):
        raise InfraError(f"the default schedule of {task.name} does not compile: {made.why}")
    return made
