"""What executes jobs on a device, as the executor sees it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tilefarm.digest import Digest
from tilefarm.measurement import Measurement, RunFailure, RunJob

from device_server.tenancy import OWN, Tenancy


class KernelRunner(Protocol):
    """What executes a job on the device, in whatever child it likes.

    `run` gets verified artifacts only, and returns how the job ended. It blocks until then, or
    until the tenancy ends: then the run is cancelled. No process serves two tenancies. It raises
    only when the runner itself is broken.
    """

    @property
    def sandbox(self) -> str: ...

    @property
    def runtime_id(self) -> str: ...

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure: ...

    def close(self) -> None: ...
