"""Kernels of plans on the simulator: each compiled with its best predicted schedule, and run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tilefarm.artifact import BuildFailure, CompileJob
from tilefarm.digest import Digest
from tilefarm.errors import TilefarmError
from tilefarm.measurement import Measurement, RunJob
from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.codegen.hosts import this_host
from compile_worker.compiler import compile_kernel
from device_server.runner.runner import Runner
from driver.campaign.measuring import kernel_arguments
from driver.network import KernelCycles, run_workload, sample_inputs
from driver.program.vta.schedules import PREDICTED, Choice, trace_of

_TIMEOUT_SECONDS: Final = 60.0
"""Of a kernel that hangs; the largest take a few."""


@contextmanager
def simulated(target: Target) -> Iterator[KernelCycles]:
    """Runs kernels on the simulator, in the sandbox; none where that cannot be done here."""
    if target.host.triple != this_host().triple:
        yield lambda _workload: None
        return
    try:
        runner = Runner(target=target)
    except TilefarmError:
        yield lambda _workload: None
        return
    with runner:

        def cycles(workload: Workload) -> int | None:
            # files of a kernel that a child has loaded must not be written again
            with tempfile.TemporaryDirectory(prefix="tilefarm-plans-") as folder:
                return _cycles(workload, target, runner, Path(folder))

        yield cycles


def _cycles(workload: Workload, target: Target, runner: Runner, folder: Path) -> int | None:
    """Of one run with the predicted schedule."""

    def place(digest: Digest) -> Path:
        return folder / digest.hex

    inputs = sample_inputs(workload, 0, target.limits.max_shift)
    arguments = kernel_arguments(workload, inputs, run_workload(workload, inputs))
    try:
        trace = trace_of(Choice(trace=PREDICTED), workload, target, seed=0)
        built = compile_kernel(CompileJob(workload=workload, trace=trace, target=target))
        if isinstance(built, BuildFailure):
            return None
        for digest, content in {**arguments.blobs, built.digest: built.code}.items():
            place(digest).write_bytes(content)
        job = RunJob(
            artifact=built.digest,
            entry=built.symbols[0],
            buffers=arguments.buffers,
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        result = runner.run(job, place)
    except TilefarmError:
        return None
    return result.counted.cycles if isinstance(result, Measurement) else None
