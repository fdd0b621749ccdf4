"""A whole network as one program: kernels, their calls, and where every tensor lies.

Buffers of the program: 0 the arena of intermediate tensors, 1 the constants, then the network's
inputs, then its outputs. Every tensor begins at a multiple of 256 bytes, which is a multiple of
every element of the accelerator.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray
from tilefarm.artifact import Artifact, Call, CompileJob, ProgramJob
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Role, RunJob
from tilefarm.names import symbol
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from driver.graph.network import Network

ALIGNMENT: Final = 256
MANIFEST_SCHEMA: Final = 1

_ARENA, _CONSTANTS, _FIRST_INPUT = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """An input or an output of the program: one sample's float32 values in the logical shape.

    `axes` of an input are those of `driver.graph.ir.GraphInput`.
    """

    name: str
    shape: tuple[int, ...]
    axes: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * 4


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkProgram:
    """What is deployed: code, constants, and what a caller must know to run them."""

    name: str
    target: Target
    entry: str
    code: bytes
    constants: bytes
    arena_nbytes: int
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]

    @property
    def digest(self) -> Digest:
        """Identity of code and constants."""
        return Digest.of_json([Digest.of(self.code).hex, Digest.of(self.constants).hex])

    @property
    def batch(self) -> int:
        """Samples that one run takes."""
        return self.inputs[0].shape[0]

    def blobs(self, inputs: Mapping[str, NDArray[Any]]) -> dict[Digest, bytes]:
        """Everything that a device must hold to run these inputs."""
        parts = [self.code, self.constants]
        parts += [inputs[parameter.name].tobytes() for parameter in self.inputs]
        return {Digest.of(part): part for part in parts}

    def run_job(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        seconds_per_sample: float,
        timeline: bool = False,
    ) -> RunJob:
        """Run all samples of float32 `inputs` [samples, ...] and bring the outputs back."""
        samples = len(inputs[self.inputs[0].name]) // self.batch
        specs = [
            BufferSpec(name="arena", role=Role.SCRATCH, nbytes=max(self.arena_nbytes, ALIGNMENT)),
            BufferSpec(
                name="constants",
                role=Role.CONSTANT,
                nbytes=len(self.constants),
                content=Digest.of(self.constants),
            ),
        ]
        for i in self.inputs:
            content = Digest.of(inputs[i.name].tobytes())
            specs.append(BufferSpec(name=i.name, role=Role.INPUT, nbytes=i.nbytes, content=content))
        for o in self.outputs:
            specs.append(BufferSpec(name=o.name, role=Role.OUTPUT, nbytes=o.nbytes, fetch=True))
        return RunJob(
            artifact=Digest.of(self.code),
            entry=self.entry,
            buffers=tuple(specs),
            samples=samples,
            timeout_seconds=max(10.0, seconds_per_sample * samples),
            timeline=timeline,
        )

    def manifest(self, versions: Mapping[str, str]) -> str:
        """The description that lies beside the code, as JSON."""
        document = {
            "schema": MANIFEST_SCHEMA,
            "name": self.name,
            "digest": self.digest.hex,
            "entry": self.entry,
            "code": {"file": CODE_FILE, "sha256": Digest.of(self.code).hex},
            "constants": {
                "file": CONSTANTS_FILE,
                "sha256": Digest.of(self.constants).hex,
                "nbytes": len(self.constants),
            },
            "arena_nbytes": self.arena_nbytes,
            "buffers": list(self._buffer_rows()),
            "inputs": [_parameter_row(p) for p in self.inputs],
            "outputs": [_parameter_row(p) for p in self.outputs],
            "target": json.loads(self.target.to_json()),
            "target_digest": self.target.digest.hex,
            "versions": dict(versions),
        }
        return json.dumps(document, indent=2) + "\n"

    def _buffer_rows(self) -> Iterator[dict[str, object]]:
        yield {"name": "arena", "role": "scratch", "nbytes": self.arena_nbytes}
        yield {"name": "constants", "role": "constant", "nbytes": len(self.constants)}
        for role, parameters in (("input", self.inputs), ("output", self.outputs)):
            for p in parameters:
                yield {"name": p.name, "role": role, "nbytes": p.nbytes}


CODE_FILE: Final = "network.so"
CONSTANTS_FILE: Final = "weights.bin"
MANIFEST_FILE: Final = "manifest.json"


def program_job(
    network: Network, traces: Mapping[Workload, Trace], arena: Mapping[str, int]
) -> tuple[ProgramJob, bytes]:
    """What the compiler needs for the whole network, and the constants' bytes.

    Args:
        network: the kernel calls in order.
        traces: the schedule of every accelerator workload; CPU workloads need none.
        arena: offset of every intermediate tensor.
    """
    constants, places = _constants(network)
    places |= {name: (_ARENA, offset) for name, offset in arena.items()}
    for index, name in enumerate(_buffer_tensors(network), _FIRST_INPUT):
        places[name] = (index, 0)
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
    )
    return job, constants


def network_program(
    network: Network, job: ProgramJob, artifact: Artifact, constants: bytes, arena_nbytes: int
) -> NetworkProgram:
    """The compiled network with what a caller must know."""
    return NetworkProgram(
        name=network.name,
        target=network.target,
        entry=job.entry,
        code=artifact.code,
        constants=constants,
        arena_nbytes=arena_nbytes,
        inputs=tuple(Parameter(name=i.name, shape=i.shape, axes=i.axes) for i in network.inputs),
        outputs=tuple(Parameter(name=o.name, shape=o.shape) for o in network.outputs),
    )


def aligned(nbytes: int) -> int:
    """The next multiple of the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _kernels(network: Network, traces: Mapping[Workload, Trace]) -> dict[Workload, CompileJob]:
    return {
        workload: CompileJob(
            workload=workload,
            trace=traces.get(workload, Trace()),
            target=network.target,
            symbol=symbol(workload.name),
        )
        for workload in dict.fromkeys(step.workload for step in network.steps)
    }


def _constants(network: Network) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """All constants in one run of bytes, equal ones once; (buffer, offset) of each."""
    offsets: dict[bytes, int] = {}
    places: dict[str, tuple[int, int]] = {}
    total = 0
    for name, values in network.constants.items():
        content = values.tobytes()
        if content not in offsets:
            offsets[content] = total
            total += aligned(len(content))
        places[name] = (_CONSTANTS, offsets[content])
    blob = bytearray(max(total, ALIGNMENT))
    for content, offset in offsets.items():
        blob[offset : offset + len(content)] = content
    return bytes(blob), places


def _buffer_tensors(network: Network) -> Sequence[str]:
    """The tensors that have a buffer of their own, in the order of the buffers."""
    return [i.name for i in network.inputs] + [o.tensor for o in network.outputs]


def _parameter_row(p: Parameter) -> dict[str, object]:
    return {"name": p.name, "dtype": "float32", "shape": list(p.shape), "axes": list(p.axes)}
