"""What it is worth that operations may run again, and results have their operands' places."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from statistics import geometric_mean
from typing import Final

from driver.benchmarks.figures import Figure
from driver.memory import (
    Buffer,
    Engine,
    EngineKind,
    FirstContent,
    Memory,
    Op,
    Plan,
    Problem,
    Transfer,
    plan,
)

GRAPHS: Final = 40
_STEPS: Final = 11
_FAR_TICKS: Final = 25
_SHORTER, _LOWER = 2.0, 1.4


def figures() -> list[Figure]:
    """Makespans and peaks without the choice by those with it."""
    again = [_ticks(wires(s)) / _ticks(repeatable(wires(s))) for s in range(GRAPHS)]
    places = [_peak(blocks(s, marked=False)) / _peak(blocks(s, marked=True)) for s in range(GRAPHS)]
    return [
        _figure("tight memory, far from the one behind: makespan without repeats", again, _SHORTER),
        _figure("residual blocks: peak without results in place", places, _LOWER),
    ]


def _figure(name: str, ratios: list[float], goal: float) -> Figure:
    return Figure(name=name, value=geometric_mean(ratios), unit="x", goal=goal, more_is_better=True)


def wires(seed: int) -> Problem:
    """Results of any size that are read again much later, in a memory with hardly more room than
    one operation needs, and far from the one behind it.
    """
    rng = random.Random(seed)
    nbytes = [rng.randint(1, 10) for _ in range(_STEPS + 1)]
    reads = [sorted({rng.randrange(k), rng.randrange(k)}) for k in range(1, _STEPS + 1)]
    need = max(nbytes[k + 1] + sum(nbytes[n] for n in mine) for k, mine in enumerate(reads))
    way = Transfer(engine="dma", latency_ticks=_FAR_TICKS)
    return Problem(
        buffers=(
            Buffer(name="b0", nbytes=nbytes[0], first_content=FirstContent.PRESENT),
            *(Buffer(name=f"b{k}", nbytes=n) for k, n in enumerate(nbytes[1:], start=1)),
        ),
        ops=tuple(
            Op(
                name=f"op{k}",
                reads=tuple(f"b{n}" for n in mine),
                writes=(f"b{k + 1}",),
                duration_ticks=rng.randint(1, 4),
            )
            for k, mine in enumerate(reads)
        ),
        memories=(
            Memory(
                name="fast",
                capacity_nbytes=need + 4,
                alignment=1,
                backing="far",
                save=way,
                read=way,
            ),
            Memory(name="far"),
        ),
        engines=(Engine(name="compute"), Engine(name="dma", kind=EngineKind.DMA)),
    )


def repeatable(problem: Problem) -> Problem:
    """The problem, all of whose operations may run again."""
    return replace(problem, ops=tuple(replace(op, repeatable=True) for op in problem.ops))


def blocks(seed: int, *, marked: bool) -> Problem:
    """Residual blocks: a convolution, its activation, and the sum with what the block read; what is
    elementwise may have its operand's place if it is marked.
    """
    rng = random.Random(seed)
    nbytes = 1024 * rng.randint(4, 64)
    draft = list(_blocks(rng.randint(2, 6)))
    names = dict.fromkeys(name for reads, made, _ in draft for name in (*reads, made))
    return Problem(
        buffers=tuple(Buffer(name=name, nbytes=nbytes) for name in names),
        ops=(
            Op(name="x0", writes=("x0",)),
            *(
                Op(
                    name=made,
                    reads=reads,
                    writes=(made,),
                    in_place=((reads[0], made),) if marked and is_elementwise else (),
                )
                for reads, made, is_elementwise in draft
            ),
        ),
    )


def _blocks(count: int) -> Iterator[tuple[tuple[str, ...], str, bool]]:
    """(operands, result, whether it is elementwise)."""
    for k in range(count):
        yield (f"x{k}",), f"convolved{k}", False
        yield (f"convolved{k}",), f"active{k}", True
        yield (f"active{k}", f"x{k}"), f"x{k + 1}", True


def _ticks(problem: Problem) -> int:
    found = plan(problem)
    assert isinstance(found, Plan)
    return found.makespan_ticks


def _peak(problem: Problem) -> int:
    found = plan(problem)
    assert isinstance(found, Plan)
    return found.peak_nbytes("memory")
