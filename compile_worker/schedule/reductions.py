"""Primitives that take reductions apart: decompose_reduction, rfactor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tilefarm.errors import ScheduleError

from compile_worker.ir.expr import Add, Buffer, Const, Expr, Load, Max, Min, Var, index
from compile_worker.ir.func import Func
from compile_worker.ir.reduction_start import start_of
from compile_worker.ir.stmt import Block, For, Stmt, Store, sequence
from compile_worker.ir.visit import find, variables
from compile_worker.schedule.guards import unused_buffer, unused_loops, unused_stage
from compile_worker.schedule.places import (
    Path,
    below,
    block_path,
    block_target,
    blocks,
    loop_path,
    nest_path,
    rebind,
    replaced,
)
from compile_worker.schedule.schedule import Schedule, primitive
from compile_worker.schedule.storage import allocated

_LEGAL: Final = "s[at] = s[at] + f, max(s[at], f) or min(s[at], f) from 0 or another constant on"


@primitive
def decompose_reduction(schedule: Schedule, stage: str, loop: str) -> Func:
    """Start a reduction in a stage of its own, `<stage>_init`, just before a loop around it.

        for i: for k: block s {init: s[i] = 0}: s[i] = s[i] + a[i, k]
    ->                                                          decompose_reduction("s", "k")
        for i:
          block s_init: s[i] = 0
          for k: block s: s[i] = s[i] + a[i, k]

    Lowering does so before the outermost loop that reduces, unless it has been done.

    Raises:
        ScheduleError: the stage does not reduce, or the loop is not around it, or is inside of one
            that it reduces over.
    """
    name = "decompose_reduction"
    path = block_path(name, schedule.func, stage)
    block = block_target(path)
    if block.init is None:
        raise ScheduleError(name, stage, "it starts nothing", _stages_with_init(schedule.func))
    goal = loop_path(name, schedule.func, loop)
    around = [each.var.name for each in path.loops]
    if goal.target not in path.steps:
        raise ScheduleError(name, stage, f"{loop} is not around it", f"one of {', '.join(around)}")
    above = [each.var for each in goal.loops[:-1] if each.var in block.reductions]
    if above:
        why = f"{loop} is inside {above[0].name}, over which it reduces"
        legal = around[: around.index(above[0].name) + 1]
        raise ScheduleError(name, stage, why, f"one of {', '.join(legal)}")
    unused_stage(name, schedule.func, f"{stage}_init")
    start = start_of(block, path.within(goal.target).steps)
    new = [step.var.name for step in below(start) if isinstance(step, For)]
    unused_loops(name, schedule.func, *new)
    update = Block(block.name, block.body, None, block.reductions, block.marks)
    inner = replaced_below(path.within(goal.target), update)
    return replaced(schedule.func, goal, sequence((start, inner)))


def _stages_with_init(func: Func) -> str:
    names = [block.name for block in blocks(func.body) if block.init is not None]
    return f"one of {', '.join(names)}" if names else "no stage here does"


def replaced_below(path: Path, new: Stmt) -> Stmt:
    """The first statement of a path with its last one replaced."""
    whole = Func("", (), path.steps[0])
    return replaced(whole, path, new).body


@primitive
def rfactor(schedule: Schedule, stage: str, loop: str) -> Func:
    """Let one loop of a reduction count apart: partial results for each of its iterations.

        for i: for k in 0:2: for l: block s: s[i] = s[i] + a[i, k, l]
    ->                                                          rfactor("s", "k")
        for i: for k in 0:2: for l: block s_rf: s_rf[k, i] = s_rf[k, i] + a[i, k, l]
        for i_rf: for k_rf in 0:2: block s: s[i_rf] = s[i_rf] + s_rf[k_rf, i_rf]

    The loop does not reduce any more: it may be vectorized, bound or made parallel.

    Raises:
        ScheduleError: the loop is none that the stage reduces over; floats, whose sum depends on
            the order; a stage with guards or with other stages in its loops.
    """
    path = block_path("rfactor", schedule.func, stage)
    block = block_target(path)
    nest = path.within(nest_path(path).target)
    factored = _factored(schedule.func, block, nest, loop)
    parts = sequence((factored.partial(nest), factored.total(nest)))
    return allocated(replaced(schedule.func, nest_path(path), parts), factored.buffer)


@dataclass(frozen=True, slots=True)
class _Factored:
    """A reduction s = combine(s, value), and the buffer that holds its parts by `loop`."""

    block: Block
    loop: For
    buffer: Buffer
    fresh: Mapping[Var, Var]

    @property
    def _store(self) -> Store:
        assert isinstance(self.block.body, Store)
        return self.block.body

    def partial(self, nest: Path) -> Stmt:
        """The same loops around the block that combines within one iteration of `loop`."""
        start = self.block.init
        assert isinstance(start, Store)
        at = (self.loop.var, *self._store.index)
        combined = _combined(self._store, self.buffer[at])
        over = tuple(var for var in self.block.reductions if var is not self.loop.var)
        init = Store(self.buffer, at, start.value)
        body = Store(self.buffer, at, combined)
        return replaced_below(nest, Block(f"{self.block.name}_rf", body, init, over))

    def total(self, nest: Path) -> Stmt:
        """Combines the parts: over the loops that do not reduce, and over `loop` innermost."""
        element = self.buffer[(self.loop.var, *self._store.index)]
        store = self._store
        body = Store(store.buffer, store.index, _with(store, element))
        work = Block(self.block.name, body, self.block.init, (self.loop.var,), self.block.marks)
        spatial = [step for step in nest.loops if step.var not in self.block.reductions]
        whole: Stmt = work
        for step in reversed((*spatial, self.loop)):
            whole = For(step.var, step.extent, whole)
        values: dict[Var, Expr] = dict(self.fresh)
        renamed = rebind(whole, values, {self.loop.var: (self.fresh[self.loop.var],)})
        return _with_loops(renamed, self.fresh)


def _with_loops(stmt: Stmt, fresh: Mapping[Var, Var]) -> Stmt:
    """Loops over the fresh variables in place of the others."""
    if not isinstance(stmt, For):
        return stmt
    var = fresh.get(stmt.var, stmt.var)
    return For(var, stmt.extent, _with_loops(stmt.body, fresh), stmt.kind, stmt.marks)


def _factored(func: Func, block: Block, nest: Path, loop: str) -> _Factored:
    """The parts of a reduction, given that it can be taken apart at `loop`."""
    name = "rfactor"
    over = [step.var.name for step in nest.loops if step.var in block.reductions]
    target = next((step for step in nest.loops if step.var.name == loop), None)
    if set(block.reductions) - {step.var for step in nest.loops}:
        why = "guards or other stages are in its loops"
        raise ScheduleError(name, block.name, why, f"{name} it before them")
    if target is None or target.var not in block.reductions:
        hint = f"one of {', '.join(over)}" if over else "a stage that reduces in loops of its own"
        raise ScheduleError(name, block.name, f"it does not reduce over {loop}", hint)
    store, start = block.body, block.init
    if not isinstance(store, Store) or not isinstance(start, Store):
        raise ScheduleError(name, block.name, "it is not a sum or maximum with its start", _LEGAL)
    if store.value.dtype.is_float:
        why = "it reduces floats, and another order rounds differently"
        raise ScheduleError(name, block.name, why, "integers, or an order that stays")
    if not _is_neutral(store, start):
        raise ScheduleError(name, block.name, "it does not start from a neutral element", _LEGAL)
    if variables(Store(store.buffer, store.index, index(0))) & set(block.reductions):
        raise ScheduleError(name, block.name, "where it stores depends on what it reduces", _LEGAL)
    spatial = [step.var for step in nest.loops if step.var not in block.reductions]
    fresh = {var: Var(f"{var.name}_rf") for var in (*spatial, target.var)}
    unused_loops(name, func, *(var.name for var in fresh.values()))
    scope = "local" if store.buffer.scope == "dram" else store.buffer.scope
    shape = (target.extent, *store.buffer.shape)
    buffer = Buffer(f"{block.name}_rf", shape, store.buffer.dtype, scope)
    unused_buffer(name, func, block.name, buffer.name)
    unused_stage(name, func, buffer.name)
    return _Factored(block, target, buffer, fresh)


def _is_neutral(store: Store, start: Store) -> bool:
    """Whether a block combines its own element with something, from a neutral element on."""
    value = store.value
    own = Load(store.buffer, store.index)
    if not isinstance(value, Add | Max | Min) or value.left is not own:
        return False
    if own in find(value.right, Load) or not isinstance(start.value, Const):
        return False
    return start.value.value == 0 if isinstance(value, Add) else True


def _combined(store: Store, element: Load) -> Expr:
    """The value of a reduction's store with another element in place of its own."""
    value = store.value
    assert isinstance(value, Add | Max | Min)
    return type(value)(element, value.right)


def _with(store: Store, element: Load) -> Expr:
    """A reduction's own element combined with another."""
    value = store.value
    assert isinstance(value, Add | Max | Min)
    return type(value)(value.left, element)
