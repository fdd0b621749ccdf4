"""Every step of a network on a device against the integer reference, bit for bit.

Each step gets the reference's own operands, so one that is wrong cannot hide behind another: if
every step gives the reference's bits, so does the whole program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.artifact import Artifact, BuildFailure, CompileJob
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel
from compile_worker.plugins.passes import default_trace, plugins_of
from driver.commands.validation.step_executor import SandboxExecutor, StepExecutor, StepJob
from driver.network import Network, NetworkStep, StepRun, step_runs

Array: TypeAlias = NDArray[Any]
Compile: TypeAlias = Callable[[CompileJob], Artifact | BuildFailure]

_SECONDS_PER_SAMPLE: Final = 120.0
_MOST_NBYTES: Final = 1 << 28
_BLOCKED = ("n", "c-block", "h", "w", "row", "lane")
_BLOCKED_FLAT = ("n", "c-block", "row", "lane")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first element of a step's result that is not the reference's.

    Attributes:
        sample: number of the run.
        place: coordinates by axis; those of the tile for what lies in blocks.
        elements: how many differ in that sample, of `among`.
    """

    sample: int
    place: tuple[tuple[str, int], ...]
    expected: float
    got: float
    elements: int
    among: int

    def __str__(self) -> str:
        where = ", ".join(f"{axis} {index}" for axis, index in self.place)
        return (
            f"sample {self.sample}, {where}: expected {self.expected:g}, got {self.got:g};"
            f" {self.elements} of {self.among} elements differ"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCheck:
    """What became of one step: right, wrong at a place, or not run (and why)."""

    name: str
    workload: str
    operator: str
    place: str
    result: str
    cycles: int = 0
    offence: Difference | None = None
    failure: str = ""

    @property
    def is_right(self) -> bool:
        return self.offence is None and not self.failure


def checked_steps(
    network: Network,
    traces: Mapping[Workload, Trace],
    inputs: Mapping[str, Array],
    *,
    executor: StepExecutor | None = None,
    compile_with: Compile = compile_kernel,
    most_nbytes: int = _MOST_NBYTES,
) -> Iterator[StepCheck]:
    """Every step of the network in order, run on the reference's operands.

    Args:
        traces: schedules of the accelerator's workloads.
        inputs: float32 [samples, ...] in whole batches.
        executor: where steps are run; None: in the sandbox.
        compile_with: what makes kernels.
        most_nbytes: operands and results of the reference that are held at once; more samples than
            fit are checked a part at a time.
    """
    executor = executor or SandboxExecutor(network.target)
    kernels = _Kernels(network, traces, compile_with)
    found: dict[str, StepCheck] = {}
    parts = _parts(network, inputs, most_nbytes)
    for part in parts:
        runs = list(zip(network.steps, _by_step(network, inputs, part), strict=True))
        jobs = (
            _step_job(step, made, samples, network)
            for step, samples in runs
            if isinstance(made := kernels.of(step), Artifact) and _is_right(found, step)
        )
        with closing(executor.steps(jobs)) as results:
            for step, samples in runs:
                made = kernels.of(step)
                if isinstance(made, BuildFailure):
                    why = f"does not compile: {made.status.value} in {made.stage}: {made.why}"
                    found[step.name] = _step_check(step, failure=why)
                elif _is_right(found, step):
                    found[step.name] = _compared(step, next(results), samples, part.start)
                if part is parts[-1]:
                    yield found[step.name]


@dataclass(slots=True)
class _Kernels:
    """Kernels of steps, each workload compiled once, when the first one asks."""

    network: Network
    traces: Mapping[Workload, Trace]
    compile_with: Compile
    made: dict[Workload, Artifact | BuildFailure] = field(default_factory=dict)

    def of(self, step: NetworkStep) -> Artifact | BuildFailure:
        if step.workload not in self.made:
            trace = self.traces.get(step.workload, default_trace())
            job = CompileJob(
                workload=step.workload,
                trace=trace,
                target=self.network.target,
                plugins=plugins_of(trace),
            )
            self.made[step.workload] = self.compile_with(job)
        return self.made[step.workload]


def _is_right(found: Mapping[str, StepCheck], step: NetworkStep) -> bool:
    """Whether nothing was wrong with it until now."""
    return step.name not in found or found[step.name].is_right


def _parts(network: Network, inputs: Mapping[str, Array], most_nbytes: int) -> list[range]:
    """The runs of the network, as many at once as may be held; at least one."""
    runs = len(next(iter(inputs.values()))) // network.batch
    nbytes = sum(
        network.tensors[name].nbytes
        for step in network.steps
        for name in (*step.inputs, *step.outputs)
        if network.tensors[name].kind != "constant"
    )
    at_once = max(1, most_nbytes // max(1, nbytes))
    return [range(first, min(runs, first + at_once)) for first in range(0, runs, at_once)]


def _by_step(network: Network, inputs: Mapping[str, Array], runs: range) -> list[list[StepRun]]:
    """What the reference computes in each step, for these runs of the network."""
    found: list[list[StepRun]] = [[] for _ in network.steps]
    for run in runs:
        rows = slice(run * network.batch, (run + 1) * network.batch)
        part = {name: values[rows] for name, values in inputs.items()}
        for at, each in enumerate(step_runs(network, part)):
            found[at].append(each)
    return found


def _step_job(
    step: NetworkStep, artifact: Artifact, samples: Sequence[StepRun], network: Network
) -> StepJob:
    """Constants once, what is computed for every sample."""
    buffers, blobs = [], {Digest.of(artifact.code): artifact.code}
    for spec, name in zip(step.workload.inputs, step.inputs, strict=True):
        fixed = network.tensors[name].kind == "constant"
        seen = samples[:1] if fixed else samples
        content = b"".join(each.inputs[spec.name].tobytes() for each in seen)
        digest = Digest.of(content)
        role = Role.CONSTANT if fixed else Role.INPUT
        buffers.append(BufferSpec(name=spec.name, role=role, nbytes=spec.nbytes, content=digest))
        blobs[digest] = content
    for spec in step.workload.outputs:
        buffers.append(BufferSpec(name=spec.name, role=Role.OUTPUT, nbytes=spec.nbytes, fetch=True))
    job = RunJob(
        artifact=Digest.of(artifact.code),
        entry=artifact.symbols[0],
        buffers=tuple(buffers),
        samples=len(samples),
        timeout_seconds=_SECONDS_PER_SAMPLE * len(samples),
    )
    return StepJob(job=job, blobs=blobs)


def _compared(
    step: NetworkStep, done: Measurement | RunFailure, samples: Sequence[StepRun], first: int
) -> StepCheck:
    """What a step made of samples, of which the first has the number `first`."""
    if isinstance(done, RunFailure):
        return _step_check(step, failure=f"does not run: {done.status.value}: {done.why}")
    cycles = done.sample_cycles[-1] if done.sample_cycles else 0
    return _step_check(
        step, cycles=cycles, offence=_first_offence(step.workload, done, samples, first)
    )


def _step_check(
    step: NetworkStep, *, cycles: int = 0, offence: Difference | None = None, failure: str = ""
) -> StepCheck:
    return StepCheck(
        name=step.name,
        workload=step.workload.name,
        operator=step.workload.operator,
        place=step.place,
        result=step.outputs[0],
        cycles=cycles,
        offence=offence,
        failure=failure,
    )


def _first_offence(
    workload: Workload, done: Measurement, samples: Sequence[StepRun], first: int
) -> Difference | None:
    outputs = dict(done.outputs)
    for spec in workload.outputs:
        content = np.frombuffer(outputs[spec.name], spec.dtype.value)
        for number, (got, each) in enumerate(
            zip(content.reshape(len(samples), *spec.shape), samples, strict=True), first
        ):
            offence = first_difference(each.outputs[spec.name], got, number)
            if offence is not None:
                return offence
    return None


def first_difference(expected: Array, got: Array, sample: int = 0) -> Difference | None:
    """The first element, in memory's order, whose bits differ; None where all are equal."""
    bits = f"u{expected.dtype.itemsize}"
    wrong = np.ascontiguousarray(expected).view(bits) != np.ascontiguousarray(got).view(bits)
    if not wrong.any():
        return None
    at = np.unravel_index(int(wrong.argmax()), wrong.shape)
    return Difference(
        sample=sample,
        place=tuple(zip(_axes(expected), map(int, at), strict=True)),
        expected=float(expected[at]),
        got=float(got[at]),
        elements=int(wrong.sum()),
        among=int(wrong.size),
    )


def _axes(array: Array) -> tuple[str, ...]:
    """Names of the axes: those of blocks for int8, numbers for the user's float32."""
    named = {6: _BLOCKED, 4: _BLOCKED_FLAT}.get(array.ndim)
    if array.dtype == np.int8 and named:
        return named
    return tuple(f"axis {axis}" for axis in range(array.ndim))
