"""Primitives about where data lives: cache_read, cache_write, set_scope, storage_align,
double_buffer.
"""

from __future__ import annotations

from tilefarm.errors import ScheduleError
from tilefarm.target import Target

from compile_worker.ir.annotations import SLOTS, align, skew, without_marks
from compile_worker.ir.expr import Buffer, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.nests import perfect_nest
from compile_worker.ir.stmt import Alloc, Block, For, Seq, Stmt, Store
from compile_worker.ir.visit import replace_buffers
from compile_worker.schedule.guards import (
    one_of,
    only_writer,
    unused_buffer,
    unused_loops,
    unused_stage,
    writes,
)
from compile_worker.schedule.marks import marked
from compile_worker.schedule.places import (
    Path,
    alloc_path,
    below,
    blocks,
    in_sequence,
    reads,
    replaced,
    with_body,
)
from compile_worker.schedule.schedule import Schedule, primitive


@primitive
def cache_read(schedule: Schedule, buffer: str, scope: str) -> Func:
    """Read a buffer through a copy in another memory: a new stage and buffer `<buffer>_<scope>`.

        for j: b[j] = a[j] * 2
    ->                                                          cache_read("a", "inp")
        for a_inp_i0: a_inp[a_inp_i0] = a[a_inp_i0]
        for j: b[j] = a_inp[j] * 2

    Raises:
        ScheduleError: nothing reads the buffer, or its readers and its writer share a loop.
    """
    func = schedule.func
    source = _buffer("cache_read", func, buffer)
    copy = _fresh_buffer(schedule.target, "cache_read", func, source, scope)
    parts = _parts(func)
    readers = [at for at, part in enumerate(parts) if reads(part, source)]
    writers = [at for at, part in enumerate(parts) if _writes(part, source)]
    if not readers:
        raise ScheduleError("cache_read", buffer, "nothing reads it", "cache_write")
    first = next((at for at in readers if at not in writers), None)
    if first is None or any(at >= first for at in writers):
        why = "it is written inside the loops that read it"
        raise ScheduleError("cache_read", buffer, why, "cache_read it before compute_at")
    renamed = [
        replace_buffers(part, {source: copy}) if at >= first else part
        for at, part in enumerate(parts)
    ]
    stage = _copy_nest("cache_read", func, copy.name, copy, source)
    return _with_parts(func, [*renamed[:first], stage, *renamed[first:]], Alloc(copy, stage))


@primitive
def cache_write(schedule: Schedule, buffer: str, scope: str) -> Func:
    """Write a buffer through one in another memory, and a stage that copies it back.

        for j: b[j] = f(j)
    ->                                                          cache_write("b", "acc")
        for j: b_acc[j] = f(j)
        for b_acc_back_i0: b[b_acc_back_i0] = b_acc[b_acc_back_i0]

    Raises:
        ScheduleError: the stage that writes the buffer was moved into a loop before.
    """
    func = schedule.func
    source = _buffer("cache_write", func, buffer)
    copy = _fresh_buffer(schedule.target, "cache_write", func, source, scope)
    parts = _parts(func)
    writer = next((part for part in parts if _writes(part, source)), None)
    if writer is None:
        raise ScheduleError("cache_write", buffer, "nothing writes it", "cache_read")
    if not isinstance(perfect_nest(writer)[1], Block):
        why = "its stage shares loops with other stages, or has a guard"
        raise ScheduleError("cache_write", buffer, why, "cache_write it before that")
    only_writer("cache_write", func, blocks(writer)[0], source)
    at = parts.index(writer)
    stage = _copy_nest("cache_write", func, f"{copy.name}_back", source, copy)
    into = replace_buffers(writer, {source: copy})
    return _with_parts(func, [*parts[:at], into, stage, *parts[at + 1 :]], Alloc(copy, stage))


@primitive
def set_scope(schedule: Schedule, buffer: str, scope: str) -> Func:
    """Keep an intermediate buffer in another memory.

        alloc a: int32[8] local   ->   alloc a: int32[8] acc    set_scope("a", "acc")

    Raises:
        ScheduleError: the buffer is a parameter, or there is no such memory.
    """
    func = schedule.func
    path = alloc_path("set_scope", func, buffer)
    old = _alloc(path).buffer
    _known_scope(schedule.target, "set_scope", old, scope)
    return replace_buffers(func, {old: Buffer(old.name, old.shape, old.dtype, scope)})


@primitive
def double_buffer(schedule: Schedule, buffer: str, slots: int) -> Func:
    """Give a buffer `slots` copies that successive iterations alternate between.

        alloc a: int8[8] inp   ->   alloc a: int8[8] inp {slots=2}      double_buffer("a", 2)

    The next iteration's data can be brought in while this one's are in use. One slot means no
    overlap.

    Raises:
        ScheduleError: not an allocation, or slots the target does not have.
    """
    path = alloc_path("double_buffer", schedule.func, buffer)
    most = schedule.target.limits.buffers
    if not 1 <= slots <= most:
        why = f"{slots} slots, the target has 1 to {most}"
        raise ScheduleError("double_buffer", buffer, why, f"1 to {most}")
    alloc = _alloc(path)
    return replaced(schedule.func, path, marked(alloc, SLOTS(slots)))


@primitive
def storage_align(schedule: Schedule, buffer: str, axis: int, factor: int, offset: int) -> Func:
    """Lay a buffer out so that steps along `axis` are a multiple of `factor` elements, + `offset`.

        alloc a: int8[4, 10] local: a[i, j] is element i*10 + j
    ->                                                          storage_align("a", 0, 16, 0)
        alloc a: int8[4, 10] local {align_0=16}: a[i, j] is element i*16 + j

    Rows then begin where vectors do (offset 0), or each in another cache set than the one before.

    Raises:
        ScheduleError: the buffer is on the chip, where copies leave no gaps; or no such axis.
    """
    path = alloc_path("storage_align", schedule.func, buffer)
    alloc = _alloc(path)
    if alloc.buffer.scope != "local":
        why = f"it is in {alloc.buffer.scope}, where elements lie densely"
        raise ScheduleError("storage_align", buffer, why, "a buffer in local")
    if not 0 <= axis < len(alloc.buffer.shape) - 1:
        why = f"axis {axis} has no distance to choose"
        most = len(alloc.buffer.shape) - 2
        hint = f"0 to {most}" if most >= 0 else "a buffer with more than one axis"
        raise ScheduleError("storage_align", buffer, why, hint)
    if factor < 1 or not 0 <= offset < factor:
        why = f"no distance is {offset} more than a multiple of {factor}"
        raise ScheduleError("storage_align", buffer, why, "a factor from 1, an offset below it")
    others = without_marks(alloc.marks, align(axis), skew(axis))
    skewed = (skew(axis)(offset),) if offset else ()
    marks = (*others, align(axis)(factor), *skewed)
    return replaced(schedule.func, path, Alloc(alloc.buffer, alloc.body, marks))


def allocated(func: Func, buffer: Buffer) -> Func:
    """The function with one more buffer around all that it does."""
    return with_body(func, Alloc(buffer, func.body))


def without_allocation(func: Func, buffer: Buffer) -> Func:
    """The function without the allocation of a buffer that nothing uses any more."""
    for at in below(func.body):
        if isinstance(at, Alloc) and at.buffer is buffer:
            return replaced(func, alloc_path("", func, buffer.name), at.body)
    return func


def _alloc(path: Path) -> Alloc:
    assert isinstance(path.target, Alloc)
    return path.target


def _buffer(primitive: str, func: Func, name: str) -> Buffer:
    """A parameter or allocated buffer by name."""
    for param in func.params:
        if param.name == name:
            return param
    return _alloc(alloc_path(primitive, func, name)).buffer


def _fresh_buffer(target: Target, primitive: str, func: Func, source: Buffer, scope: str) -> Buffer:
    """A buffer like `source` in another memory, with a name that is not taken."""
    _known_scope(target, primitive, source, scope)
    name = f"{source.name}_{scope}"
    unused_buffer(primitive, func, source.name, name)
    return Buffer(name, source.shape, source.dtype, scope)


def _known_scope(target: Target, primitive: str, buffer: Buffer, scope: str) -> None:
    """Refuse a memory that the target has not, or that cannot hold the buffer's type."""
    memories = {each.name: each.dtypes for each in target.model.memories if each.dtypes}
    fitting = ["local", *(name for name, types in memories.items() if buffer.dtype in types)]
    if scope != "local" and scope not in memories:
        raise ScheduleError(
            primitive, buffer.name, f"there is no memory {scope!r}", one_of(fitting)
        )
    if scope not in fitting:
        why = f"{scope} cannot hold {buffer.dtype}"
        raise ScheduleError(primitive, buffer.name, why, one_of(fitting))


def _parts(func: Func) -> list[Stmt]:
    """The statements below all outermost allocations."""
    stmt = func.body
    while isinstance(stmt, Alloc):
        stmt = stmt.body
    return list(stmt.stmts) if isinstance(stmt, Seq) else [stmt]


def _with_parts(func: Func, parts: list[Stmt], alloc: Alloc) -> Func:
    """`func` with other statements below its allocations, and one more allocation around."""
    body = in_sequence(parts)
    assert body is not None
    outer: list[Alloc] = []
    stmt = func.body
    while isinstance(stmt, Alloc):
        outer.append(stmt)
        stmt = stmt.body
    for around in reversed([alloc, *outer]):
        body = Alloc(around.buffer, body, around.marks)
    return with_body(func, body)


def _writes(stmt: Stmt, buffer: Buffer) -> bool:
    return any(writes(block, buffer) for block in blocks(stmt))


def _copy_nest(primitive: str, func: Func, stage: str, into: Buffer, source: Buffer) -> Stmt:
    """The loops and the block that copy a whole buffer, under names that are not taken."""
    unused_stage(primitive, func, stage)
    unused_loops(primitive, func, *(f"{stage}_i{at}" for at in range(len(into.shape))))
    axes = tuple(Var(f"{stage}_i{at}") for at in range(len(into.shape)))
    body: Stmt = Block(stage, Store(into, axes, Load(source, axes)))
    for axis, extent in zip(reversed(axes), reversed(into.shape), strict=True):
        body = For(axis, extent, body)
    return body
