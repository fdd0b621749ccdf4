"""Rows of a script: its nests as they are written, and the loops that need nothing of one another.

    for i: for k: out[i] += x[i, k]         i is free, k is not; x is read along k, apart along i

What a space in lockstep is about, for nests that cannot be tiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

from compile_worker.ir.affine import as_affine
from compile_worker.ir.expr import Buffer, Expr, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.independence import independent, may_be_outermost
from compile_worker.ir.nests import Loops, outermost_loops, perfect_nest
from compile_worker.ir.reductions import as_written
from compile_worker.ir.stmt import Alloc, For, If, Stmt, Store
from compile_worker.ir.visit import find, mentioned, variables
from compile_worker.machines.cpu.space.script_stages import Stage, all_stages
from compile_worker.passes.flatten import LOCAL_NBYTES

_MUCH: Final = 0.4
"""Of the work, in stages that no tile changes: a tile is of no use then."""

_MOSTLY: Final = 0.6
"""Of the work, in loops along which vectors run: nests are good as they are written then."""

_LEAST_SHARE: Final = 0.02
"""Of all that a script does, for a nest to be worth a choice."""


@dataclass(frozen=True)
class Rows:
    """A nest of a script and the loops whose iterations need not one another, outermost first."""

    stage: Stage
    free: Loops

    @property
    def name(self) -> str:
        return self.stage.name

    @cached_property
    def written(self) -> Stmt:
        return as_written(self.stage.loops, self.stage.block)

    @cached_property
    def work(self) -> int:
        """How often its innermost statements are done."""
        return _work(self.written)

    @cached_property
    def own(self) -> frozenset[Buffer]:
        """The buffers that each iteration has for itself."""
        return frozenset(alloc.buffer for alloc in find(self.written, Alloc))

    @cached_property
    def own_nbytes(self) -> int:
        return sum(buffer.nbytes for buffer in self.own)

    @cached_property
    def keeps_vectors(self) -> bool:
        """Whether an iteration has more for itself than single numbers."""
        return any(prod(buffer.shape) > 1 for buffer in self.own)

    def branches(self, var: Var) -> bool:
        """Whether iterations part ways to store results, which they then do one by one."""
        return any(
            var in variables(branch.condition) or mentioned(branch.condition) & self.own
            for branch in find(self.written, If)
            if any(store.buffer not in self.own for store in find(branch, Store))
        )

    def neighbours(self, var: Var) -> int:
        """How many more places are beside those of the next iteration than are apart from them."""
        places: list[Load | Store] = [*find(self.written, Load), *find(self.written, Store)]
        return sum(_nearness(at.index, var) for at in places if at.buffer not in self.own)

    @cached_property
    def runs_along_neighbours(self) -> bool:
        """Whether most of the work is in innermost loops that are ones for vectors already."""
        good = sum(
            times
            for loop, times in _innermost(self.written, 1)
            if independent(loop.var, loop.body) and self.neighbours(loop.var) > 0
        )
        return good > _MOSTLY * self.work


def fits_stack(func: Func) -> bool:
    """Whether a function has a program as it is written."""
    return all(alloc.buffer.nbytes <= LOCAL_NBYTES for alloc in find(func.body, Alloc))


def is_in_sequence(func: Func) -> bool:
    """Whether much of the work is in stages of several statements, which no tile changes."""
    works = [(stage, Rows(stage, ()).work) for stage in all_stages(func)]
    stuck = sum(work for stage, work in works if not isinstance(stage.block.body, Store))
    return stuck > _MUCH * sum(work for _, work in works)


def rows_of(func: Func) -> tuple[Rows, ...]:
    """The nests of a function in which loops are free, but for those that hardly take any time."""
    found = [Rows(stage, _free(stage)) for stage in all_stages(func)]
    least = sum(each.work for each in found) * _LEAST_SHARE
    return tuple(each for each in found if each.free and each.work >= least)


def _free(stage: Stage) -> Loops:
    loops, held = perfect_nest(as_written(stage.loops, stage.block))
    found = (loop for loop in loops if may_be_outermost(loop, loops, held))
    return tuple(loop for loop in found if loop.extent > 1)


def _work(stmt: Stmt) -> int:
    loops, held = perfect_nest(stmt)
    inner = [_work(each) for each in outermost_loops(held)]
    return prod(loop.extent for loop in loops) * max(1, sum(inner))


def _innermost(stmt: Stmt, times: int) -> Iterator[tuple[For, int]]:
    """Loops that hold no others, and how often they iterate where `stmt` is done so often."""
    for loop in outermost_loops(stmt):
        all_times = times * loop.extent
        if next(outermost_loops(loop.body), None) is None:
            yield loop, all_times
        else:
            yield from _innermost(loop.body, all_times)


def _nearness(index: Sequence[Expr], var: Var) -> int:
    """1 where the next iteration is at the next element, 0 at the same one, -1 further away."""
    steps = [_step(each, var) for each in index]
    if any(steps[:-1]) or None in steps:
        return -1
    return 1 if steps[-1] == 1 else -1 if steps[-1] else 0


def _step(index: Expr, var: Var) -> int | None:
    form = as_affine(index)
    return None if form is None else form.terms.get(var, 0)
