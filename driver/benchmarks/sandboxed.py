"""Schedules of one workload compiled and run as on a farm: in the sandboxed child, result compared.

What goes wrong is a status, whatever it is; nothing here looks at cycles by cause.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.artifact import BuildFailure, CompileJob
from tilefarm.closing import Closing
from tilefarm.digest import Digest
from tilefarm.measurement import Measurement, RunJob, Status
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel
from device_server.runner.runner import Runner
from driver.campaign.measuring import kernel_arguments
from driver.network import run_workload, sample_inputs

_TIMEOUT_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleResult:
    """How a schedule ended. `constraint` is the limit that the compiler says it exceeds."""

    status: Status
    why: str = ""
    constraint: str = ""

    @property
    def is_right(self) -> bool:
        """Whether it compiled, ran, and gave the reference's bits."""
        return self.status is Status.OK


class Sandbox(Closing):
    """Tries schedules of one workload on operands that stay the same.

    Raises:
        InfraError: library or runner are not built.
    """

    def __init__(self, workload: Workload, target: Target, seed: int) -> None:
        self._workload = workload
        self._target = target
        inputs = sample_inputs(workload, seed, target.limits.max_shift)
        arguments = kernel_arguments(workload, inputs, run_workload(workload, inputs))
        self._buffers = arguments.buffers
        self._runner = Runner(target=target)
        self._folder = tempfile.TemporaryDirectory(prefix="tilefarm-bench-")
        for digest, content in arguments.blobs.items():
            self._place(digest).write_bytes(content)

    def close(self) -> None:
        self._runner.close()
        self._folder.cleanup()

    def verdict(self, trace: Trace) -> ScheduleResult:
        """Compile, run and compare one schedule."""
        built = compile_kernel(
            CompileJob(workload=self._workload, trace=trace, target=self._target)
        )
        if isinstance(built, BuildFailure):
            return ScheduleResult(status=built.status, why=built.why, constraint=built.constraint)
        place = self._place(built.digest)
        place.write_bytes(built.code)
        job = RunJob(
            artifact=built.digest,
            entry=built.symbols[0],
            buffers=self._buffers,
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        result = self._runner.run(job, self._place)
        place.unlink()
        if isinstance(result, Measurement):
            return ScheduleResult(status=Status.OK)
        return ScheduleResult(status=result.status, why=result.why)

    def _place(self, digest: Digest) -> Path:
        return Path(self._folder.name) / digest.hex
