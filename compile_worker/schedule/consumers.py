"""Primitives that move a stage to what it reads: reverse_compute_at, reverse_compute_inline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilefarm.errors import ScheduleError

from compile_worker.ir.affine import Affine, as_affine, sum_of
from compile_worker.ir.expr import Buffer, Expr, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Block, For, If, Stmt, Store
from compile_worker.ir.visit import rewrite, substitute, variables
from compile_worker.schedule.guards import only_writer, plain_store, writes
from compile_worker.schedule.places import (
    Path,
    block_path,
    block_target,
    blocks,
    in_sequence,
    loads,
    loop_path,
    loop_target,
    nest_path,
    reads,
    replaced,
)
from compile_worker.schedule.region import AxisRange, reachable
from compile_worker.schedule.schedule import Schedule, primitive
from compile_worker.schedule.stages import shrunk
from compile_worker.schedule.storage import without_allocation

AT = "reverse_compute_at"
INLINE = "reverse_compute_inline"


@primitive
def reverse_compute_at(schedule: Schedule, stage: str, loop: str) -> Func:
    """Compute a stage inside a loop of what it reads: what each iteration has made, just after.

        for i in 0:2: for j in 0:4: a[i*4 + j] = f(i*4 + j)
        for k in 0:8: b[k] = a[k] * 2
    ->                                                          reverse_compute_at("b", "i")
        for i in 0:2:
          for j in 0:4: a[i*4 + j] = f(i*4 + j)
          for k in 0:4: b[i*4 + k] = a[i*4 + k] * 2

    Raises:
        ScheduleError: the stage does not read what the loop makes element by element, the
            iterations leave elements out or unfinished, or the stage needs what comes later.
    """
    func = schedule.func
    source = block_path(AT, func, stage)
    block, nest = block_target(source), nest_path(source)
    goal = loop_path(AT, func, loop)
    if nest.target in goal.steps:
        why = f"{loop} is a loop of the stage itself"
        raise ScheduleError(AT, stage, why, "a loop of what it reads")
    plain_store(AT, func, block, source)
    _comes_after(AT, func, block, goal)
    own = source.within(nest.target)
    spans = _spans(func, block, {loop.var: loop.extent for loop in own.loops}, goal)
    moved = shrunk(own, spans)
    func = replaced(func, nest, None)
    goal = loop_path(AT, func, loop)
    return replaced(func, goal, _with_last(loop_target(goal), moved))


@primitive
def reverse_compute_inline(schedule: Schedule, stage: str) -> Func:
    """Do a stage where what it reads is computed, element by element, and store its result only.

        for i in 0:2: for j in 0:4: a[i*4 + j] = f(i*4 + j)
        for k in 0:8: b[k] = a[k] * 2
    ->                                                          reverse_compute_inline("b")
        for i in 0:2: for j in 0:4: b[i*4 + j] = f(i*4 + j) * 2

    The loops of what it reads stay as they were scheduled.

    Raises:
        ScheduleError: what it reads is an input, a reduction, or needed elsewhere too; or the stage
            does not read it element by element.
    """
    func = schedule.func
    source = block_path(INLINE, func, stage)
    block = block_target(source)
    plain_store(INLINE, func, block, source)
    if block.init is not None or block.reductions:
        raise ScheduleError(INLINE, stage, "it is a reduction", AT)
    path = _last_producer(func, block)
    producer = block_target(path)
    made = producer.body
    if producer.init is not None or producer.reductions or not isinstance(made, Store):
        raise ScheduleError(INLINE, stage, f"{producer.name}, which it reads, is a reduction", AT)
    _only_reader(func, made.buffer, block)
    only_writer(INLINE, func, producer, made.buffer)
    _comes_after(INLINE, func, block, path)
    values = _places(block, source, made)

    def element(node: object) -> Expr | None:
        return made.value if isinstance(node, Load) and node.buffer is made.buffer else None

    body = rewrite(substitute(block.body, values), element)
    func = replaced(func, nest_path(source), None)
    path = block_path(INLINE, func, producer.name)
    func = replaced(func, path, Block(block.name, body, marks=block.marks))
    return without_allocation(func, made.buffer)


def _comes_after(primitive: str, func: Func, block: Block, goal: Path) -> None:
    """Refuse to do `block` at `goal` if something that it needs is not there yet.

    What blocks at the goal write may be there in part; everything else has to be complete, and
    nothing may have used the block's result.
    """
    order = blocks(func.body)
    near = set(blocks(goal.target))
    around = set(blocks(goal.loops[0])) if goal.loops else near
    begin, now = order.index(next(b for b in order if b in around)), order.index(block)
    if block in around or now < begin:
        why = f"it is not done after {goal_name(goal)}"
        raise ScheduleError(primitive, block.name, why, "a loop of what it reads")
    for buffer in {load.buffer for load in loads(block)}:
        for at, other in enumerate(order):
            late = at >= begin and not (other in near and at < now)
            if other is not block and late and writes(other, buffer):
                why = f"it reads {buffer.name}, which {other.name} has not finished there"
                raise ScheduleError(primitive, block.name, why, f"a loop around {other.name} too")
    made = {store.buffer for store in (block.body, block.init) if isinstance(store, Store)}
    for other in order[:now]:
        if any(reads(other, buffer) for buffer in made):
            why = f"{other.name} uses what it writes, and comes before"
            raise ScheduleError(primitive, block.name, why, "another stage")


def goal_name(goal: Path) -> str:
    """The loop or stage that a path leads to, for a message."""
    target = goal.target
    return target.var.name if isinstance(target, For) else getattr(target, "name", "it")


def _last_producer(func: Func, block: Block) -> Path:
    """The path to the last stage that writes something that `block` reads."""
    wanted = {load.buffer for load in loads(block)}
    order = blocks(func.body)
    before = order[: order.index(block)]
    makers = [each for each in before if any(writes(each, buffer) for buffer in wanted)]
    if not makers:
        why = "it reads inputs only"
        raise ScheduleError(INLINE, block.name, why, "a stage that reads another one")
    return block_path(INLINE, func, makers[-1].name)


def _only_reader(func: Func, buffer: Buffer, block: Block) -> None:
    if buffer in func.params:
        why = f"{buffer.name}, which it reads, is a result"
        raise ScheduleError(INLINE, block.name, why, AT)
    for other in blocks(func.body):
        if other is not block and reads(other, buffer):
            why = f"{other.name} reads {buffer.name} too"
            raise ScheduleError(INLINE, block.name, why, AT)


def _places(block: Block, source: Path, made: Store) -> dict[Var, Expr]:
    """What each loop variable of a stage is where the element that it reads is computed."""
    loops = {step.var: step.extent for step in source.within(nest_path(source).target).loops}
    found: dict[Var, Expr] = {}
    for load in loads(block):
        if load.buffer is not made.buffer:
            continue
        at = [each for each in load.index if isinstance(each, Var) and each in loops]
        sizes = dict(zip(at, load.buffer.shape, strict=False))
        values = dict(zip(at, made.index, strict=False))
        if len(at) != len(load.index) or sizes != loops or (found and found != values):
            why = f"it does not read {made.buffer.name} element by element, each once"
            raise ScheduleError(INLINE, block.name, why, AT)
        found = values
    return found


def _spans(
    func: Func, block: Block, extents: Mapping[Var, int], goal: Path
) -> dict[Var, AxisRange]:
    """The part of each of its loops that a stage does in one iteration of the goal."""
    found: dict[Var, AxisRange] = {}
    reading = [
        (maker, load)
        for maker in blocks(goal.target)
        for load in loads(block)
        if writes(maker, load.buffer)
    ]
    if not reading:
        why = f"it reads nothing that {goal_name(goal)} makes"
        raise ScheduleError(AT, block.name, why, "a loop of what it reads")
    for maker, load in reading:
        tiles = _tiles(block, maker, block_path(AT, func, maker.name), goal)
        _match(block, load, tiles, extents, found)
    return found


def _match(
    block: Block,
    load: Load,
    tiles: Sequence[AxisRange | None],
    extents: Mapping[Var, int],
    found: dict[Var, AxisRange],
) -> None:
    """Adds to `found` which part of its loops the stage can do, given what is made of `load`.

    A loop that is longer, as where a border is added, or shorter is not done in those parts.
    """
    for at, tile, size in zip(load.index, tiles, load.buffer.shape, strict=True):
        if tile is None:
            continue
        if not isinstance(at, Var) or extents.get(at) != size or found.get(at, tile) != tile:
            why = f"it does not read {load.buffer.name} element by element"
            raise ScheduleError(AT, block.name, why, "a loop further out")
        if at in block.reductions:
            why = f"it reduces over {at.name}, of which an iteration has a part only"
            raise ScheduleError(AT, block.name, why, "a loop further out")
        found[at] = tile


def _tiles(block: Block, maker: Block, path: Path, goal: Path) -> list[AxisRange | None]:
    """What one iteration of the goal makes of each dimension; None for all of it.

    Raises:
        ScheduleError: it is not finished then, or the iterations together leave elements out.
    """
    outer = {step.var: step.extent for step in goal.loops}
    inner = {step.var: step.extent for step in path.loops if step.var not in outer}
    reduced = [var.name for var in maker.reductions if var in outer]
    if reduced:
        why = f"{maker.name} goes on reducing over {reduced[0]}"
        raise ScheduleError(AT, block.name, why, f"a loop outside of {reduced[0]}")
    if any(isinstance(step, If) for step in path.steps) or not isinstance(maker.body, Store):
        raise ScheduleError(AT, block.name, f"{maker.name} has a guard", f"{AT} before pad")
    store, used = maker.body, set[Var]()
    tiles = []
    for at, size in zip(store.index, store.buffer.shape, strict=True):
        form = as_affine(at)
        own = set(form.terms) & set(outer) if form else {v for v in outer if _occurs(v, at)}
        tile = _tile(form, size, outer, inner) if own else None
        if own and (tile is None or own & used):
            why = f"iterations of {goal_name(goal)} do not make {store.buffer.name} in tiles"
            raise ScheduleError(AT, block.name, why, "a loop further out")
        used |= own
        tiles.append(tile)
    return tiles


def _occurs(var: Var, expr: Expr) -> bool:
    return var in variables(expr)


def _tile(
    form: Affine | None, size: int, outer: Mapping[Var, int], inner: Mapping[Var, int]
) -> AxisRange | None:
    """The elements of one dimension that inner loops write; None if outer ones leave any out."""
    if form is None:
        return None
    base = form.over(outer)
    offsets = reachable(form.without(outer), inner)
    low, extent = min(offsets), len(offsets)
    starts = reachable(Affine(base.terms, low), outer)
    everything = {start + step for start in starts for step in range(extent)}
    if max(offsets) - low + 1 != extent or everything != set(range(size)):
        return None
    return AxisRange(sum_of(base.terms, low), extent)


def _with_last(loop: For, stmt: Stmt) -> For:
    """The loop with one more thing to do at the end of each iteration."""
    body = in_sequence([loop.body, stmt])
    assert body is not None
    return For(loop.var, loop.extent, body, loop.kind, loop.marks)
