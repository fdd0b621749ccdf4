"""The primitive that makes several stages of one whose block has several statements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tilefarm.errors import ScheduleError
from tilefarm.names import unused

from compile_worker.ir.expr import Buffer, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.independence import distributable, independent
from compile_worker.ir.nests import perfect_nest, with_named_loops, wrap
from compile_worker.ir.node import Node
from compile_worker.ir.reductions import nest_of_block, reduction, statements, stored_places
from compile_worker.ir.stmt import Alloc, For, LoopKind, Seq, Stmt, Store, sequence
from compile_worker.ir.visit import buffers_of, find, mentioned, replace_buffers, rewrite
from compile_worker.schedule.guards import unchanged_nest
from compile_worker.schedule.places import blocks, replaced
from compile_worker.schedule.schedule import Schedule, primitive

_MOST_NBYTES: Final = 1 << 20
"""Of a buffer that gets an axis: more is better computed again and again in one place."""


@primitive
def distribute(schedule: Schedule, stage: str) -> Func:
    """Every statement of a stage becomes a stage of its own, in loops of its own.

        for i in 0:4:                                        distribute("out")
          t[0] = 0
          for k in 0:8: t[0] += x[i, k]
          for j in 0:8: out[i, j] = x[i, j] / t[0]
    ->
        for i in 0:4: for k in 0:8: t[i, 0] += x[i, k]       (from t[i, 0] = 0 on)
        for i in 0:4: for j in 0:8: out[i, j] = x[i, j] / t[i, 0]

    So it is done where a statement needs of others only what the same iteration has stored; every
    element is computed as before. A buffer of an iteration's own gets an axis for the loop where
    several stages use it, and what a stage stores over as a whole is a buffer `<name>_before` until
    then.
    (Loop distribution and scalar expansion: Allen and Kennedy, Optimizing Compilers for Modern
    Architectures, 2001.)

    Raises:
        ScheduleError: the stage is one statement, its statements need other iterations of one
            another, or a buffer would become too large.
    """
    func = schedule.func
    raw, path = unchanged_nest("distribute", func, stage)
    found = _distributed(raw)
    if len(found.parts) < 2:
        why = "it is one statement, or its statements need other iterations of one another"
        raise ScheduleError("distribute", stage, why, "the stage as it is")
    needed = _needed(found)
    parts, before = _with_versions(func, path.target, needed.parts)
    whole = sequence(
        nest_of_block(with_named_loops(part, name, partial(_short, stage)), name)
        for part, name in zip(parts, _names(func, stage, parts), strict=True)
    )
    made = replaced(func, path, whole)
    body = made.body
    for buffer in reversed([*needed.shared, *before]):
        body = Alloc(buffer, body)
    return Func(made.name, made.params, body, made.attrs)


# -- loops around one statement each ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Distributed:
    """Statements that were one, in order, and the buffers that they share."""

    parts: tuple[Stmt, ...]
    shared: tuple[Buffer, ...] = ()

    @property
    def whole(self) -> Stmt:
        """All in one again."""
        stmt = sequence(self.parts)
        for buffer in reversed(self.shared):
            stmt = Alloc(buffer, stmt)
        return stmt


def _distributed(stmt: Stmt) -> _Distributed:
    match stmt:
        case Alloc(buffer, body, ()):
            inner = _distributed(body)
            return _Distributed(inner.parts, (buffer, *inner.shared))
        case Seq(stmts):
            found = [_distributed(each) for each in stmts]
            return _Distributed(
                tuple(_groups([part for each in found for part in each.parts])),
                tuple(buffer for each in found for buffer in each.shared),
            )
        case For(kind=LoopKind.SERIAL):
            return _loop(stmt, _distributed(stmt.body))
        case _:
            return _Distributed((stmt,))


def _loop(loop: For, inner: _Distributed) -> _Distributed:
    """The loop around each part; around all of them where that would take too much memory."""
    parts = _apart(loop.var, inner)
    used = [mentioned(part) for part in parts]
    crossing = [b for b in inner.shared if sum(b in nodes for nodes in used) > 1]
    more = {b: Buffer(b.name, (loop.extent, *b.shape), b.dtype, b.scope) for b in crossing}
    too_much = any(b.nbytes > _MOST_NBYTES for b in more.values())
    if len(parts) < 2 or too_much:
        return _Distributed((For(loop.var, loop.extent, inner.whole, loop.kind),))
    made = []
    for part, nodes in zip(parts, used, strict=True):
        own = tuple(b for b in inner.shared if b in nodes and b not in more)
        body = _Distributed((_moved(part, more, loop.var),), own).whole
        made.append(For(loop.var, loop.extent, body, loop.kind))
    return _Distributed(tuple(made), tuple(more.values()))


def _apart(var: Var, inner: _Distributed) -> list[Stmt]:
    """The parts that may be apart in a loop, each of those together that may not."""
    parts: list[Stmt] = []
    for part in inner.parts:
        bound = [
            at for at, each in enumerate(parts) if not distributable(var, each, part, inner.shared)
        ]
        first = min(bound, default=len(parts))
        parts[first:] = [sequence([*parts[first:], part])]
    return parts


def _needed(found: _Distributed) -> _Distributed:
    """Without what is stored in buffers of an iteration's own and never read."""
    kept: list[Stmt] = []
    for at in reversed(range(len(found.parts))):
        part = found.parts[at]
        own = {*found.shared, *(alloc.buffer for alloc in find(part, Alloc))}
        others = [*found.parts[:at], *kept]
        if any(
            store.buffer not in own or any(store.buffer in mentioned(each) for each in others)
            for store in find(part, Store)
        ):
            kept.insert(0, part)
    used = {buffer for part in kept for buffer in buffers_of(part)}
    return _Distributed(tuple(kept), tuple(b for b in found.shared if b in used))


def _moved(stmt: Stmt, to: Mapping[Buffer, Buffer], var: Var) -> Stmt:
    """The statement with buffers that have one more axis, at the front, for a loop."""

    def loads(node: Node) -> Node | None:
        if isinstance(node, Load) and node.buffer in to:
            return Load(to[node.buffer], (var, *node.index))
        return None

    def stores(node: Node) -> Node | None:
        if isinstance(node, Store) and node.buffer in to:
            return Store(to[node.buffer], (var, *node.index), node.value)
        return None

    return rewrite(rewrite(stmt, loads), stores)


# -- sums and what starts them ---------------------------------------------------------------------


def _groups(stmts: Sequence[Stmt]) -> list[Stmt]:
    """The statements, those that start a sum together with the loop that goes on with it."""
    groups: list[Stmt] = []
    for stmt in stmts:
        starts = _starts(groups, stmt)
        groups = [each for each in groups if not any(each is start for start in starts)]
        groups.append(sequence([*starts, stmt]))
    return groups


def _starts(before: Sequence[Stmt], loop: Stmt) -> list[Stmt]:
    """Of the statements before a loop those that start its sums, if they can be next to it."""
    _, innermost = perfect_nest(loop)
    changed = stored_places(statements(innermost))
    if not isinstance(loop, For) or changed is None:
        return []
    starts: list[Stmt] = [
        each for each in before if isinstance(each, Store) and (each.buffer, each.index) in changed
    ]
    if len(starts) != len(changed) or reduction(sequence([*starts, loop]), "") is None:
        return []
    first = next(at for at, each in enumerate(before) if each is starts[0])
    passed = [each for each in before[first:] if not any(each is start for start in starts)]
    return starts if all(_may_swap(start, each) for start in starts for each in passed) else []


def _may_swap(first: Stmt, second: Stmt) -> bool:
    """Whether two statements touch nothing that the other one stores."""
    stored = [{store.buffer for store in find(stmt, Store)} for stmt in (first, second)]
    return not (stored[0] & mentioned(second) or stored[1] & mentioned(first))


# -- what is stored over ---------------------------------------------------------------------------


def _with_versions(
    func: Func, nest: Stmt, parts: Sequence[Stmt]
) -> tuple[list[Stmt], tuple[Buffer, ...]]:
    """The parts with a buffer of its own for what is stored over as a whole later.

    As they are where other nests know the buffer too.
    """
    made, versions = list(parts), list[Buffer]()
    taken = {at.buffer.name for at in find(func.body, Alloc)} | {p.name for p in func.params}
    taken |= {buffer.name for part in parts for buffer in buffers_of(part)}
    for at in reversed(range(1, len(made))):
        loops, store = perfect_nest(made[at])
        if not isinstance(store, Store) or not _covers(store, loops):
            continue
        old = store.buffer
        stored = any(s.buffer is old for each in made[:at] for s in find(each, Store))
        if not stored or any(old in mentioned(each) for each in _other_nests(func, nest)):
            continue
        name = unused(f"{old.name}_before", taken)
        taken.add(name)
        versions.append(Buffer(name, old.shape, old.dtype, "local"))
        new = {old: versions[-1]}
        ending = wrap(loops, Store(old, store.index, replace_buffers(store.value, new)))
        made[: at + 1] = [*(replace_buffers(each, new) for each in made[:at]), ending]
    return made, tuple(versions)


def _covers(store: Store, loops: Sequence[For]) -> bool:
    """Whether every element is stored, once, by loops that need not one another."""
    extents = {loop.var: loop.extent for loop in loops}
    at = [index for index in store.index if isinstance(index, Var)]
    return (
        len(at) == len(store.index) == len({*at}) == len(loops)
        and all(extents.get(var) == size for var, size in zip(at, store.buffer.shape, strict=True))
        and all(independent(loop.var, store) for loop in loops)
    )


def _other_nests(func: Func, nest: Stmt) -> Iterator[Stmt]:
    body: Stmt = func.body
    while isinstance(body, Alloc):
        body = body.body
    return (each for each in statements(body) if each is not nest)


# -- names -----------------------------------------------------------------------------------------


def _names(func: Func, stage: str, parts: Sequence[Stmt]) -> list[str]:
    """Of the stages: the last has the old name, others that of what they store, or one like it."""
    taken = {block.name for block in blocks(func.body)}
    found: list[str] = []
    for part in parts[:-1]:
        name = unused(next(find(part, Store)).buffer.name, taken)
        taken.add(name)
        found.append(name)
    return [*found, stage]


def _short(stage: str, name: str) -> str:
    """What a loop of a stage is called, without the stage and the number among its namesakes."""
    return re.sub(r"_[0-9]+$", "", name.removeprefix(f"{stage}_"))
