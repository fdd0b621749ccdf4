"""Random memory problems without any purpose: all that a problem can say, however it goes together.

Many contradict themselves, and are refused; the others have to be planned, or told infeasible.
"""

from __future__ import annotations

import random
from typing import Any, Final

from driver.memory import Buffer, Engine, EngineKind, FirstContent, Memory, Op, Problem, Transfer

_CAPACITIES: Final = (0, 0, 40, 64, 100, 200)
_SIZES: Final = (0, 1, 3, 8, 16, 20, 32, 48)
_CONTENTS: Final = (*[FirstContent.PRODUCED] * 4, FirstContent.PRESENT, FirstContent.BACKED)


def odd_problem(seed: int) -> Problem:
    """The problem of a seed."""
    rng = random.Random(seed)
    engines = tuple(
        Engine(
            name=f"e{at}",
            kind=rng.choice(list(EngineKind)),
            instances=rng.choice((1, 1, 2, 5)),
            in_order=rng.random() < 0.5,
        )
        for at in range(rng.randint(1, 4))
    )
    memories = _memories(rng, [e.name for e in engines if e.kind is EngineKind.DMA])
    buffers = _buffers(rng, [m.name for m in memories])
    return Problem(
        buffers=tuple(buffers),
        ops=tuple(_ops(rng, buffers, [e.name for e in engines])),
        memories=memories,
        engines=engines,
        barriers=rng.choice((0, 0, 0, 1, 2)),
    )


def _memories(rng: random.Random, movers: list[str]) -> tuple[Memory, ...]:
    """Each one backed by the next, in a ring."""

    def cost() -> Transfer:
        return Transfer(
            engine=rng.choice(movers),
            latency_ticks=rng.choice((0, 1, 3)),
            nbytes_per_tick=rng.choice((0, 1, 7, 100)),
        )

    count = rng.randint(1, 3)
    found = []
    for at in range(count):
        backed: dict[str, Any] = {}
        if movers and count > 1 and rng.random() < 0.8:
            backed = {"backing": f"m{(at + 1) % count}", "save": cost(), "read": cost()}
        found.append(
            Memory(
                name=f"m{at}",
                capacity_nbytes=rng.choice(_CAPACITIES),
                alignment=rng.choice((1, 1, 4, 16)),
                reserved=rng.choice(((), (), ((8, 8),), ((0, 16), (32, 4)))),
                **backed,
            )
        )
    return tuple(found)


def _buffers(rng: random.Random, memories: list[str]) -> list[Buffer]:
    found: list[Buffer] = []
    for at in range(rng.randint(1, 12)):
        said: dict[str, Any] = {"nbytes": rng.choice(_SIZES)}
        if rng.random() < 0.15 and found:
            whole = rng.choice(found)
            nbytes = rng.randint(0, whole.nbytes)
            offset = rng.randint(0, whole.nbytes - nbytes)
            said = {"nbytes": nbytes, "view_of": whole.name, "view_offset": offset}
        else:
            said["group"] = rng.choice("gh") if rng.random() < 0.15 else ""
            said["pinned_at"] = rng.choice((0, 16, 32)) if rng.random() < 0.08 else None
            said["memory"] = rng.choice(["", "", "", *memories])
            said["first_content"] = rng.choice(_CONTENTS)
            said["spillable"] = rng.random() < 0.8
        said["alignment"] = rng.choice((0, 0, 0, 8))
        found.append(Buffer(name=f"b{at}", needed_after=rng.random() < 0.05, **said))
    if rng.random() < 0.3:
        rng.shuffle(found)  # views come before their wholes as well
    return found


def _ops(rng: random.Random, buffers: list[Buffer], engines: list[str]) -> list[Op]:
    names = [b.name for b in buffers]
    readable = {b.name for b in buffers if b.first_content is not FirstContent.PRODUCED}
    found: list[Op] = []
    for at in range(rng.randint(0, 14)):
        known = [name for name in names if name in readable or rng.random() < 0.03]
        reads = tuple(rng.sample(known, min(len(known), rng.choice((0, 1, 1, 2)))))
        writes = tuple(rng.sample(names, min(len(names), rng.choice((0, 1, 1, 1, 2)))))
        readable.update(writes)
        samples = tuple(rng.randint(1, 9) for _ in range(3)) if rng.random() < 0.2 else ()
        found.append(
            Op(
                name=f"o{at}",
                engine=rng.choice(engines),
                duration_ticks=None if samples else rng.randint(1, 9),
                samples=samples,
                reads=reads,
                writes=writes,
                after=(f"o{rng.randrange(at)}",) if at and rng.random() < 0.1 else (),
                takes_all=rng.random() < 0.1,
                repeatable=rng.random() < 0.4,
                in_place=tuple((a, b) for a in reads for b in writes if rng.random() < 0.5),
            )
        )
    return found
