"""Intrinsics of users that are nests, in the space of a script: the rule, and what it schedules.

    for i, j: for k: sums          for i, j_0: for k_0: for j_1 in 0:8: for k_1 in 0:2: sums
                             ->    tensorize("sums", "pairs_3f1c0a9b2d44")

Loops of the stage stand for those of the description in any way that computes the same: each way is
a value of a variable, and 0 is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import permutations, product

from tilefarm.space import Point
from tilefarm.trace import Step

from compile_worker.draft import Draft
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import For, Store
from compile_worker.ir.tile_intrinsics import TileIntrinsic
from compile_worker.machines.cpu.space.script_context import BLOCK, ScriptContext, ScriptRule
from compile_worker.machines.cpu.space.script_places import at
from compile_worker.machines.cpu.space.script_stages import Stage, names
from compile_worker.machines.cpu.space.script_tiling import block_sizes

_Way = tuple[For, ...]
"""A stage's loop for each of the description's."""


def intrinsic_rule(mine: TileIntrinsic) -> ScriptRule:
    """The rule that lets an intrinsic do the main stage's sums."""
    return ScriptRule(
        name=f"Tensorize-{mine.label}",
        when=f"a stage computes what {mine.label} does",
        effect="it does as many sums at once, or they are done as without it",
        unmet=lambda context: _unmet(mine, context),
        declare=lambda draft, context: _declare(mine, draft, context),
        intrinsic=mine,
    )


@lru_cache(maxsize=64)
def ways(mine: TileIntrinsic, stage: Stage) -> tuple[_Way, ...]:
    """How the loops of a stage can be those of an intrinsic, whatever their extents are.

    Floats are summed in one order, so that the last loops over terms are meant.
    """
    store, over = stage.block.body, mine.reductions
    if not isinstance(store, Store):
        return ()
    reduced = list(permutations(stage.reduced, len(over)))
    if store.buffer.dtype.is_float:
        rest = len(stage.reduced) - len(over)
        reduced = [stage.reduced[rest:]] if rest >= 0 else []
    found = []
    for spatial, terms in product(
        permutations(stage.spatial, len(mine.loops) - len(over)), reduced
    ):
        others, inner = iter(spatial), iter(terms)
        way = tuple(next(inner if var in over else others) for var, _ in mine.loops)
        if mine.accesses(store, [loop.var for loop in way]) is not None:
            found.append(way)
    return tuple(found)


def chosen_way(context: ScriptContext, point: Point) -> tuple[TileIntrinsic, _Way] | None:
    """The intrinsic of a point, and the loops that it does; None where it has none."""
    for mine in context.intrinsics:
        if number := point.get(variable(mine), 0):
            return mine, _fitting(mine, context)[number - 1]
    return None


def tile_steps(
    context: ScriptContext, stage: Stage, mine: TileIntrinsic, way: _Way
) -> Iterator[Step]:
    """Cut the loops of a stage, put the intrinsic's innermost, and hand them to it.

    Operands that are computed element by element stay in memory, where it reads them.
    """
    for each in context.stages.producers:
        if each.made is not None and stage.loads(each.made) and not each.reduces:
            yield Step("pragma", ("block", each.name, "keep", 1))
    for loop, (_, extent) in zip(way, mine.loops, strict=True):
        yield Step("split", (loop.var.name, extent))
    inner = [f"{name}_1" for name in names(way)]
    outer = [
        f"{name}_0" if name in names(way) else name
        for name in (*names(stage.reduced), *names(stage.spatial))
    ]
    yield Step("reorder", (*outer, *inner))
    for name in outer[len(stage.reduced) :]:
        yield Step("unroll", (name,))
    yield Step("tensorize", (stage.name, mine.name))


def _unmet(mine: TileIntrinsic, context: ScriptContext) -> str:
    main = context.stages.main
    if lacking := mine.lacking(context.host):
        return f"it needs {lacking}, which the processor has not"
    found = () if main is None else ways(mine, main)
    if not found:
        return f"no stage that sums up does {show(mine.store)}"
    if not _fitting(mine, context):
        wanted = " and ".join(str(extent) for _, extent in mine.loops)
        has = ", ".join(f"{loop.var.name} of {loop.extent}" for loop in found[0])
        return f"{has}: no block of these loops is made of tiles of {wanted}"
    return ""


def _fitting(mine: TileIntrinsic, context: ScriptContext) -> list[_Way]:
    """The ways whose loops can be cut into the intrinsic's."""
    main = context.stages.main
    assert main is not None
    return [
        way
        for way in ways(mine, main)
        if all(
            any(size % extent == 0 for size in _sizes(context, main, loop))
            for loop, (_, extent) in zip(way, mine.loops, strict=True)
        )
    ]


def _sizes(context: ScriptContext, main: Stage, loop: For) -> list[int]:
    """How long a loop of the main stage may be in a block."""
    if loop in main.reduced:
        return [loop.extent]
    axis = context.regions.axis_of(loop.var)
    return [] if axis is None else block_sizes(context, axis)


def _declare(mine: TileIntrinsic, draft: Draft, context: ScriptContext) -> None:
    """tensorize_*: which loops the intrinsic does; of a block that is made of such tiles."""
    main, found = context.stages.main, _fitting(mine, context)
    assert main is not None
    numbers = range(len(found) + 1)
    name = draft.tunable(variable(mine), numbers, ["not used", *map(_label, found)])
    for other in ("products", *(variable(each) for each in context.intrinsics)):
        if other != name and draft.has(other):
            least = draft.domain(other)[0]
            rows = [(n, v) for n in numbers for v in draft.domain(other) if not n or v == least]
            draft.require_rows(f"{name}_{other}", (name, other), rows, why="one of them does it")
    places = [(n, v) for n in numbers for v in draft.domain(at(main)) if not n or v == BLOCK]
    why = f"{mine.label} does parts of a block"
    draft.require_rows(f"{name}_place", (name, at(main)), places, why=why)
    for number in range(len(context.stages.axes)):
        size = context.size(BLOCK, number)
        rows = [
            (n, v)
            for n in numbers
            for v in draft.domain(size)
            if not n or _is_cut(mine, context, found[n - 1], number, v)
        ]
        draft.require_rows(f"{name}_{size}", (name, size), rows, why=why)


def _is_cut(mine: TileIntrinsic, context: ScriptContext, way: _Way, axis: int, size: int) -> bool:
    """Whether a block that is so long along an axis is made of an intrinsic's tiles."""
    return all(
        size % extent == 0
        for loop, (var, extent) in zip(way, mine.loops, strict=True)
        if var not in mine.reductions and context.regions.axis_of(loop.var) == axis
    )


def variable(mine: TileIntrinsic) -> str:
    """The name of the variable that says which loops it does."""
    return f"tensorize_{mine.label}"


def _label(way: _Way) -> str:
    return " ".join(names(way))
