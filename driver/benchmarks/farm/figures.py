"""The figures of a farm, each beside its goal, and what gives way first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from driver.benchmarks.farm.busy import TimeShares, TrialSeconds, path, runs_per_second, shares
from driver.benchmarks.farm.real import RealFigures
from driver.benchmarks.farm.scale import FarmScale, ScaleFigures
from driver.benchmarks.farm.uploading import UploadFigures
from driver.benchmarks.figures import Figure

_MIB = 1 << 20
_TRACKER_NBYTES = 200 * _MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What there is of a resource, as the number of devices that need all of it."""

    resource: str
    devices: float


def real_figures(real: RealFigures) -> Iterator[Figure]:
    """Of the search on real simulators."""
    per_second = real.trials / real.seconds
    processor = 1000 * real.overhead_seconds
    overhead = 1000 * real.path.overhead
    yield Figure(name="trials", value=per_second, unit="/s", goal=20, more_is_better=True)
    yield Figure(name="farm's processor", value=processor, unit="ms/trial", goal=5)
    yield Figure(name="  driver", value=1000 * real.driver_seconds, unit="ms/trial")
    yield Figure(name="  tracker, devices", value=1000 * real.farm_seconds, unit="ms/trial")
    yield Figure(name="  less the kernel", value=-1000 * real.kernel_seconds, unit="ms/trial")
    yield Figure(name="farm's wall time", value=overhead, unit="ms/trial")
    yield from _parts(real.path)
    yield Figure(name="devices with a candidate", value=100 * real.shares.in_hand, unit="%")


def board_figures(found: TimeShares) -> Iterator[Figure]:
    """Of the search on boards."""
    busy = 100 * found.in_hand
    yield Figure(
        name="devices with a candidate", value=busy, unit="%", goal=98, more_is_better=True
    )
    yield Figure(name="devices in a run", value=100 * found.running, unit="%")


def upload_figures(uploads: UploadFigures) -> Iterator[Figure]:
    """Of large blobs on their way to one device; without goals, for the machine's load decides."""
    speed = uploads.nbytes_per_second / _MIB
    driver, device = 1000 * uploads.driver_seconds * _MIB, 1000 * uploads.device_seconds * _MIB
    yield Figure(name="upload", value=speed, unit="MiB/s")
    yield Figure(name="  driver's processor", value=driver, unit="ms/MiB")
    yield Figure(name="  device's processor", value=device, unit="ms/MiB")


def scale_figures(found: ScaleFigures) -> Iterator[Figure]:
    """Of the farm whose kernels sleep."""
    needed, saturated, done = found.needed, found.saturated, found.done
    tracker, busy = found.tracker, shares(done)
    peak = tracker.peak_nbytes / _MIB
    yield Figure(name="registration storm", value=found.storm_seconds, unit="s", goal=10)
    yield Figure(name="leases, as needed", value=needed.per_second, unit="/s")
    yield Figure(name="  median", value=1000 * needed.percentile(50), unit="ms")
    yield Figure(name="  99 of 100", value=1000 * needed.percentile(99), unit="ms", goal=50)
    yield Figure(name="leases, as many as can be", value=saturated.per_second, unit="/s")
    yield Figure(name="  median of those", value=1000 * saturated.percentile(50), unit="ms")
    yield Figure(name="  99 of 100 of those", value=1000 * saturated.percentile(99), unit="ms")
    yield Figure(name="tracker's memory", value=peak, unit="MiB", goal=_TRACKER_NBYTES / _MIB)
    yield Figure(name="tracker, heartbeats", value=100 * tracker.beating.share, unit="% of a core")
    yield Figure(name="tracker, leases", value=100 * tracker.leasing.share, unit="% of a core")
    yield Figure(
        name="tracker, as many as can be", value=100 * tracker.saturating.share, unit="% of a core"
    )
    yield Figure(name="tracker, search", value=100 * tracker.searching.share, unit="% of a core")
    yield Figure(name="devices with a candidate", value=100 * busy.in_hand, unit="%")
    yield Figure(name="devices in a run", value=100 * busy.running, unit="%")
    yield Figure(name="devices in a run, of all time", value=100 * busy.of_all, unit="%")
    yield Figure(name="trials", value=runs_per_second(done), unit="/s")
    yield from _parts(path(done))
    for kind, seconds in sorted(done.processor.threads.items()):
        value = 1000 * seconds / done.candidates
        yield Figure(name=f"driver's processor, {kind}", value=value, unit="ms/candidate")


def limits(scale: FarmScale, found: ScaleFigures) -> list[Limit]:
    """How many devices would take all of each resource, the scarcest first.

    The tracker's core is used by devices as it was in the search, its memory by what they added.
    The driver's (its Python threads share one core) and the compile workers are used by candidates;
    a device takes one for as long as a kernel runs.
    """
    tracker = found.tracker
    used = tracker.peak_nbytes - tracker.start_nbytes
    room = _TRACKER_NBYTES - tracker.start_nbytes
    driver_seconds = found.done.processor.driver / found.done.candidates
    workers = scale.workers * scale.kernel_seconds / scale.compile_seconds
    found_limits = [
        Limit(resource="a core for the tracker", devices=scale.devices / tracker.searching.share),
        Limit(resource="200 MiB for the tracker", devices=scale.devices * room / max(1, used)),
        Limit(resource="a core for the driver", devices=scale.kernel_seconds / driver_seconds),
        Limit(resource=f"{scale.workers} compile workers", devices=workers),
    ]
    return sorted(found_limits, key=lambda limit: limit.devices)


def _parts(mean: TrialSeconds) -> Iterator[Figure]:
    """Where the wall time of a trial goes."""
    parts = {
        "propose": mean.propose,
        "compile": mean.compile,
        "transfer": mean.transfer,
        "run, without the kernel": mean.run - mean.kernel,
        "kernel": mean.kernel,
    }
    for name, seconds in parts.items():
        yield Figure(name=f"  {name}", value=1000 * seconds, unit="ms/trial")
