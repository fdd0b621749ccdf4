"""Loops whose iterations touch elements of their own go on side by side, statement by statement.

    for i in 0:64: for j in 0:64: for k in 0:64:         for k in 0:64:
      block out over k                              ->     out[i, j] = out[i, j] + a[i, k] * b[k, j]
        out[i, j] = out[i, j] + a[i, k] * b[k, j]          for all i and j at once

Each iteration still does its own statements in their order, so that sums of floats, and states that
go on along a loop, come out as they would one after the other, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from compile_worker.ir.bulk import nest_at
from compile_worker.ir.evaluate import Array, Value, evaluate, memory_of, place
from compile_worker.ir.expr import Buffer, Load, Var
from compile_worker.ir.independence import independent
from compile_worker.ir.nests import outermost_loops
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Block, For, If, Seq, Stmt, Store
from compile_worker.ir.visit import find, rewrite, variables

LIMIT: Final = 1 << 20
"""Iterations side by side, at most: it bounds the memory that this takes."""

_KNOWN: Final = (Alloc, Block, For, If, Seq, Store)


@dataclass(frozen=True, slots=True)
class Lockstep:
    """A nest of loops, some of which go side by side.

    Attributes:
        lanes: the iterations of those, along an axis of an array each.
        shape: their extents; `body` is everything inside of the nest, the other loops around it.
    """

    lanes: Mapping[Var, Value]
    shape: tuple[int, ...]
    body: Stmt


def lockstep_at(loop: For) -> Lockstep | None:
    """The nest that starts at a loop, if some of its loops can go side by side."""
    loops: list[For] = []
    at: Stmt = loop
    while isinstance(at, For):
        loops.append(at)
        at = at.body
    if not all(isinstance(each, _KNOWN) for each in find(loop, Stmt)):
        return None
    if any(alloc.buffer.on_chip for alloc in find(loop, Alloc)):
        return None
    beside = [each for each in loops if each.extent > 1 and independent(each.var, at)]
    while math.prod(each.extent for each in beside) > LIMIT:
        del beside[0]
    if not beside or _starts_by(loop, {each.var for each in beside}):
        return None
    if _shorter_than_inside(math.prod(each.extent for each in beside), at):
        return None
    body = _with_room(at, beside)
    for each in reversed([each for each in loops if each not in beside]):
        body = For(each.var, each.extent, body)
    lanes: dict[Var, Value] = {}
    for axis, each in enumerate(beside):
        shape = [1] * len(beside)
        shape[axis] = each.extent
        lanes[each.var] = np.arange(each.extent, dtype=np.int64).reshape(shape)
    return Lockstep(lanes, tuple(each.extent for each in beside), body)


def _shorter_than_inside(lanes: int, body: Stmt) -> bool:
    """Whether all loops in a body are done at once themselves, and one has more iterations."""
    inside = list(outermost_loops(body))
    if not inside or any(nest_at(loop) is None for loop in inside):
        return False
    return any(math.prod(each.extent for each in find(loop, For)) > lanes for loop in inside)


def _starts_by(loop: For, lanes: set[Var]) -> bool:
    """Whether a block begins anew for some of the lanes and not for others."""
    blocks = find(loop, Block)
    return any(variables(each) & lanes for block in blocks for each in block.reductions)


def _with_room(body: Stmt, beside: list[For]) -> Stmt:
    """The body whose own buffers have an element for every lane."""
    extents = tuple(each.extent for each in beside)
    at = tuple(each.var for each in beside)
    wide = {
        alloc.buffer: Buffer(
            alloc.buffer.name,
            (*extents, *alloc.buffer.shape),
            alloc.buffer.dtype,
            alloc.buffer.scope,
        )
        for alloc in find(body, Alloc)
    }

    def rule(node: Node) -> Node | None:
        match node:
            case Load(buffer, index) if buffer in wide:
                return Load(wide[buffer], (*at, *(rewrite(each, rule) for each in index)))
            case Store(buffer, index, value) if buffer in wide:
                inner = (rewrite(each, rule) for each in index)
                return Store(wide[buffer], (*at, *inner), rewrite(value, rule))
            case Alloc(buffer, inside) if buffer in wide:
                return Alloc(wide[buffer], rewrite(inside, rule), node.marks)
            case _:
                return None

    return rewrite(body, rule) if wide else body


def run_lockstep(
    nest: Lockstep,
    values: Mapping[Var, Value],
    memory: dict[Buffer, Array],
    garbage: Callable[[Buffer], Array],
) -> None:
    """Does the whole nest; `garbage` is what a buffer holds that begins in it."""
    _Lanes({**values, **nest.lanes}, memory, nest.shape, garbage).run(nest.body, None)


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Loop variables, of which some are arrays, and memory, while a nest runs."""

    values: dict[Var, Value]
    memory: dict[Buffer, Array]
    shape: tuple[int, ...]
    garbage: Callable[[Buffer], Array]

    def run(self, stmt: Stmt, where: Array | None) -> None:
        """Does a statement for the lanes where `where` is true; for all if it is None."""
        match stmt:
            case Seq(stmts):
                for each in stmts:
                    self.run(each, where)
            case For(var=var, extent=extent, body=body):
                for value in range(extent):
                    self.values[var] = value
                    self.run(body, where)
                del self.values[var]
            case Block(body=body, init=init, reductions=reductions):
                starts = [evaluate(each, self.values, self.memory) == 0 for each in reductions]
                if init is not None and all(starts):
                    self.run(init, where)
                self.run(body, where)
            case If(condition=condition):
                self._branch(evaluate(condition, self.values, self.memory, where), stmt, where)
            case Alloc(buffer, body):
                self.memory[buffer] = self.garbage(buffer)
                self.run(body, where)
                del self.memory[buffer]
            case Store():
                self._store(stmt, where)

    def _branch(self, holds: Value, stmt: If, where: Array | None) -> None:
        if isinstance(holds, int) or holds.ndim == 0:
            chosen = stmt.then if holds else stmt.otherwise
            if chosen is not None:
                self.run(chosen, where)
            return
        yes = np.broadcast_to(holds, self.shape)
        self.run(stmt.then, yes if where is None else yes & where)
        if stmt.otherwise is not None:
            self.run(stmt.otherwise, ~yes if where is None else ~yes & where)

    def _store(self, store: Store, where: Array | None) -> None:
        new = evaluate(store.value, self.values, self.memory, where)
        at = place(store.buffer, store.index, self.values, self.memory, where)
        held = memory_of(store.buffer, self.memory)
        if where is None and np.broadcast_shapes(*map(np.shape, at)) == self.shape:
            held[at] = new
            return
        lanes = [np.broadcast_to(each, self.shape) for each in at]
        chosen = np.ones(self.shape, bool) if where is None else where
        held[tuple(each[chosen] for each in lanes)] = np.broadcast_to(new, self.shape)[chosen]
