"""Stand-ins for what a farm does not cost: kernels and compiles that only take their time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilefarm.artifact import Artifact
from tilefarm.digest import Digest
from tilefarm.measurement import Counters, Measurement, RunFailure, RunJob, Status

from device_server.device.known_kernel import ENTRY
from device_server.tenancy import OWN, Tenancy
from driver.farm.compiling.worker import WorkerLost

if TYPE_CHECKING:
    from compile_worker.worker import Job, Result

_SHARES: Final = 1 << 32
_KNOWN_SECONDS: Final = 0.001


def kernel_seconds(artifact: Digest, mean_seconds: float) -> float:
    """How long a kernel takes: between half and one and a half of the mean, evenly, by its code."""
    share = int(artifact.hex[:8], 16) / _SHARES
    return mean_seconds * (0.5 + share)


class SleepingRunner:
    """A device's runner whose kernels sleep; nothing is loaded. The known kernel is a short one.

    Args:
        device: its name.
        mean_seconds: of a kernel; see `kernel_seconds`.
    """

    sandbox = "none: nothing is loaded"
    runtime_id = "asleep"

    def __init__(self, device: str, mean_seconds: float) -> None:
        self._device = device
        self._mean_seconds = mean_seconds
        self._closed = threading.Event()

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure:
        blob(job.artifact)
        is_known = job.entry == ENTRY
        seconds = _KNOWN_SECONDS if is_known else kernel_seconds(job.artifact, self._mean_seconds)
        if self._closed.wait(seconds) or tenancy.over:
            return RunFailure(
                artifact=job.artifact,
                status=Status.CANCELLED,
                why=tenancy.over or "the device ends",
                device=self._device,
            )
        return Measurement(
            artifact=job.artifact,
            device=self._device,
            counters=Counters(cycles=round(1e6 * seconds)),
            seconds=(seconds,),
            run_seconds=seconds,
        )

    def close(self) -> None:
        self._closed.set()


class SleepingPlace:
    """A compile worker that sleeps, and gives a copy of one shared object that no other job has.

    Args:
        code: a shared object that devices accept.
        symbols: what it exports.
        seconds: for each job.
    """

    def __init__(self, code: bytes, symbols: tuple[str, ...], seconds: float) -> None:
        self._code = code
        self._symbols = symbols
        self._seconds = seconds
        self._killed = threading.Event()

    def prepare(self) -> None:
        """Nothing: there is no process."""

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:  # noqa: ARG002
        return [self._compiled(job) for job in jobs]

    def kill(self) -> None:
        self._killed.set()

    def close(self) -> None:
        """Nothing: there is no process."""

    def _compiled(self, job: Job) -> Artifact:
        if self._killed.wait(self._seconds):
            raise WorkerLost("killed")
        digest = job.digest
        # What follows an ELF file's last section is nobody's: it only changes the digest.
        return Artifact(
            job=digest,
            code=self._code + digest.hex.encode(),
            symbols=self._symbols,
            build_seconds=self._seconds,
        )
