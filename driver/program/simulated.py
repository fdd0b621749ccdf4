"""A network as one compiled program, run in the sandbox here: on the simulator or the processor."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.artifact import BuildFailure
from tilefarm.digest import Digest
from tilefarm.errors import InfraError
from tilefarm.measurement import Counters, Measurement, Precision, RunJob
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_program
from device_server.runner.runner import Runner
from driver.network import Network, QuantGraph, run_integer
from driver.program.arena import plan_arena
from driver.program.evaluate import ProgramRun
from driver.program.model import NetworkProgram, network_program, program_job
from driver.program.profile import (
    host_calls,
    host_layers_job,
    layers_job,
    profile_of,
    with_host_layers,
)
from driver.report.profile import Profile

_SECONDS_PER_BATCH: Final = 120.0
"""Of the largest network that anybody would simulate, on a machine that has more to do."""


_PRECISION: Final = Precision(error=0.005, seconds=2.0)
"""Of a program that is timed by the clock: some thousand calls of a small one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRun:
    """One run of the program: what the accelerator did, and elements that are not the reference's.

    Attributes:
        arena_nbytes: memory of intermediate tensors.
    """

    counters: Counters
    differing: int
    arena_nbytes: int


def whole_run(
    network: Network,
    quantized: QuantGraph,
    traces: Mapping[Workload, Trace],
    inputs: Mapping[str, NDArray[Any]],
) -> WholeRun:
    """Compile the network with these schedules and run one batch of `inputs`.

    Raises:
        InfraError: the program does not compile, or does not run.
    """
    program = assembled(network, traces)
    batch = {name: np.ascontiguousarray(x[: program.batch]) for name, x in inputs.items()}
    done = on_simulator(program, batch)
    wanted = run_integer(quantized, batch)
    differing = sum(
        int((np.frombuffer(content, np.float32) != wanted[name].reshape(-1)).sum())
        for name, content in done.outputs
    )
    return WholeRun(counters=done.counted, differing=differing, arena_nbytes=program.arena_nbytes)


def assembled(network: Network, traces: Mapping[Workload, Trace]) -> NetworkProgram:
    """The network compiled with these schedules.

    Raises:
        InfraError: it does not compile.
    """
    arena = plan_arena(network, {})
    network = arena.network
    job, constants = program_job(network, traces, arena.offsets)
    artifact = compile_program(job)
    if isinstance(artifact, BuildFailure):
        raise InfraError(f"the program does not compile: {artifact.stage}: {artifact.why}")
    return network_program(network, job, artifact, constants, arena.nbytes)


def answers_of(program: NetworkProgram, inputs: Mapping[str, NDArray[Any]]) -> ProgramRun:
    """Outputs by name for float32 inputs [samples, ...] in whole batches.

    Raises:
        InfraError: the program does not run.
    """
    done = on_simulator(program, inputs)
    shapes = {output.name: output.shape[1:] for output in program.outputs}
    outputs = {
        name: np.frombuffer(content, np.float32).reshape(-1, *shapes[name])
        for name, content in done.outputs
    }
    return ProgramRun(outputs=outputs, cycles=done.sample_cycles)


def seconds_of(program: NetworkProgram, inputs: Mapping[str, NDArray[Any]]) -> float:
    """The median of a program for a processor, by the clock, for the first batch of `inputs`.

    Raises:
        InfraError: it does not run, or was disturbed all the time.
    """
    batch = {name: np.ascontiguousarray(x[: program.batch]) for name, x in inputs.items()}
    time = on_simulator(program, batch, _PRECISION).wall_time
    if time is None:
        raise InfraError(f"{program.name} was run, and not timed")
    return time.median_seconds


def profile_here(program: NetworkProgram, inputs: Mapping[str, NDArray[Any]]) -> Profile:
    """What the layers of a program for an accelerator take for the first batch: cycles of the
    simulator, and times of this processor.

    Raises:
        InfraError: it does not run.
    """
    batch = {name: np.ascontiguousarray(x[: program.batch]) for name, x in inputs.items()}
    job = layers_job(program, batch, timeout_seconds=_SECONDS_PER_BATCH)
    profile = profile_of(program, _ran(program, batch, job))
    calls = host_calls(program, profile)
    if not calls:
        return profile
    job = host_layers_job(program, batch, calls, timeout_seconds=_SECONDS_PER_BATCH)
    return with_host_layers(profile, _ran(program, batch, job))


def on_simulator(
    program: NetworkProgram,
    batch: Mapping[str, NDArray[Any]],
    precision: Precision | None = None,
) -> Measurement:
    """One run in the sandbox for every batch of float32 `batch` [samples, ...], in whole batches.

    A program for a processor runs there on this one. With a `precision` it is timed by the clock.

    Raises:
        InfraError: it does not run.
    """
    runs = len(next(iter(batch.values()))) // program.batch
    job = program.run_job(batch, timeout_seconds=_SECONDS_PER_BATCH * runs, precision=precision)
    return _ran(program, batch, job)


def _ran(program: NetworkProgram, batch: Mapping[str, NDArray[Any]], job: RunJob) -> Measurement:
    with tempfile.TemporaryDirectory(prefix="tilefarm-program-") as folder:

        def place(digest: Digest) -> Path:
            return Path(folder) / digest.hex

        for digest, content in program.blobs(batch).items():
            place(digest).write_bytes(content)
        with Runner(target=program.target) as runner:
            result = runner.run(job, place)
    if not isinstance(result, Measurement):
        raise InfraError(f"the program failed: {result.status.value}: {result.why}")
    return result
