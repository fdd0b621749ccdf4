"""Primitives that change loops: split, fuse, reorder, tile, unroll, vectorize, parallel."""

from __future__ import annotations

from collections.abc import Sequence

from tilefarm.errors import ScheduleError

from compile_worker.ir.expr import Expr, Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Block, For, LoopKind, Stmt, Store
from compile_worker.ir.visit import find
from compile_worker.schedule.places import (
    Path,
    below,
    chain,
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

    Raises:
        ScheduleError: the factor does not divide the extent.
    """
    path = loop_path("split", schedule.func, loop)
    _free("split", schedule.func, f"{loop}_0", f"{loop}_1")
    return replaced(schedule.func, path, _split("split", loop_target(path), factor))


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
    above = _serial("fuse", loop_target(path))
    nested = above.body
    if not isinstance(nested, For) or nested.var.name != inner:
        raise ScheduleError("fuse", outer, f"{inner} is not directly inside", "reorder them first")
    _serial("fuse", nested)
    for block in find(nested, Block):
        if (above.var in block.reductions) != (nested.var in block.reductions):
            why = f"one of {outer} and {inner} is a reduction of {block.name}, the other is not"
            raise ScheduleError("fuse", outer, why)
    _free("fuse", schedule.func, f"{outer}_{inner}")
    fused = Var(f"{outer}_{inner}")
    values: dict[Var, Expr] = {
        above.var: fused // nested.extent,
        nested.var: fused % nested.extent,
    }
    body = rebind(nested.body, values, {above.var: (fused,), nested.var: (fused,)})
    return replaced(schedule.func, path, For(fused, above.extent * nested.extent, body))


@primitive
def reorder(schedule: Schedule, *loops: str) -> Func:
    """Put loops of one perfect nest into the given order, outermost first.

    Loops that are not named stay where they are.

        for i: for j: for k: f(i, j, k)
    ->                                                          reorder("k", "i")
        for k: for j: for i: f(i, j, k)

    Raises:
        ScheduleError: the loops are not of one perfect nest, or a sum of floats would be
            taken in another order.
    """
    if len(set(loops)) != len(loops) or not loops:
        raise ScheduleError("reorder", ", ".join(loops), "needs each loop once")
    path = _outermost(schedule.func, loops)
    nest = _perfect_nest(loop_target(path))
    names = [loop.var.name for loop in nest]
    for name in loops:
        if name not in names:
            why = f"{name} is not in the perfect nest of {names[0]}: {', '.join(names)}"
            raise ScheduleError("reorder", ", ".join(loops), why)
    slots = [at for at, name in enumerate(names) if name in loops]
    order = list(nest)
    for slot, name in zip(slots, loops, strict=True):
        order[slot] = nest[names.index(name)]
    _keep_float_sums("reorder", ", ".join(loops), nest, order)
    return replaced(schedule.func, path, chain(order, nest[-1].body))


@primitive
def tile(schedule: Schedule, first: str, second: str, rows: int, columns: int) -> Func:
    """Cut two directly nested loops into tiles.

        for i in 0:8: for j in 0:8: f(i, j)
    ->                                                          tile("i", "j", 4, 2)
        for i_0 in 0:2: for j_0 in 0:4: for i_1 in 0:4: for j_1 in 0:2: f(i_0*4+i_1, j_0*2+j_1)

    Raises:
        ScheduleError: as `split` and `reorder`.
    """
    path = loop_path("tile", schedule.func, first)
    outer = loop_target(path)
    if not isinstance(outer.body, For) or outer.body.var.name != second:
        raise ScheduleError("tile", first, f"{second} is not directly inside", "reorder them first")
    inner = _split("tile", outer.body, columns)
    whole = _split("tile", For(outer.var, outer.extent, inner, outer.kind, outer.marks), rows)
    i_0, i_1, j_0, j_1 = _perfect_nest(whole)[:4]
    order = (i_0, j_0, i_1, j_1)
    _keep_float_sums("tile", first, (i_0, i_1, j_0, j_1), order)
    return replaced(schedule.func, path, chain(order, j_1.body))


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
        raise ScheduleError("vectorize", loop, "it is not an innermost loop")
    _independent("vectorize", target)
    return _of_kind("vectorize", schedule.func, loop, LoopKind.VECTORIZED)


@primitive
def parallel(schedule: Schedule, loop: str) -> Func:
    """Mark a loop whose iterations may run at the same time.

        for i in 0:4: f(i)   ->   parallel i in 0:4: f(i)       parallel("i")

    Raises:
        ScheduleError: the loop reduces.
    """
    _independent("parallel", loop_target(loop_path("parallel", schedule.func, loop)))
    return _of_kind("parallel", schedule.func, loop, LoopKind.PARALLEL)


def _split(primitive: str, loop: For, factor: int) -> For:
    """`loop` as two, with the factor checked."""
    _serial(primitive, loop)
    if factor < 1 or loop.extent % factor:
        divisors = [d for d in range(1, loop.extent + 1) if loop.extent % d == 0]
        near = sorted(sorted(divisors, key=lambda d: abs(d - factor))[:3])
        raise ScheduleError(
            primitive,
            loop.var.name,
            f"factor {factor} does not divide extent {loop.extent}",
            f"one of {', '.join(map(str, near))}",
        )
    outer, inner = Var(f"{loop.var.name}_0"), Var(f"{loop.var.name}_1")
    whole = outer * factor + inner if factor > 1 else outer + inner
    body = rebind(loop.body, {loop.var: whole}, {loop.var: (outer, inner)})
    return For(outer, loop.extent // factor, For(inner, factor, body), marks=loop.marks)


def _perfect_nest(loop: For) -> tuple[For, ...]:
    """`loop` and the loops inside it down to the first that has other things inside as well."""
    nest = [loop]
    while isinstance(nest[-1].body, For):
        nest.append(nest[-1].body)
    return tuple(nest)


def _outermost(func: Func, loops: Sequence[str]) -> Path:
    """The path to that one of the loops that is above all others."""
    paths = [loop_path("reorder", func, name) for name in loops]
    return min(paths, key=lambda path: len(path.steps))


def _keep_float_sums(
    primitive: str, subject: str, before: Sequence[For], after: Sequence[For]
) -> None:
    """Refuse another order of the loops over which a block reduces floats: its rounding changes."""
    for block in find(before[0], Block):
        if block.init is not None and _is_float(block):
            old = [loop.var for loop in before if loop.var in block.reductions]
            new = [loop.var for loop in after if loop.var in block.reductions]
            if old != new:
                why = f"{block.name} sums floats, and another order rounds differently"
                raise ScheduleError(primitive, subject, why)


def _is_float(block: Block) -> bool:
    return isinstance(block.body, Store) and block.body.value.dtype.is_float


def _free(primitive: str, func: Func, *names: str) -> None:
    """Refuse names that loops have already."""
    taken = {at.var.name for at in below(func.body) if isinstance(at, For)}
    for name in names:
        if name in taken:
            raise ScheduleError(primitive, name, "there already is a loop of this name")


def _serial(primitive: str, loop: For) -> For:
    if loop.kind is not LoopKind.SERIAL:
        why = f"it is already {loop.kind.value}"
        raise ScheduleError(primitive, loop.var.name, why, f"{primitive} it before")
    return loop


def _independent(primitive: str, loop: For) -> None:
    for block in find(loop, Block):
        if loop.var in block.reductions:
            why = f"{block.name} reduces over it"
            raise ScheduleError(primitive, loop.var.name, why)


def _of_kind(primitive: str, func: Func, loop: str, kind: LoopKind) -> Func:
    path = loop_path(primitive, func, loop)
    target = _serial(primitive, loop_target(path))
    new: Stmt = For(target.var, target.extent, target.body, kind, target.marks)
    assert inside(new)
    return replaced(func, path, new)
