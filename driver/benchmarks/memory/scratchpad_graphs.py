"""Random graphs like convolutional networks, for a scratchpad and two DMA engines.

Activations are chained, with branches and joins; most operations load weights; results that nobody
reads are written out. Sizes, durations and the scratchpad are of the order of an NPU's.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from driver.memory import Buffer, Engine, EngineKind, FirstContent, Memory, Op, Problem, Transfer

SCRATCHPAD_NBYTES: Final = 1_474_560
_NBYTES_PER_TICK: Final = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphKind:
    """What all graphs of a set have.

    Attributes:
        is_free: the order of computations may change.
        is_backed: weights lie in the backing memory; otherwise operations load them.
    """

    capacity_nbytes: int = SCRATCHPAD_NBYTES
    is_free: bool = False
    is_backed: bool = False


def scratchpad_graph(seed: int, computations: int, kind: GraphKind | None = None) -> Problem:
    """The graph of a seed, with so many computations."""
    draft = _Draft(random.Random(seed), kind or GraphKind())
    draft.build(computations)
    return draft.problem()


@dataclass(slots=True)
class _Draft:
    rng: random.Random
    kind: GraphKind
    buffers: list[Buffer] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    def build(self, computations: int) -> None:
        rng = self.rng
        made = [self.loaded(rng.randrange(100_000, 500_000))]
        used: set[str] = set()
        for number in range(computations):
            is_chained = rng.random() < 0.75 or len(made) < 2
            reads = [made[-1] if is_chained else rng.choice(made)]
            if rng.random() < 0.3 and len(made) > 1:
                reads.append(rng.choice(made[-4:]))
            used.update(reads)
            if rng.random() < 0.8:
                reads.append(self.loaded(rng.randrange(20_000, 600_000)))
            made.append(self.buffer(rng.randrange(60_000, 500_000), FirstContent.PRODUCED))
            self.ops.append(
                Op(
                    name=f"compute {number}",
                    engine="compute",
                    duration_ticks=rng.randrange(4, 40),
                    reads=tuple(dict.fromkeys(reads)),
                    writes=(made[-1],),
                )
            )
        for name in made[1:]:
            if name not in used:
                self.moved(f"write out {name}", "out", name)

    def buffer(self, nbytes: int, content: FirstContent) -> str:
        name = f"b{len(self.buffers)}"
        self.buffers.append(Buffer(name=name, nbytes=nbytes, first_content=content))
        return name

    def loaded(self, nbytes: int) -> str:
        if self.kind.is_backed:
            return self.buffer(nbytes, FirstContent.BACKED)
        name = self.buffer(nbytes, FirstContent.PRODUCED)
        self.moved(f"load {name}", "in", name)
        return name

    def moved(self, op: str, engine: str, name: str) -> None:
        nbytes = next(b.nbytes for b in reversed(self.buffers) if b.name == name)
        self.ops.append(
            Op(
                name=op,
                engine=engine,
                duration_ticks=_transfer(engine).ticks(nbytes),
                reads=(name,) if engine == "out" else (),
                writes=(name,) if engine == "in" else (),
            )
        )

    def problem(self) -> Problem:
        return Problem(
            buffers=tuple(self.buffers),
            ops=tuple(self.ops),
            memories=(
                Memory(
                    name="scratchpad",
                    capacity_nbytes=self.kind.capacity_nbytes,
                    alignment=64,
                    backing="dram",
                    save=_transfer("out"),
                    read=_transfer("in"),
                ),
                Memory(name="dram"),
            ),
            engines=(
                Engine(name="in", kind=EngineKind.DMA, in_order=False),
                Engine(name="compute", in_order=not self.kind.is_free),
                Engine(name="out", kind=EngineKind.DMA, in_order=False),
            ),
        )


def _transfer(engine: str) -> Transfer:
    return Transfer(engine=engine, latency_ticks=1, nbytes_per_tick=_NBYTES_PER_TICK)
