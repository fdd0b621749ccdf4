"""A machine as data: engines that work side by side, and the memories between them.

    engines   what runs by itself: a kind of unit, how many of it, and the queues that feed one
    memories  what is on the chip: how much, in which steps it is addressed, who reads and writes it
    lanes     in which blocks tensors lie in the memory that all share
    counters  names of what it counts of a call, for `tilefarm.measurement.Counters`

What all engines and the host share is "dram", and is not listed. A processor is a machine of the
kind CPU: its engines are cores, its memories are caches, which nobody addresses. What the
instructions are, and how a kernel becomes some of them, is the compiler's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from tilefarm.dtype import DType
from tilefarm.plural import plural

CPU: Final = "cpu"
"""The kind of machine that is its own host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Tensors lie in tiles of so many samples and channels, see `driver.network.integer.blocks`."""

    batch: int = 1
    block: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Units of one kind: `instances` of them, each with its own `queues` of instructions."""

    name: str
    instances: int = 1
    queues: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A memory on the chip.

    Attributes:
        nbytes: of what it holds.
        alignment: bytes between one address and the next.
        readers, writers: names of engines.
        dtypes: of the tensors that it can hold; none where it is for instructions.
    """

    name: str
    nbytes: int
    alignment: int = 1
    readers: tuple[str, ...]
    writers: tuple[str, ...]
    dtypes: tuple[DType, ...] = ()

    @property
    def depth(self) -> int:
        """How many addresses there are."""
        return self.nbytes // self.alignment

    @property
    def elements(self) -> int:
        """How many elements of a tensor are at one address."""
        return self.alignment // self.dtypes[0].nbytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineModel:
    """One machine: its `kind` says which instructions and passes are for it.

    `threads` is how many of a processor's cores compute a program together: kernels are made, and
    their times are measured, for so many.
    """

    kind: str
    threads: int = 1
    engines: tuple[Engine, ...] = ()
    memories: tuple[Memory, ...] = ()
    lanes: Lanes = Lanes()
    counters: tuple[str, ...] = ()

    @property
    def counts_cycles(self) -> bool:
        """Whether it tells time itself; the clock does of others."""
        return "cycles" in self.counters

    def memory(self, name: str) -> Memory:
        """The memory of that name.

        Raises:
            KeyError: there is none.
        """
        found = next((each for each in self.memories if each.name == name), None)
        if found is None:
            raise KeyError(f"{self.kind} has no memory {name}")
        return found

    @property
    def cores(self) -> int:
        """How many threads can compute at a time."""
        return max((each.instances for each in self.engines), default=1)

    @property
    def document(self) -> dict[str, Any]:
        """The machine as JSON has it: the section `machine` of a target."""
        document = asdict(self)
        for row, memory in zip(document["memories"], self.memories, strict=True):
            row["dtypes"] = tuple(dtype.value for dtype in memory.dtypes)
        return document


RESERVED: Final = frozenset({"dram", "local"})
"""Memories of every host; "local" is its stack."""

_LANES_MOST: Final = 256
"""Samples or channels of a tile: as many as VTA's largest."""


def contradictions(model: MachineModel) -> Iterator[str]:
    """Every reason why there can be no such machine."""
    engines = [engine.name for engine in model.engines]
    names = Counter([*engines, *(memory.name for memory in model.memories)])
    for name, times in names.items():
        if times > 1:
            yield f"machine: {times} engines or memories are called {name!r}"
        if name in RESERVED:
            yield f"machine: {name!r} is a memory of every host, and no name of another"
    for name, lanes in (("batch", model.lanes.batch), ("block", model.lanes.block)):
        if not 1 <= lanes <= _LANES_MOST or lanes & (lanes - 1):
            yield f"machine.lanes.{name}: {lanes} is no power of two up to {_LANES_MOST}"
    if len(set(model.counters)) < len(model.counters):
        yield "machine.counters: a name is there twice"
    if model.threads < 1:
        yield f"machine.threads: {model.threads}, and one at least computes"
    elif model.threads > 1 and model.kind != CPU:
        yield f"machine.threads: {model.threads}, and only a processor ({CPU}) has any"
    elif model.threads > model.cores:
        yield f"machine.threads: {model.threads} on {plural(model.cores, 'core')}"
    for engine in model.engines:
        if engine.instances < 1 or engine.queues < 1:
            yield f"machine: engine {engine.name} needs an instance and a queue"
    for memory in model.memories:
        if not 1 <= memory.alignment <= memory.nbytes:
            yield (
                f"machine: memory {memory.name} has {memory.nbytes} bytes and is addressed by"
                f" {memory.alignment}"
            )
        for name in sorted({*memory.readers, *memory.writers}.difference(engines)):
            yield f"machine: {name!r} reaches {memory.name}, and is no engine"
