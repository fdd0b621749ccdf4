"""A whole network as one program: kernels, their calls, and where every tensor lies.

Buffers of the program: 0 the arena of intermediate tensors, 1 the constants, then the network's
inputs, then its outputs. Every tensor begins at a multiple of the largest element of the
machine's memories, whose addresses count elements, and of 256 bytes; a view of another begins at a
multiple of its own elements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.artifact import Artifact, Call, CompileJob, ProgramJob
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Precision, Role, RunJob
from tilefarm.names import symbol
from tilefarm.plural import plural
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.plugins.passes import default_trace, plugins_of
from driver.farm.plausible import RunBounds
from driver.network import Grid, Network, NetworkStep
from driver.program.user_passes import ProgramPass, passes_in

_LEAST_ALIGNMENT: Final = 256

_ARENA, _CONSTANTS, _FIRST_INPUT = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """An input or an output of the program: one sample's float32 values in the logical shape.

    `axes` of an input are those of `driver.network.graph.ir.GraphInput`; `scale` is the value of
    one step of the integers that it becomes or was, None where there are none. `grid` is there
    where the model itself takes or gives integers; the program has the reals they stand for.
    """

    name: str
    shape: tuple[int, ...]
    axes: tuple[int, ...] = ()
    scale: float | None = None
    grid: Grid | None = None

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCall:
    """One kernel call of the program, or a stage of several, and the entry that makes it alone.

    Attributes:
        layer: its name in the network.
        kernel: the workload that it computes.
        predicted_cycles: what its schedule says of itself; None for work of the processor, or where
            nothing was predicted.
        ideal_cycles: that its multiplications take at least; 0 where nobody knows.
        macs: useful multiply-accumulates of it; 0 where nobody knows.
    """

    entry: str
    layer: str
    kernel: str
    predicted_cycles: int | None = None
    ideal_cycles: int = 0
    macs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkProgram:
    """What is deployed: code, constants, and what a caller must know to run them.

    `calls` are in order; a program of an older version has none, and names no `passes`, which are
    those of users that its kernels were lowered with.
    The digests of code and constants, which may be large, are made once.
    """

    name: str
    target: Target
    entry: str
    code: bytes
    constants: bytes
    arena_nbytes: int
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    calls: tuple[LayerCall, ...] = ()
    passes: tuple[ProgramPass, ...] = ()
    code_digest: Digest = field(init=False)
    constants_digest: Digest = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "code_digest", Digest.of(self.code))
        object.__setattr__(self, "constants_digest", Digest.of(self.constants))

    @property
    def digest(self) -> Digest:
        """Identity of code and constants."""
        return Digest.of_json([self.code_digest.hex, self.constants_digest.hex])

    @property
    def batch(self) -> int:
        """Samples that one run takes."""
        return self.inputs[0].shape[0]

    @property
    def bounds(self) -> RunBounds:
        """What no run of a batch can be beyond.

        Layers overlap, so that the busiest module of each does not add up; multiplications do.
        """
        ideal = tuple(call.ideal_cycles for call in self.calls)
        return RunBounds(
            least_cycles=sum(ideal),
            least_profile_cycles=ideal,
            clock_mhz=self.target.board.clock_mhz,
        )

    @property
    def scratch_nbytes(self) -> int:
        """Size of the arena's buffer, which is never empty."""
        return max(self.arena_nbytes, alignment(self.target))

    def blobs(self, inputs: Mapping[str, NDArray[Any]]) -> dict[Digest, bytes]:
        """Everything that a device must hold to run these inputs."""
        own = {self.code_digest: self.code, self.constants_digest: self.constants}
        given = (inputs[parameter.name].tobytes() for parameter in self.inputs)
        return own | {Digest.of(part): part for part in given}

    def run_job(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        timeout_seconds: float,
        timeline: bool = False,
        precision: Precision | None = None,
    ) -> RunJob:
        """Run all samples of float32 `inputs` [samples, ...] and bring the outputs back."""
        samples = len(inputs[self.inputs[0].name]) // self.batch
        specs = [
            BufferSpec(name="arena", role=Role.SCRATCH, nbytes=self.scratch_nbytes),
            BufferSpec(
                name="constants",
                role=Role.CONSTANT,
                nbytes=len(self.constants),
                content=self.constants_digest,
            ),
        ]
        for i in self.inputs:
            content = Digest.of(inputs[i.name].tobytes())
            specs.append(BufferSpec(name=i.name, role=Role.INPUT, nbytes=i.nbytes, content=content))
        for o in self.outputs:
            specs.append(BufferSpec(name=o.name, role=Role.OUTPUT, nbytes=o.nbytes, fetch=True))
        return RunJob(
            artifact=self.code_digest,
            entry=self.entry,
            buffers=tuple(specs),
            samples=samples,
            timeout_seconds=timeout_seconds,
            timeline=timeline,
            precision=precision,
        )


def program_job(
    network: Network,
    traces: Mapping[Workload, Trace],
    arena: Mapping[str, int],
    stages: tuple[int, ...] = (),
) -> tuple[ProgramJob, bytes]:
    """What the compiler needs for the whole network, and the constants' bytes.

    Args:
        network: the kernel calls in order.
        traces: the schedule of every accelerator workload; CPU workloads need none.
        arena: offset of every intermediate tensor.
        stages: how many calls have an entry together; one each without.
    """
    constants, places = _constants(network)
    places |= {name: (_ARENA, offset) for name, offset in arena.items()}
    for index, name in enumerate(_buffer_tensors(network), _FIRST_INPUT):
        places[name] = (index, 0)
    for view in network.tensors_of("view"):
        root, offset = network.place_of(view.name)
        buffer, begin = places[root]
        places[view.name] = (buffer, begin + offset)
    kernels = _kernels(network, traces)
    calls = tuple(
        Call(
            kernel=kernels[step.workload].symbol,
            arguments=tuple(places[name] for name in (*step.inputs, *step.outputs)),
        )
        for step in network.steps
    )
    job = ProgramJob(
        kernels=tuple(kernels.values()),
        calls=calls,
        buffers=_FIRST_INPUT + len(network.inputs) + len(network.outputs),
        target=network.target,
        stages=stages,
    )
    return job, constants


def network_program(
    network: Network,
    job: ProgramJob,
    artifact: Artifact,
    constants: bytes,
    arena_nbytes: int,
    predicted_cycles: Mapping[Workload, int] = MappingProxyType({}),
    ideal_cycles: Mapping[Workload, int] = MappingProxyType({}),
) -> NetworkProgram:
    """The compiled network with what a caller must know.

    Args:
        predicted_cycles: of the schedules, where they are known.
        ideal_cycles: of the workloads, likewise.
    """
    return NetworkProgram(
        name=network.name,
        target=network.target,
        entry=job.entry,
        code=artifact.code,
        constants=constants,
        arena_nbytes=arena_nbytes,
        inputs=tuple(
            Parameter(
                name=i.name,
                shape=i.shape,
                axes=i.axes,
                scale=_input_scale(network, i.name),
                grid=i.grid,
            )
            for i in network.inputs
        ),
        outputs=tuple(
            Parameter(
                name=o.name, shape=o.shape, scale=_output_scale(network, o.tensor), grid=o.grid
            )
            for o in network.outputs
        ),
        calls=tuple(
            _layer_call(entry, network.steps[span], predicted_cycles, ideal_cycles)
            for entry, span in zip(job.call_entries, job.call_spans, strict=True)
        ),
        passes=passes_in(job),
    )


def _layer_call(
    entry: str,
    steps: Sequence[NetworkStep],
    predicted_cycles: Mapping[Workload, int],
    ideal_cycles: Mapping[Workload, int],
) -> LayerCall:
    """The entry of a step, or of a stage of several."""
    first, last = steps[0], steps[-1]
    predicted = [predicted_cycles.get(step.workload) for step in steps]
    known = [cycles for cycles in predicted if cycles is not None]
    return LayerCall(
        entry=entry,
        layer=first.name if first is last else f"{first.name} to {last.name}",
        kernel=first.workload.name if first is last else plural(len(steps), "kernel"),
        predicted_cycles=sum(known) if len(known) == len(steps) else None,
        ideal_cycles=sum(ideal_cycles.get(step.workload, 0) for step in steps),
        macs=sum(step.macs for step in steps),
    )


def _input_scale(network: Network, tensor: str) -> float | None:
    readers = [dict(step.workload.attrs) for step in network.steps if tensor in step.inputs]
    inverse = next((attrs["inv_scale"] for attrs in readers if "inv_scale" in attrs), None)
    return 1 / inverse if isinstance(inverse, float) else None


def _output_scale(network: Network, tensor: str) -> float | None:
    writers = [dict(step.workload.attrs) for step in network.steps if tensor in step.outputs]
    scale = next((attrs["scale"] for attrs in writers if "scale" in attrs), None)
    return scale if isinstance(scale, float) else None


def alignment(target: Target) -> int:
    """Bytes at whose multiples tensors begin; sizes of elements are powers of two."""
    return max(_LEAST_ALIGNMENT, *(memory.alignment for memory in target.model.memories), 1)


def _kernels(network: Network, traces: Mapping[Workload, Trace]) -> dict[Workload, CompileJob]:
    chosen = {step.workload: traces.get(step.workload, default_trace()) for step in network.steps}
    return {
        workload: CompileJob(
            workload=workload,
            trace=trace,
            target=network.target,
            symbol=symbol(workload.name),
            plugins=plugins_of(trace),
        )
        for workload, trace in chosen.items()
    }


def _constants(network: Network) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """All constants in one run of bytes, equal ones once; (buffer, offset) of each."""
    offsets: dict[Digest, int] = {}
    places: dict[str, tuple[int, int]] = {}
    begin, total = alignment(network.target), 0
    pieces: list[bytes | memoryview] = []
    for name, values in network.constants.items():
        content = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
        digest = Digest.of(content)
        if digest not in offsets:
            offsets[digest] = total
            padding = -len(content) % begin
            pieces += [content, bytes(padding)]
            total += len(content) + padding
        places[name] = (_CONSTANTS, offsets[digest])
    return b"".join(pieces) if total else bytes(begin), places


def _buffer_tensors(network: Network) -> Sequence[str]:
    """The tensors that have a buffer of their own, in the order of the buffers."""
    return [i.name for i in network.inputs] + [o.tensor for o in network.outputs]
