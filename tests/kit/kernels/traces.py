"""Random steps of schedules: names that there are, arguments that often fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st
from tilefarm.errors import ScheduleError
from tilefarm.target import Target
from tilefarm.trace import Argument

from compile_worker.ir.expr import Load
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, Block, For, Store
from compile_worker.ir.visit import find
from compile_worker.schedule import PRIMITIVES, Schedule
from compile_worker.schedule.lockstep import WAYS
from compile_worker.schedule.loops import tile_step

Args = tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """What a step can be about."""

    loops: Mapping[str, For]
    blocks: Mapping[str, Block]
    allocs: Sequence[str]
    params: Sequence[str]
    memories: Sequence[str]

    @classmethod
    def of(cls, func: Func, memories: Sequence[str]) -> Names:
        return cls(
            {loop.var.name: loop for loop in find(func.body, For)},
            {block.name: block for block in find(func.body, Block)},
            [alloc.buffer.name for alloc in find(func.body, Alloc)],
            [param.name for param in func.params],
            memories,
        )

    def reductions(self) -> list[tuple[str, str]]:
        """(stage, loop that it reduces over)"""
        return [(b.name, var.name) for b in self.blocks.values() for var in b.reductions]

    def pairs(self) -> list[tuple[str, str]]:
        """(stage that writes, stage that reads it)"""
        return [
            (maker.name, reader.name)
            for maker in self.blocks.values()
            for reader in self.blocks.values()
            if isinstance(maker.body, Store) and maker is not reader
            if any(load.buffer is maker.body.buffer for load in find(reader, Load))
        ]

    def around(self, stage: str) -> list[str]:
        """Loops around a stage, and of those without any, every loop."""
        found = [
            name for name, loop in self.loops.items() if self.blocks[stage] in find(loop, Block)
        ]
        return found or list(self.loops)

    def nest(self, loop: str) -> list[str]:
        """A loop and those that are directly inside one another below it."""
        names, at = [loop], self.loops[loop]
        while isinstance(at.body, For):
            at = at.body
            names.append(at.var.name)
        return names


def _loop(draw: st.DrawFn, names: Names) -> Args:
    return (draw(st.sampled_from(list(names.loops))),)


def _split(draw: st.DrawFn, names: Names) -> Args:
    (loop,) = _loop(draw, names)
    extent = names.loops[str(loop)].extent
    return (loop, draw(st.sampled_from([d for d in range(1, extent + 1) if extent % d == 0])))


def _overlap(draw: st.DrawFn, names: Names) -> Args:
    (loop,) = _loop(draw, names)
    extent = names.loops[str(loop)].extent
    fitting = [d for d in range(1, extent + 1) if tile_step(extent, d)]
    return (loop, draw(st.sampled_from(fitting)))


def _fuse(draw: st.DrawFn, names: Names) -> Args:
    outer = [name for name, loop in names.loops.items() if isinstance(loop.body, For)]
    loop = draw(st.sampled_from(outer or list(names.loops)))
    return (loop, names.nest(loop)[min(1, len(names.nest(loop)) - 1)])


def _tile(draw: st.DrawFn, names: Names) -> Args:
    one, other = map(str, _fuse(draw, names))
    sizes = [names.loops[name].extent for name in (one, other)]
    return (one, other, *(draw(st.sampled_from([1, size])) for size in sizes))


def _reorder(draw: st.DrawFn, names: Names) -> Args:
    return tuple(draw(st.permutations(names.nest(str(_loop(draw, names)[0])))))[:3]


def _pad(draw: st.DrawFn, names: Names) -> Args:
    return (*_loop(draw, names), draw(st.integers(2, 5)))


def _bind(draw: st.DrawFn, names: Names) -> Args:
    return (*_loop(draw, names), draw(st.sampled_from(["worker", "vthread"])))


def _stage(draw: st.DrawFn, names: Names) -> str:
    return draw(st.sampled_from(list(names.blocks)))


def _inwards(draw: st.DrawFn, names: Names) -> Args:
    maker, reader = draw(st.sampled_from(names.pairs() or [(_stage(draw, names),) * 2]))
    return (maker, draw(st.sampled_from(names.around(reader))))


def _backwards(draw: st.DrawFn, names: Names) -> Args:
    maker, reader = draw(st.sampled_from(names.pairs() or [(_stage(draw, names),) * 2]))
    return (reader, draw(st.sampled_from(names.around(maker))))


def _one_stage(draw: st.DrawFn, names: Names) -> Args:
    return (_stage(draw, names),)


def _lockstep(draw: st.DrawFn, names: Names) -> Args:
    stage = _stage(draw, names)
    loop = draw(st.sampled_from(names.around(stage)))
    lanes = draw(st.integers(1, names.loops[loop].extent))
    return (stage, loop, lanes, draw(st.sampled_from([*WAYS])))


def _reduction(draw: st.DrawFn, names: Names) -> Args:
    stage, loop = draw(st.sampled_from(names.reductions() or [(_stage(draw, names), "none")]))
    return (stage, loop)


def _buffer(draw: st.DrawFn, names: Names) -> str:
    return draw(st.sampled_from([*names.allocs, *names.params]))


def _scoped(draw: st.DrawFn, names: Names) -> Args:
    return (_buffer(draw, names), draw(st.sampled_from(names.memories)))


def _align(draw: st.DrawFn, names: Names) -> Args:
    factor = draw(st.sampled_from([1, 4, 5]))
    axis, offset = draw(st.integers(0, 1)), draw(st.integers(0, factor - 1))
    return (_buffer(draw, names), axis, factor, offset)


def _slots(draw: st.DrawFn, names: Names) -> Args:
    return (_buffer(draw, names), draw(st.integers(1, 2)))


def _note(draw: st.DrawFn, names: Names) -> Args:
    return (
        "block",
        _stage(draw, names),
        "note",
        draw(st.sampled_from(["here", "there"])),
    )


def _keep(draw: st.DrawFn, names: Names) -> Args:
    return ("block", _stage(draw, names), "keep", 1)


def _gemm(draw: st.DrawFn, names: Names) -> Args:
    return ("dot" if "dot" in names.blocks else _stage(draw, names), "gemm")


ARGUMENTS: Final[Mapping[str, Callable[[st.DrawFn, Names], Args]]] = {
    "split": _split,
    "overlap": _overlap,
    "fuse": _fuse,
    "reorder": _reorder,
    "tile": _tile,
    "pad": _pad,
    "unroll": _loop,
    "vectorize": _loop,
    "parallel": _loop,
    "bind": _bind,
    "annotate": _note,
    "pragma": _keep,
    "compute_at": _inwards,
    "compute_inline": _one_stage,
    "reverse_compute_at": _backwards,
    "reverse_compute_inline": _one_stage,
    "if_convert": _one_stage,
    "distribute": _one_stage,
    "lockstep": _lockstep,
    "decompose_reduction": _reduction,
    "rfactor": _reduction,
    "cache_read": _scoped,
    "cache_write": _scoped,
    "set_scope": _scoped,
    "storage_align": _align,
    "double_buffer": _slots,
    "tensorize": _gemm,
}
"""How to draw the arguments of every primitive."""


def scheduled(
    draw: st.DrawFn,
    schedule: Schedule,
    steps: int,
    accepted: Counter[str],
    memories: Sequence[str] = ("local", "local", "acc", "wgt"),
) -> Schedule:
    """The schedule after some steps that were accepted; counts them and what was refused."""
    for _ in range(steps):
        primitive = draw(st.sampled_from(list(ARGUMENTS)))
        args = ARGUMENTS[primitive](draw, Names.of(schedule.func, memories))
        try:
            schedule = PRIMITIVES[primitive](schedule, *args)
        except ScheduleError:
            accepted["refused"] += 1
        else:
            accepted[primitive] += 1
    return schedule


def started(func: Func, target: Target, *calls: tuple[str, Args]) -> Schedule:
    """A schedule after given steps."""
    schedule = Schedule(func, target)
    for primitive, args in calls:
        schedule = PRIMITIVES[primitive](schedule, *args)
    return schedule
