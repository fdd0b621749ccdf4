"""Several outputs of one computation: elements that are made, or reduced, together.

    best, where = joint("best where".split(), {"n": 4}, lambda n: Joint(
        over={"k": 10},
        start=(i32(-128), index(0)),
        combine=lambda old, new: (Max(old[0], new[0]), Select(old[0] < new[0], new[1], old[1])),
        elements=lambda k: (x[n, k], k)))

is one block that writes both:

    for best_n: for best_k: block best over best_k
      init: best[n] = -128; where[n] = 0
      where[n] = select(best[n] < x[n, k], k, where[n]); best[n] = max(best[n], x[n, k])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tilefarm.plural import plural

from compile_worker.ir.expr import Buffer, Expr, Load, Var, index
from compile_worker.ir.stmt import Alloc, Block, Stmt, Store, sequence
from compile_worker.ir.visit import find, rewrite
from compile_worker.te.nest import loops
from compile_worker.te.tensor import Axis, Tensor
from compile_worker.te.work import ExpressionError, Work

Values: TypeAlias = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Joint:
    """Several values combined together over axes that the results do not have.

    `combine` gets what there is and what comes next, and gives what there is then; each of its
    results may depend on all of them.
    """

    over: Mapping[str, int]
    start: Values
    combine: Callable[[Values, Values], Values]
    elements: Callable[..., Values]


def joint(
    names: Sequence[str],
    axes: Mapping[str, int],
    element: Callable[..., Values | Joint],
    *,
    scope: str = "local",
) -> Work:
    """Tensors whose elements at the same coordinates come about together.

    Loop variables are named `<first name>_<axis>`, and the block as the first tensor.

    Raises:
        ExpressionError: `element` gives another number of values than there are names.
    """
    bound = _axes(names[0], axes)
    made = element(*(axis.var for axis in bound))
    at = tuple(axis.var for axis in bound)
    shape = tuple(axis.extent for axis in bound)
    values = made.start if isinstance(made, Joint) else made
    _as_many(names, values)
    buffers = [Buffer(n, shape, v.dtype, scope) for n, v in zip(names, values, strict=True)]
    stores = _stores(buffers, at, values)
    if isinstance(made, Joint):
        reduced = _axes(names[0], made.over)
        old = tuple(buffer[at] for buffer in buffers)
        new = made.combine(old, made.elements(*(axis.var for axis in reduced)))
        _as_many(names, new)
        body = _together(_stores(buffers, at, new))
        over = tuple(axis.var for axis in reduced)
        work = Block(names[0], body, sequence(stores), over)
        bound = (*bound, *reduced)
    else:
        work = Block(names[0], _together(stores))
    return Work(tuple(map(Tensor, buffers)), loops(bound, work))


def _axes(stage: str, axes: Mapping[str, int]) -> tuple[Axis, ...]:
    return tuple(Axis(Var(f"{stage}_{name}"), extent) for name, extent in axes.items())


def _as_many(names: Sequence[str], values: Values) -> None:
    if len(values) != len(names):
        what = (
            f"{', '.join(names)}: {plural(len(values), 'value')} for {plural(len(names), 'tensor')}"
        )
        raise ExpressionError(what, "one value for each name")


def _stores(buffers: Sequence[Buffer], at: tuple[Var, ...], values: Values) -> list[Store]:
    return [Store(buffer, at, value) for buffer, value in zip(buffers, values, strict=True)]


def _together(stores: Sequence[Store]) -> Stmt:
    """The stores as if they were done at once: what others read goes last, or is put aside."""
    rest = list(stores)
    order: list[Stmt] = []
    while rest:
        free = next((each for each in rest if not _read_by(each, rest)), None)
        if free is None:
            return sequence((*order, _put_aside(rest[0], rest[1:])))
        order.append(free)
        rest.remove(free)
    return sequence(order)


def _read_by(store: Store, others: Sequence[Store]) -> bool:
    """Whether another store reads what this one overwrites."""
    loads = (load for each in others if each is not store for load in find(each.value, Load))
    return any(load.buffer is store.buffer for load in loads)


def _put_aside(first: Store, others: Sequence[Store]) -> Stmt:
    """The store and those that read what it overwrites: they get it from a copy."""
    buffer = first.buffer
    copy = Buffer(f"{buffer.name}_old", (1,), buffer.dtype, "local")
    old = Load(copy, (index(0),))
    own = Load(buffer, first.index)
    redirected = [rewrite(store, lambda at: old if at is own else None) for store in others]
    keep = Store(copy, (index(0),), own)
    return Alloc(copy, sequence((keep, first, _together(redirected))))
