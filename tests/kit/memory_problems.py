"""Random memory problems that use all that a problem can say, small enough to plan hundreds."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Final

from driver.memory import Buffer, Engine, EngineKind, FirstContent, Memory, Op, Problem, Transfer

_SIZES: Final = (0, 8, 16, 30, 50, 64, 90)
_PINS: Final = (32, 128)


def memory_problem(seed: int) -> Problem:
    """Loads, chains, joins, parts, groups, pins and outputs on two processors and two DMA engines,
    some of them with few barriers.

    Half of them have too little memory for all that they would like to keep there.
    """
    draft = _Draft(random.Random(seed))
    draft.build()
    return Problem(
        buffers=tuple(draft.buffers),
        ops=tuple(draft.ops),
        memories=_memories(draft.rng),
        engines=_engines(draft.rng),
        barriers=draft.rng.choice([0, 0, 1, 2, 4]),
    )


def _memories(rng: random.Random) -> tuple[Memory, ...]:
    def cost(engine: str) -> Transfer:
        per_tick = rng.choice([0, 10, 50])
        return Transfer(engine=engine, latency_ticks=rng.randint(1, 3), nbytes_per_tick=per_tick)

    fast = Memory(
        name="fast",
        capacity_nbytes=rng.choice([0, 192, 224, 256, 320]),
        alignment=rng.choice([1, 8, 16]),
        reserved=rng.choice([(), ((0, 10),), ((100, 20),)]),
        backing="dram",
        save=cost("out"),
        read=cost("in"),
    )
    dram = Memory(name="dram", alignment=rng.choice([1, 32]), capacity_nbytes=rng.choice([0, 5000]))
    return fast, dram, Memory(name="side", capacity_nbytes=rng.choice([0, 200]), alignment=4)


def _engines(rng: random.Random) -> tuple[Engine, ...]:
    return (
        Engine(name="matrix", in_order=rng.random() < 0.6, instances=rng.choice([1, 1, 2])),
        Engine(name="vector", in_order=rng.random() < 0.6, instances=rng.choice([1, 3])),
        *(
            Engine(
                name=name,
                kind=EngineKind.DMA,
                in_order=rng.random() < 0.3,
                instances=rng.choice([1, 2]),
            )
            for name in ("in", "out")
        ),
    )


@dataclass(slots=True)
class _Draft:
    rng: random.Random
    buffers: list[Buffer] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    readable: list[str] = field(default_factory=list)

    def build(self) -> None:
        rng = self.rng
        first = self.buffer(
            first_content=FirstContent.PRESENT,
            spillable=rng.random() < 0.7,
            needed_after=rng.random() < 0.2,
        )
        self.readable.append(first.name)
        for _ in range(rng.randint(4, 20)):
            kind = rng.random()
            if kind < 0.25:
                made = self.buffer()
                self.op("in", (), (made.name,))
            elif kind < 0.35:
                made = self.buffer(memory="fast", first_content=FirstContent.BACKED)
            elif kind < 0.45:
                self.op("out", (rng.choice(self.readable),), ())
                continue
            else:
                made = self.computed()
            self.readable.append(made.name)

    def buffer(self, **said: object) -> Buffer:
        made = Buffer(
            name=f"b{len(self.buffers)}",
            nbytes=self.rng.choice(_SIZES),
            memory=self.rng.choice(["fast"] * 6 + ["side"]),
        )
        made = replace(made, **said)  # type: ignore[arg-type]
        self.buffers.append(made)
        return made

    def op(self, engine: str, reads: tuple[str, ...], writes: tuple[str, ...]) -> None:
        rng = self.rng
        waits = self.ops and rng.random() < 0.1
        self.ops.append(
            Op(
                name=f"op{len(self.ops)}",
                engine=engine,
                duration_ticks=rng.randint(1, 9),
                reads=reads,
                writes=writes,
                after=(rng.choice(self.ops).name,) if waits else (),
                takes_all=rng.random() < 0.1,
            )
        )

    def computed(self) -> Buffer:
        """A result: in place of an operand, pinned, in two parts, or plain."""
        rng = self.rng
        count = rng.randint(1, 3)
        reads = tuple(dict.fromkeys(rng.choice(self.readable) for _ in range(count)))
        operand = next(b for b in self.buffers if b.name == reads[0])
        form = rng.random()
        if form < 0.15 and not operand.group and operand.pinned_at is None:
            group = f"group{len(self.ops)}"
            self.buffers[self.buffers.index(operand)] = replace(operand, group=group)
            made = self.buffer(memory=operand.memory, group=group)
        elif form < 0.25:
            made = self.buffer(pinned_at=rng.choice(_PINS), memory="fast")
        else:
            made = self.buffer(needed_after=rng.random() < 0.15, spillable=rng.random() < 0.9)
            if made.nbytes >= 32 and rng.random() < 0.25:
                self.parts_of(made, reads)
                return made
        self.op(rng.choice(["matrix", "matrix", "vector"]), reads, (made.name,))
        return made

    def parts_of(self, whole: Buffer, reads: tuple[str, ...]) -> None:
        middle = whole.nbytes // 32 * 16
        for begin, end in ((0, middle), (middle, whole.nbytes)):
            part = Buffer(
                name=f"{whole.name} from {begin}",
                nbytes=end - begin,
                memory=whole.memory,
                view_of=whole.name,
                view_offset=begin,
            )
            self.buffers.append(part)
            self.op(self.rng.choice(["matrix", "vector"]), reads, (part.name,))
