"""A network for several samples in flight, as one program: a copy of its steps for each slot.

Kernels and constants are there once; a slot has inputs, outputs and offsets in the arena of its
own. The entry of the program runs all slots, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tilefarm.artifact import BuildFailure
from tilefarm.errors import InfraError
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_program
from driver.network import Network, NetworkTensor
from driver.program.model import NetworkProgram, network_program, program_job
from driver.program.stages import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsProgram:
    """A program and, for each slot, the entry of each stage by its name.

    Inputs and outputs of `program` are those of slot 0, then those of slot 1, and so on.
    """

    program: NetworkProgram
    entries: tuple[Mapping[str, str], ...]

    @property
    def slots(self) -> int:
        return len(self.entries)


def slots_program(
    network: Network,
    traces: Mapping[Workload, Trace],
    stages: Sequence[Stage],
    offsets: Sequence[Mapping[str, int]],
    arena_nbytes: int,
) -> SlotsProgram:
    """The program of a network with an entry for each stage of each slot.

    Args:
        network: with its steps in the order in which they run.
        traces: the schedule of every workload that is searched.
        stages: of the network.
        offsets: in each slot, of what stages leave for others and of their blocks.
        arena_nbytes: what all of that takes.

    Raises:
        InfraError: it does not compile.
    """
    several = in_slots(network, len(offsets))
    arena = {
        in_slot(name, slot): offset
        for slot, mine in enumerate(offsets)
        for name, offset in tensor_offsets(stages, mine).items()
    }
    sizes = tuple(len(stage.steps) for stage in stages) * len(offsets)
    unused = {t.name: 0 for t in several.tensors_of("intermediate") if t.name not in arena}
    job, constants = program_job(several, traces, unused | arena, sizes)
    artifact = compile_program(job)
    if isinstance(artifact, BuildFailure):
        raise InfraError(f"the program does not compile: {artifact.stage}: {artifact.why}")
    program = network_program(several, job, artifact, constants, arena_nbytes)
    entries = iter(program.calls)
    return SlotsProgram(
        program=program,
        entries=tuple({s.name: next(entries).entry for s in stages} for _ in offsets),
    )


def tensor_offsets(stages: Sequence[Stage], offsets: Mapping[str, int]) -> dict[str, int]:
    """Of every whole tensor, where blocks of stages have these offsets, and so has what lies
    between stages.
    """
    blocks = {stage.block for stage in stages}
    outer = {name: offset for name, offset in offsets.items() if name not in blocks}
    inner = {
        name: offsets[stage.block] + offset
        for stage in stages
        for name, offset in stage.inner.items()
    }
    return outer | inner


def in_slots(network: Network, slots: int) -> Network:
    """So many copies of a network's steps, with tensors of their own but for constants."""
    numbers = range(slots)
    kept = {name for name, tensor in network.tensors.items() if tensor.kind == "constant"}

    def name_in(name: str, slot: int) -> str:
        return name if name in kept else in_slot(name, slot)

    def tensor_in(tensor: NetworkTensor, slot: int) -> NetworkTensor:
        parent = name_in(tensor.parent, slot) if tensor.parent else ""
        return replace(tensor, name=name_in(tensor.name, slot), parent=parent)

    tensors = [tensor_in(t, slot) for slot in numbers for t in network.tensors.values()]
    return replace(
        network,
        inputs=tuple(replace(i, name=in_slot(i.name, n)) for n in numbers for i in network.inputs),
        outputs=tuple(
            replace(o, name=in_slot(o.name, n), tensor=name_in(o.tensor, n))
            for n in numbers
            for o in network.outputs
        ),
        steps=tuple(
            replace(
                step,
                name=in_slot(step.name, slot),
                inputs=tuple(name_in(name, slot) for name in step.inputs),
                outputs=tuple(name_in(name, slot) for name in step.outputs),
            )
            for slot in numbers
            for step in network.steps
        ),
        tensors={tensor.name: tensor for tensor in tensors},
    )


def in_slot(name: str, slot: int) -> str:
    """The name of a tensor or a step of one slot."""
    return f"{name}@{slot}"
