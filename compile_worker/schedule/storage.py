"""Primitives about where data lives: cache_read, cache_write, set_scope, double_buffer."""

from __future__ import annotations

from tilefarm.errors import ScheduleError

from compile_worker.ir.expr import Buffer, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, Block, For, Seq, Stmt, Store
from compile_worker.ir.visit import replace_buffers
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

SCOPES = ("dram", "local", "inp", "wgt", "acc")


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
    copy = _fresh_buffer("cache_read", func, source, scope)
    parts = _parts(func)
    readers = [at for at, part in enumerate(parts) if reads(part, source)]
    writers = [at for at, part in enumerate(parts) if _writes(part, source)]
    if not readers:
        raise ScheduleError("cache_read", buffer, "nothing reads it")
    first = next((at for at in readers if at not in writers), None)
    if first is None or any(at >= first for at in writers):
        raise ScheduleError("cache_read", buffer, "it is written inside the loops that read it")
    renamed = [
        replace_buffers(part, {source: copy}) if at >= first else part
        for at, part in enumerate(parts)
    ]
    stage = _copy_nest(copy.name, copy, source)
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
    copy = _fresh_buffer("cache_write", func, source, scope)
    parts = _parts(func)
    writer = next((part for part in parts if _writes(part, source)), None)
    if writer is None:
        raise ScheduleError("cache_write", buffer, "nothing writes it")
    if not isinstance(_innermost(writer), Block):
        raise ScheduleError("cache_write", buffer, "its stage shares loops with other stages")
    at = parts.index(writer)
    stage = _copy_nest(f"{copy.name}_back", source, copy)
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
    _known_scope("set_scope", buffer, scope)
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
        raise ScheduleError("double_buffer", buffer, f"{slots} slots, not 1 to {most}")
    alloc = _alloc(path)
    marks = (*(mark for mark in alloc.marks if mark[0] != "slots"), ("slots", slots))
    return replaced(schedule.func, path, Alloc(alloc.buffer, alloc.body, marks))


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


def _fresh_buffer(primitive: str, func: Func, source: Buffer, scope: str) -> Buffer:
    """A buffer like `source` in another memory, with a name that is not taken."""
    _known_scope(primitive, source.name, scope)
    name = f"{source.name}_{scope}"
    taken = {at.buffer.name for at in below(func.body) if isinstance(at, Alloc)}
    if name in taken | {param.name for param in func.params}:
        raise ScheduleError(primitive, source.name, f"there already is a buffer {name}")
    return Buffer(name, source.shape, source.dtype, scope)


def _known_scope(primitive: str, buffer: str, scope: str) -> None:
    if scope not in SCOPES:
        why = f"there is no memory {scope!r}"
        raise ScheduleError(primitive, buffer, why, f"one of {', '.join(SCOPES)}")


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


def _innermost(stmt: Stmt) -> Stmt:
    """What a nest of loops holds."""
    while isinstance(stmt, For):
        stmt = stmt.body
    return stmt


def _writes(stmt: Stmt, buffer: Buffer) -> bool:
    return any(
        isinstance(block.body, Store) and block.body.buffer is buffer for block in blocks(stmt)
    )


def _copy_nest(stage: str, into: Buffer, source: Buffer) -> Stmt:
    """The loops and the block that copy a whole buffer."""
    axes = tuple(Var(f"{stage}_i{at}") for at in range(len(into.shape)))
    body: Stmt = Block(stage, Store(into, axes, Load(source, axes)))
    for axis, extent in zip(reversed(axes), reversed(into.shape), strict=True):
        body = For(axis, extent, body)
    return body
