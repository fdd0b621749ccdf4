"""Local buffers share memory: one takes the place of another that is dead, or dies as it is born.

    alloc a[8]: alloc b[4]: alloc c[4]         alloc a[8]: alloc b[4]:
      for i: a[i] = x[i]                         for i: a[i] = x[i]
      for j: b[j] = a[2*j] + a[2*j + 1]   ->     for j: b[j] = a[2*j] + a[2*j + 1]
      for k: c[k] = b[k] * b[k]                  for k: a[k] = b[k] * b[k]
      for l: out[l] = c[l]                       for l: out[l] = a[l]

`a` is dead when `c` is born. Were it not, `c` could take the place of `b`, which dies as `c` is
born: in place, each element is written once, from the other buffer's element at the same index
only. The outermost of those that share gives the name, the largest the size.

The accelerator's memories need no such thing. What its ALU computes in place shares a buffer before
it is an instruction (merge_in_place); operands that would take the place of dead ones would have to
wait for them, and loads are there to run ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tilefarm.target import Target

from compile_worker.ir.affine import as_affine
from compile_worker.ir.expr import Buffer, Load
from compile_worker.ir.func import Func
from compile_worker.ir.nests import Loops
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Seq, Store, sequence
from compile_worker.ir.visit import find, replace_buffers, rewrite_statements
from compile_worker.passes.liveness import Home, Line, Positions, Touch, line
from compile_worker.passes.nests import of_kind

_LEAST: Final = 2
"""Fewer local buffers have nobody to share with."""


@dataclass(slots=True)
class _Shared:
    """Buffers in one piece of memory: the home and name of the first, and who lives when."""

    home: Home
    lives: list[tuple[Buffer, Positions]]

    @property
    def buffer(self) -> Buffer:
        first = self.home.alloc.buffer
        size = max(buffer.shape[0] for buffer, _ in self.lives)
        return Buffer(first.name, (size,), first.dtype, first.scope)


def rewrite_storage(func: Func, target: Target) -> Func:
    """Let local buffers of one type and one home share memory where their lives allow it."""
    del target
    if sum(alloc.buffer.scope == "local" for alloc in of_kind(func.body, Alloc)) < _LEAST:
        return func
    found = line(func.body)
    shared = [group for group in _groups(found) if len(group.lives) > 1]
    if not shared:
        return func
    outermost = {group.home.alloc.buffer: group.buffer for group in shared}
    merged = {buffer: group.buffer for group in shared for buffer, _ in group.lives}

    def rule(node: Node) -> Node | None:
        match node:
            case Alloc(buffer, body, marks) if buffer in outermost:
                return Alloc(outermost[buffer], body, marks)
            case Alloc(buffer, body) if buffer in merged:
                return body
            case Seq(stmts):
                return sequence(stmts)
            case _:
                return None

    body = replace_buffers(rewrite_statements(func.body, rule), _others(merged))
    return Func(func.name, func.params, body, func.attrs)


def _others(merged: Mapping[Buffer, Buffer]) -> dict[Buffer, Buffer]:
    return {old: new for old, new in merged.items() if old is not new}


def _groups(found: Line) -> list[_Shared]:
    """Every local buffer in the first piece of memory that is free for it, by order of birth."""
    lives = [(home, life) for home in found.homes if (life := found.life(home)) and _local(home)]
    groups: list[_Shared] = []
    for home, life in sorted(lives, key=lambda each: (each[1].first, each[1].last)):
        buffer = home.alloc.buffer
        for group in groups:
            if _may_join(home, life, group, found):
                group.lives.append((buffer, life))
                break
        else:
            groups.append(_Shared(home, [(buffer, life)]))
    return [_from_outermost(group, found) for group in groups]


def _local(home: Home) -> bool:
    buffer = home.alloc.buffer
    return buffer.scope == "local" and len(buffer.shape) == 1


def _from_outermost(group: _Shared, found: Line) -> _Shared:
    """The group with that home of its buffers that is around the others."""
    members = {buffer for buffer, _ in group.lives}
    home = next(home for home in found.homes if home.alloc.buffer in members)
    return _Shared(home, group.lives)


def _may_join(home: Home, life: Positions, group: _Shared, found: Line) -> bool:
    """Whether a buffer can have the group's memory: one home, and nobody in it when it is born."""
    first = group.home
    together = home.span in first.span or first.span in home.span
    alike = first.alloc.buffer.dtype is home.alloc.buffer.dtype and first.loops == home.loops
    if not together or not alike or first.alloc.marks != home.alloc.marks:
        return False
    return all(
        other.last < life.first
        or life.last < other.first
        or _in_place(buffer, other, home, life, found)
        for buffer, other in group.lives
    )


def _in_place(dying: Buffer, death: Positions, home: Home, life: Positions, found: Line) -> bool:
    """Whether the nest that a buffer dies in writes the new one element by element, in place."""
    born = home.alloc.buffer
    touches = [
        touch
        for touch in found.touches[life.first : death.last + 1]
        if {dying, born} & (touch.reads | touch.writes)
    ]
    if len(touches) != 1 or not death.first < life.first <= death.last:
        return False
    (touch,) = touches
    depth = len(home.loops)
    alone = Positions(touch.position, touch.position)
    nest = touch.spans[depth] if len(touch.spans) > depth else alone
    return (nest.first, nest.last) == (life.first, death.last) and _same_element(
        touch, dying, born, touch.loops[depth:]
    )


def _same_element(touch: Touch, dying: Buffer, born: Buffer, loops: Loops) -> bool:
    """Whether each iteration writes an element of its own, and reads none but that one."""
    store = touch.stmt
    if not isinstance(store, Store) or store.buffer is not born or born in touch.reads:
        return False
    reads = [load for load in find(store.value, Load) if load.buffer is dying]
    if any(load.index != store.index for load in reads):
        return False
    return _is_injective(store, loops)


def _is_injective(store: Store, loops: Loops) -> bool:
    """Whether no two iterations of the loops write the same element."""
    place = as_affine(store.index[0])
    if place is None:
        return False
    moving = [loop for loop in loops if loop.extent > 1]
    if any(loop.var not in place.terms for loop in moving):
        return False
    reach = 0
    for step, extent in sorted((abs(place.terms[loop.var]), loop.extent) for loop in moving):
        if step <= reach:
            return False
        reach += step * (extent - 1)
    return True
