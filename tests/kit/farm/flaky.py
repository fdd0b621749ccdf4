"""A runner that is right until a test says otherwise: one bit wrong, or slower."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kit.farm.in_process import FakeRunner
from tilefarm.digest import Digest
from tilefarm.measurement import Measurement, RunFailure, RunJob, Status

from device_server.device.known_kernel import ENTRY, KnownKernel
from device_server.tenancy import OWN, Tenancy


@dataclass(slots=True)
class FlakyRunner(FakeRunner):
    """Gives the known kernel's own counters, and cycles times `pace`.

    Attributes:
        kernel: what it is asked for when it is checked.
        flips_after: runs of other kernels after which one bit of every answer is wrong.
        pace: of its clock; 1.0 is right.
        full: whether the disk has no room for a run of the known kernel.
        hangs: whether the known kernel does not come back, until the runner is closed.
        checks: how often the known kernel ran.
        cool_after: checks after which its pace is right again; never if 0.
    """

    kernel: KnownKernel | None = None
    flips_after: int = 1 << 30
    pace: float = 1.0
    full: bool = False
    hangs: bool = False
    checks: int = 0
    cool_after: int = 0

    @property
    def flips(self) -> bool:
        """Whether its answers are wrong by now."""
        return len(self.seen) > self.flips_after

    def known(self, job: RunJob) -> Measurement | RunFailure:
        assert self.kernel is not None
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.hangs:
            self.release.wait(30.0)
        self.checks += 1
        if self.checks == self.cool_after:
            self.pace = 1.0
        if self.flips:
            return RunFailure(
                artifact=job.artifact, status=Status.WRONG_RESULT, why="1 of 2048 bytes differ"
            )
        cycles = round((self.kernel.cycles or 1000) * self.pace)
        return Measurement(
            artifact=job.artifact,
            device="fake",
            counters=self.kernel.counters.but(cycles=cycles),
            sample_cycles=(cycles,) * job.samples,
        )

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure:
        outcome = FakeRunner.run(self, job, blob, tenancy)
        if isinstance(outcome, Measurement) and job.entry != ENTRY and self.flips:
            flipped = tuple(
                (name, bytes([content[0] ^ 1]) + content[1:]) for name, content in outcome.outputs
            )
            return replace(outcome, outputs=flipped)
        return outcome
