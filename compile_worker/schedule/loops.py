"""Primitives that change loops: split, fuse, reorder, tile, unroll, vectorize, parallel."""

from __future__ import annotations

from collections.abc import Sequence

from tilefarm.errors import ScheduleError

from compile_worker.ir.expr import Add, Expr, Load, Max, Min, Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Block, For, LoopKind, Stmt, Store
from compile_worker.ir.visit import find
from compile_worker.schedule.guards import independent, serial, unused_loops
from compile_worker.schedule.perfect import perfect, rebuilt
from compile_worker.schedule.places import (
    Path,
    inside,
    loop_path,
    loop_target,
    rebind,
    replaced,
)
from compile_worker.schedule.schedule import Schedule, primitive


@primitive
def split(schedule: Schedule, loop: str, factor: int) -> Func:
    """Cut a loop into an outer and an inner one, named `<loop>_0` and `<loop>_1`.

        for i in 0:12: f(i)
    ->                                                          split("i", 4)
        for i_0 in 0:3: for i_1 in 0:4: f(i_0*4 + i_1)

    Where the factor does not divide the extent, `pad` the loop first: together they are the split
    with a guard. `overlap` needs none.

    Raises:
        ScheduleError: the factor does not divide the extent.
    """
    path = loop_path("split", schedule.func, loop)
    unused_loops("split", schedule.func, f"{loop}_0", f"{loop}_1")
    return replaced(schedule.func, path, _split(loop_target(path), factor))


@primitive
def overlap(schedule: Schedule, loop: str, factor: int) -> Func:
    """Cut a loop into tiles of one size, as near to one another as it takes to fill its extent.

        for i in 0:7: f(i)
    ->                                                          overlap("i", 4)
        for i_0 in 0:2: for i_1 in 0:4: f(i_0*3 + i_1)

    What two tiles have in common is computed twice, which stores what is there. `tile_step` says
    how far apart the tiles are.

    Raises:
        ScheduleError: no such tiles end where the loop does, or a block adds to what it stored.
    """
    path = loop_path("overlap", schedule.func, loop)
    unused_loops("overlap", schedule.func, f"{loop}_0", f"{loop}_1")
    cut = serial("overlap", loop_target(path))
    for block in find(cut, Block):
        if block.init is not None or not _is_plain(block.body):
            why = f"{block.name} adds to what it stored"
            raise ScheduleError("overlap", loop, why, "split, or another loop")
    step = tile_step(cut.extent, factor)
    if step is None:
        why = f"tiles of {factor} do not fill extent {cut.extent} at one distance"
        raise ScheduleError("overlap", loop, why, f"pad({loop!r}, {factor}), and split it")
    return replaced(schedule.func, path, _tiled(cut, factor, step))


def tile_step(extent: int, factor: int) -> int | None:
    """How far apart the fewest tiles of `factor` begin that fill an extent; None if none do.

    That is `factor` where it divides the extent.
    """
    if not 0 < factor <= extent:
        return None
    if factor == extent:
        return factor
    rest = extent - factor
    return next((step for step in range(factor, 0, -1) if rest % step == 0), None)


def _is_plain(stmt: Stmt) -> bool:
    """Whether it stores an element, of other buffers."""
    if not isinstance(stmt, Store):
        return False
    return all(load.buffer is not stmt.buffer for load in find(stmt, Load))


@primitive
def fuse(schedule: Schedule, outer: str, inner: str) -> Func:
    """Make one loop of two that are directly nested, named `<outer>_<inner>`.

        for i in 0:3: for j in 0:4: f(i, j)
    ->                                                          fuse("i", "j")
        for i_j in 0:12: f(i_j // 4, i_j % 4)

    Raises:
        ScheduleError: the loops are not directly nested, or only one of them reduces.
    """
    path = loop_path("fuse", schedule.func, outer)
    above = serial("fuse", loop_target(path))
    nested = serial("fuse", _directly_inside("fuse", above, inner))
    for block in find(nested, Block):
        if (above.var in block.reductions) != (nested.var in block.reductions):
            why = f"one of {outer} and {inner} is a reduction of {block.name}, the other is not"
            raise ScheduleError("fuse", outer, why, "reorder, and fuse loops of one kind")
    unused_loops("fuse", schedule.func, f"{outer}_{inner}")
    fused = Var(f"{outer}_{inner}")
    values: dict[Var, Expr] = {
        above.var: fused // nested.extent,
        nested.var: fused % nested.extent,
    }
    nest = perfect(above)
    within = rebuilt(nest.loops[2:], nest.guards, nest.body)
    body = rebind(within, values, {above.var: (fused,), nested.var: (fused,)})
    return replaced(schedule.func, path, For(fused, above.extent * nested.extent, body))


@primitive
def reorder(schedule: Schedule, *loops: str) -> Func:
    """Put loops of one perfect nest into the given order, outermost first.

    Loops that are not named stay where they are; guards go as far out as they can.

        for i: for j: for k: f(i, j, k)
    ->                                                          reorder("k", "i")
        for k: for j: for i: f(i, j, k)

    Raises:
        ScheduleError: the loops are not of one perfect nest, or a sum of floats would be
            taken in another order.
    """
    if len(set(loops)) != len(loops) or not loops:
        raise ScheduleError("reorder", ", ".join(loops), "needs each loop once", "two or more")
    path = _outermost(schedule.func, loops)
    nest = perfect(loop_target(path))
    names = [loop.var.name for loop in nest.loops]
    for name in loops:
        if name not in names:
            why = f"{name} is not in the perfect nest of {names[0]}: {', '.join(names)}"
            raise ScheduleError("reorder", ", ".join(loops), why, "loops of one of its nests")
    slots = [at for at, name in enumerate(names) if name in loops]
    order = list(nest.loops)
    for slot, name in zip(slots, loops, strict=True):
        order[slot] = nest.loops[names.index(name)]
    _keep_order(", ".join(loops), nest.loops, order)
    return replaced(schedule.func, path, rebuilt(order, nest.guards, nest.body))


@primitive
def tile(schedule: Schedule, first: str, second: str, rows: int, columns: int) -> Func:
    """Cut two directly nested loops into tiles.

        for i in 0:8: for j in 0:8: f(i, j)
    ->                                                          tile("i", "j", 4, 2)
        for i_0 in 0:2: for j_0 in 0:4: for i_1 in 0:4: for j_1 in 0:2: f(i_0*4+i_1, j_0*2+j_1)

    Raises:
        ScheduleError: as `split` and `reorder`.
    """
    _directly_inside("tile", loop_target(loop_path("tile", schedule.func, first)), second)
    cut = split(split(schedule, first, rows), second, columns)
    return reorder(cut, f"{first}_0", f"{second}_0", f"{first}_1", f"{second}_1").func


@primitive
def unroll(schedule: Schedule, loop: str) -> Func:
    """Mark a loop to be written out.

    for i in 0:4: f(i)   ->   unrolled i in 0:4: f(i)       unroll("i")
    """
    return _of_kind("unroll", schedule.func, loop, LoopKind.UNROLLED)


@primitive
def vectorize(schedule: Schedule, loop: str) -> Func:
    """Mark an innermost loop to be done by vector instructions.

        for i in 0:4: f(i)   ->   vectorized i in 0:4: f(i)     vectorize("i")

    Raises:
        ScheduleError: the loop is not innermost, or reduces.
    """
    target = loop_target(loop_path("vectorize", schedule.func, loop))
    if not isinstance(target.body, Block):
        inner = next(find(target.body, For), None)
        hint = f"{inner.var.name}, or reorder it inwards" if inner else "a loop without a guard"
        raise ScheduleError("vectorize", loop, "it is not an innermost loop", hint)
    independent("vectorize", target)
    return _of_kind("vectorize", schedule.func, loop, LoopKind.VECTORIZED)


@primitive
def parallel(schedule: Schedule, loop: str) -> Func:
    """Mark a loop whose iterations may run at the same time.

        for i in 0:4: f(i)   ->   parallel i in 0:4: f(i)       parallel("i")

    Raises:
        ScheduleError: the loop reduces.
    """
    independent("parallel", loop_target(loop_path("parallel", schedule.func, loop)))
    return _of_kind("parallel", schedule.func, loop, LoopKind.PARALLEL)


def _split(loop: For, factor: int) -> For:
    """`loop` as two, with the factor checked."""
    serial("split", loop)
    if factor < 1 or loop.extent % factor:
        divisors = [d for d in range(1, loop.extent + 1) if loop.extent % d == 0]
        near = sorted(sorted(divisors, key=lambda d: abs(d - factor))[:3])
        raise ScheduleError(
            "split",
            loop.var.name,
            f"factor {factor} does not divide extent {loop.extent}",
            f"one of {', '.join(map(str, near))}, or pad({loop.var.name!r}, {factor}) first"
            if factor > 0
            else "a factor from 1 on",
        )
    return _tiled(loop, factor, factor)


def _tiled(loop: For, factor: int, step: int) -> For:
    """`loop` in tiles of `factor` iterations, of which each begins `step` behind the one before."""
    outer, inner = Var(f"{loop.var.name}_0"), Var(f"{loop.var.name}_1")
    whole = outer * step + inner if step > 1 else outer + inner
    body = rebind(loop.body, {loop.var: whole}, {loop.var: (outer, inner)})
    tiles = (loop.extent - factor) // step + 1
    return For(outer, tiles, For(inner, factor, body), marks=loop.marks)


def _directly_inside(primitive: str, outer: For, inner: str) -> For:
    """The loop that `outer` holds and nothing else, apart from guards."""
    loops = perfect(outer).loops
    if len(loops) < 2 or loops[1].var.name != inner:
        why = f"{inner} is not directly inside"
        raise ScheduleError(primitive, outer.var.name, why, "reorder them first")
    return loops[1]


def _outermost(func: Func, loops: Sequence[str]) -> Path:
    """The path to that one of the loops that is above all others."""
    paths = [loop_path("reorder", func, name) for name in loops]
    return min(paths, key=lambda path: len(path.steps))


def _keep_order(subject: str, before: Sequence[For], after: Sequence[For]) -> None:
    """Refuse another order of the loops over which a block reduces, if its result depends on it."""
    for block in find(before[0], Block):
        old = [loop.var for loop in before if loop.var in block.reductions]
        new = [loop.var for loop in after if loop.var in block.reductions]
        why = _depends_on_order(block) if old != new else ""
        if why:
            raise ScheduleError("reorder", subject, why, "the order that there is")


def _depends_on_order(block: Block) -> str:
    """Why a reduction gives something else in another order; nothing if it does not.

    Sums, maxima and minima of integers may be taken in any order.
    """
    match block.body:
        case Store(_, _, value) if value.dtype.is_float:
            return f"{block.name} sums floats, and another order rounds differently"
        case Store(buffer, at, Add(left, right) | Max(left, right) | Min(left, right)):
            own = Load(buffer, at)
            rest = right if left is own else left if right is own else own
            if own not in find(rest, Load):
                return ""
    return f"{block.name} depends on the order of what it reduces over"


def _of_kind(primitive: str, func: Func, loop: str, kind: LoopKind) -> Func:
    path = loop_path(primitive, func, loop)
    target = serial(primitive, loop_target(path))
    new: Stmt = For(target.var, target.extent, target.body, kind, target.marks)
    assert inside(new)
    return replaced(func, path, new)
