"""How a candidate of one workload is measured: its inputs, the right answer, the run job."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, DeviceClock, Precision, Role, RunJob, Status, Trial
from tilefarm.plural import plural
from tilefarm.space import Point, SearchSpace
from tilefarm.target import BusTiming, Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.plugins.passes import plugins_of
from driver.farm.device_messages import Order
from driver.farm.plausible import RunBounds

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

Choice: TypeAlias = tuple[tuple[str, int], ...]

FIRST_LOOK: Final = Precision(error=0.01, seconds=0.1)
"""How well the clock times a candidate: most are clearly slow, and a few regions show that. Those
that may be the best are looked at more closely in the end."""
CLOSE_LOOK: Final = Precision(error=0.002, seconds=0.2)
"""How well each of these is timed in each round then."""


_MOST_TIMES: Final = 1000
"""So many times what its modules need one after the other, with the memory of the default target,
no kernel takes. It was 1.1 times in simulated Chisel designs and 9.5 in HLS ones, whose rows all
wait for the memory; a board's memory may be busy with other things."""
_COUNTED: Final = (("gemm_uops", "gemm_cycles"), ("out_store_nbytes", "out_nbytes"))
"""Counters that are the same in every call, and the compiler's features that say the same."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelArguments:
    """The parameters of a kernel, with contents and expected results; and contents by digest."""

    buffers: tuple[BufferSpec, ...] = ()
    blobs: Mapping[Digest, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """A workload that is searched.

    Attributes:
        name, digest: those of the workload; every candidate tells them, so they are kept.
        tunables: the names of the space's tunable variables, sorted.
        default: the `choice` that is the space's default.
        least_cycles: that any schedule takes; 0 if nobody knows.
        count: how often the network runs it.
        macs: useful multiply-accumulates of one run.
        trace: the schedule that the tunables of a point say.
        arguments: what its kernels are run with.
    """

    workload: Workload
    count: int
    macs: int
    ideal_cycles: int
    space: SearchSpace
    trace: Callable[[Point], Trace]
    target: Target
    arguments: KernelArguments
    least_cycles: int = 0
    name: str = field(init=False)
    digest: Digest = field(init=False)
    tunables: tuple[str, ...] = field(init=False)
    default: Choice = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.workload.name)
        object.__setattr__(self, "digest", self.workload.digest)
        object.__setattr__(self, "tunables", tuple(sorted(v.name for v in self.space.tunables)))
        object.__setattr__(self, "default", self.choice(dict(self.space.default)))

    @property
    def has_choice(self) -> bool:
        """Whether its space has more than one point."""
        return any(len(variable.domain) != 1 for variable in self.space.tunables)

    def choice(self, point: Point) -> Choice:
        """What tells a point from others: the values of its tunables, sorted by name."""
        return tuple([(name, point[name]) for name in self.tunables])

    def compile_job(self, trace: Trace) -> CompileJob:
        """What a compile worker needs for a candidate."""
        return CompileJob(
            workload=self.workload, trace=trace, target=self.target, plugins=plugins_of(trace)
        )

    def bounds(self, artifact: Artifact) -> RunBounds:
        """What no answer of a device can be beyond that has run the artifact."""
        return kernel_bounds(artifact, self.target, self.least_cycles)

    def believed(self, trial: Trial) -> Trial:
        """A trial out of records, which versions before this one may have written unseen."""
        seconds = trial.wall_time.minimum_seconds if trial.wall_time else math.inf
        least = RunBounds(least_cycles=self.least_cycles, clock_mhz=self.target.board.clock_mhz)
        if not (trial.cycles or math.inf) < least.least_cycles and not (
            seconds < least.least_seconds(least.least_cycles)
        ):
            return trial
        took = f"{seconds:.3g} s" if trial.wall_time else plural(trial.cycles or 0, "cycle")
        return replace(
            trial,
            status=Status.IMPLAUSIBLE,
            cycles=None,
            wall_time=None,
            why=f"device {trial.device} said {took}, and no schedule takes so little",
        )

    def order(
        self,
        artifact: Artifact,
        request_id: str,
        *,
        timeout_seconds: float,
        timeline: bool = False,
        precision: Precision | None = None,
        clock: DeviceClock | None = None,
    ) -> Order:
        """What a device is asked for a candidate: one checked call, and more for a precision."""
        job = RunJob(
            artifact=artifact.digest,
            entry=artifact.symbols[0],
            buffers=self.arguments.buffers,
            precision=precision,
            timeout_seconds=timeout_seconds,
            timeline=timeline,
        )
        return Order(
            number=0,
            job=job,
            blobs={artifact.digest: artifact.code, **self.arguments.blobs},
            request_id=request_id,
            clock=clock,
            bounds=self.bounds(artifact),
        )


def kernel_bounds(artifact: Artifact, target: Target, least_cycles: int) -> RunBounds:
    """What is known of a kernel's run: that of its workload, and what its compiler has counted."""
    counted = dict(artifact.features)
    slow_memory = max(1.0, target.timing.dram_delay_cycles / BusTiming().dram_delay_cycles)
    return RunBounds(
        least_cycles=least_cycles,
        most_cycles=round(_MOST_TIMES * slow_memory * counted.get("serial_cycles", 0.0)),
        clock_mhz=target.board.clock_mhz,
        counts=tuple(
            (counter, round(counted[feature]))
            for counter, feature in _COUNTED
            if feature in counted
        ),
    )


def kernel_arguments(workload: Workload, inputs: Arrays, outputs: Arrays) -> KernelArguments:
    """Those of a kernel with given inputs that must give these outputs."""
    blobs: dict[Digest, bytes] = {}
    specs: list[BufferSpec] = []
    for spec in workload.inputs:
        content = inputs[spec.name].tobytes()
        digest = Digest.of(content)
        blobs[digest] = content
        specs.append(
            BufferSpec(name=spec.name, role=Role.CONSTANT, nbytes=spec.nbytes, content=digest)
        )
    for spec in workload.outputs:
        expected = Digest.of(outputs[spec.name].tobytes())
        specs.append(
            BufferSpec(name=spec.name, role=Role.OUTPUT, nbytes=spec.nbytes, expected=expected)
        )
    return KernelArguments(tuple(specs), blobs)
