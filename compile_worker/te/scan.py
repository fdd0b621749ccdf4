"""Recurrences: a state that goes on along an axis, each step from the one before.

    scan("sums", 10, {"n": 4},
         init=lambda n: x[n, 0],
         update=lambda before, t, n: before(n) + x[n, t])

    for sums_init_n in 0:4: block sums_init: sums[0, n] = x[n, 0]
    for sums_t in 0:9: for sums_n in 0:4: block sums over sums_t
      sums[t + 1, n] = sums[t, n] + x[n, t + 1]

The result has the steps as its first axis. The block is said to reduce over its steps, so that no
schedule reorders them or does two at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilefarm.plural import plural

from compile_worker.ir.expr import Buffer, Expr, ExprLike, Load, Var, index
from compile_worker.ir.stmt import Block, Stmt, Store, sequence
from compile_worker.ir.visit import find
from compile_worker.te.nest import loops
from compile_worker.te.tensor import Axis, Tensor
from compile_worker.te.work import ExpressionError, Work


def scan(
    name: str,
    steps: int,
    axes: Mapping[str, int],
    *,
    init: Callable[..., Expr],
    update: Callable[..., Expr],
    scope: str = "local",
) -> Work:
    """The tensor [steps, *axes] of all states of a recurrence.

    Args:
        name: of the tensor and of the block that updates; the one that starts is `<name>_init`.
        steps: how many states there are, the first one included.
        axes: axes of one state and their extents.
        init: the element of the first state at the coordinates of a state.
        update: `update(before, step, *coordinates)` is the element of state `step`, from 1 on;
            `before(*coordinates)` is an element of the state before.

    Raises:
        ExpressionError: no steps, or a start and an update of different types.
    """
    if steps < 1:
        raise ExpressionError(f"scan {name} has {plural(steps, 'step')}", "at least one: the start")
    first = _axes(f"{name}_init", axes)
    start = init(*(axis.var for axis in first))
    buffer = Buffer(name, (steps, *axes.values()), start.dtype, scope)
    at = (index(0), *(axis.var for axis in first))
    begin = loops(first, Block(f"{name}_init", Store(buffer, at, start)))
    if steps == 1:
        return Work((Tensor(buffer),), begin)
    return Work((Tensor(buffer),), sequence((begin, _updates(buffer, axes, update))))


def _updates(buffer: Buffer, axes: Mapping[str, int], update: Callable[..., Expr]) -> Stmt:
    """The nest of all steps after the first."""
    name, step = buffer.name, Axis(Var(f"{buffer.name}_t"), buffer.shape[0] - 1)
    own = _axes(name, axes)
    at = tuple(axis.var for axis in own)
    before = _Before(buffer, step.var)
    value = update(before, step.var + 1, *at)
    if value.dtype is not buffer.dtype:
        what = f"scan {name} starts with {buffer.dtype} and goes on with {value.dtype}"
        raise ExpressionError(what, f"an update of type {buffer.dtype}")
    over = (step.var, *(() if _at_own_place(buffer, value, at) else at))
    store = Store(buffer, (step.var + 1, *at), value)
    return loops((step, *own), Block(name, store, None, over))


@dataclass(frozen=True, slots=True)
class _Before:
    """The state before, to be read at any coordinates."""

    buffer: Buffer
    step: Var

    def __call__(self, *at: ExprLike) -> Load:
        return self.buffer[(self.step, *at)]


def _at_own_place(buffer: Buffer, value: Expr, at: tuple[Var, ...]) -> bool:
    """Whether an element of a state depends on the same element of the state before only."""
    return all(load.index[1:] == at for load in find(value, Load) if load.buffer is buffer)


def _axes(stage: str, axes: Mapping[str, int]) -> tuple[Axis, ...]:
    return tuple(Axis(Var(f"{stage}_{name}"), extent) for name, extent in axes.items())
