"""Whole loop nests at once: numpy in place of iterating, where that cannot change the result.

A nest qualifies if it is nothing but loops around one store (with one initialisation, for a
reduction). Whatever is not certainly safe is refused, and iterated by the interpreter instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from compile_worker.ir.evaluate import Memory, Value, Values, evaluate, memory_of, place
from compile_worker.ir.expr import Add, Expr, Load, Max, Min, Var
from compile_worker.ir.stmt import Block, For, Stmt, Store
from compile_worker.ir.visit import find, variables

LIMIT: Final = 1 << 20
"""Iterations done at once, at most: it bounds the memory that this takes."""

_COMBINE: Final[Mapping[type[Expr], np.ufunc]] = {
    Add: np.add,
    Max: np.maximum,
    Min: np.minimum,
}

Accumulation: TypeAlias = tuple[np.ufunc, Expr]


@dataclass(frozen=True, slots=True)
class BulkNest:
    """Perfectly nested loops around one store, and what can be said about it once and for all.

    `axes` has each loop variable's values along an axis of its own; loops with one trip have none.
    `reduced` are the variables of the nest that the store reduces over. `in_place` says that it
    reads the element that it writes, `accumulation` with what it combines it if it does just that.
    """

    axes: Mapping[Var, Value]
    shape: tuple[int, ...]
    store: Store
    init: Store | None
    reductions: tuple[Expr, ...]
    reduced: frozenset[Var]
    in_place: bool
    accumulation: Accumulation | None


def nest_at(loop: For) -> BulkNest | None:
    """The nest that starts at `loop`, if it can be done at once and is not too large."""
    loops: list[For] = []
    at: Stmt = loop
    while isinstance(at, For):
        loops.append(at)
        at = at.body
    if math.prod(each.extent for each in loops) > LIMIT:
        return None
    match at:
        case Store():
            return _nest(loops, at, None, ())
        case Block(body=Store() as store, init=Store() | None as init, reductions=reductions):
            return _nest(loops, store, init, reductions)
        case _:
            return None


def _nest(
    loops: list[For], store: Store, init: Store | None, reductions: tuple[Expr, ...]
) -> BulkNest | None:
    inside = frozenset(loop.var for loop in loops)
    reduced = inside & frozenset(var for each in reductions for var in variables(each))
    own = [load for load in find(store.value, Load) if load.buffer is store.buffer]
    if any(load.index != store.index for load in own) or _depends_on_itself(store):
        return None
    if init is not None and not _starts_alike(init, store, reductions, reduced):
        return None
    shape = tuple(loop.extent for loop in loops if loop.extent > 1)
    accumulation = _accumulation(store)
    return BulkNest(_axes(loops), shape, store, init, reductions, reduced, bool(own), accumulation)


def _axes(loops: list[For]) -> dict[Var, Value]:
    count = sum(loop.extent > 1 for loop in loops)
    axes: dict[Var, Value] = {}
    position = 0
    for loop in loops:
        if loop.extent == 1:
            axes[loop.var] = 0
            continue
        shape = [1] * count
        shape[position] = loop.extent
        axes[loop.var] = np.arange(loop.extent, dtype=np.int64).reshape(shape)
        position += 1
    return axes


def _depends_on_itself(store: Store) -> bool:
    """Whether the store's own coordinates are read from the buffer that it changes."""
    return any(load.buffer is store.buffer for index in store.index for load in find(index, Load))


def _starts_alike(
    init: Store, store: Store, reductions: tuple[Expr, ...], reduced: frozenset[Var]
) -> bool:
    """Whether the initialisation is that of the store's elements, one for each whole reduction."""
    return (
        init.buffer is store.buffer
        and init.index == store.index
        and all(type(each) is Var for each in reductions)
        and not any(load.buffer is store.buffer for load in find(init.value, Load))
        and not any(variables(index) & reduced for index in store.index)
    )


def _accumulation(store: Store) -> Accumulation | None:
    """How an integer is combined into the element itself, and with what.

    Not for floats: their sums depend on the order.
    """
    value = store.value
    if type(value) not in _COMBINE or not isinstance(value, Add | Max | Min):
        return None
    own = Load(store.buffer, store.index)
    rest = value.right if value.left is own else value.left if value.right is own else None
    if rest is None or value.dtype.is_float or own in find(rest, Load):
        return None
    return _COMBINE[type(value)], rest


def run_nest(nest: BulkNest, values: Values, memory: Memory) -> bool:
    """Does the whole nest and returns True, or does nothing and returns False."""
    everywhere = {**values, **nest.axes}
    starts = nest.init is not None and all(
        np.equal(evaluate(each, everywhere, memory), 0).any() for each in nest.reductions
    )
    if starts and not _distinct(nest, everywhere, memory, without=nest.reduced):
        return False
    work = _planned(nest, everywhere, memory, starts=starts)
    if work is None:
        return False
    if starts and nest.init is not None:
        start: dict[Var, Value] = {**everywhere, **dict.fromkeys(nest.reduced, 0)}
        _assign(nest.init, start, memory, None)
    work()
    return True


def _planned(
    nest: BulkNest, values: Values, memory: Memory, *, starts: bool
) -> Callable[[], None] | None:
    """What to do for the store itself; None if it has to be iterated."""
    if not nest.in_place:
        return lambda: _assign(nest.store, values, memory, nest.shape)
    if nest.accumulation is not None:
        combine, rest = nest.accumulation
        return lambda: _accumulate(nest, combine, rest, values, memory)
    if starts or not _distinct(nest, values, memory):
        return None
    return lambda: _assign(nest.store, values, memory, nest.shape)


def _distinct(
    nest: BulkNest, values: Values, memory: Memory, without: frozenset[Var] = frozenset()
) -> bool:
    """Whether the iterations of all loops but some write distinct elements."""
    store = nest.store
    count = math.prod(np.size(axis) for var, axis in nest.axes.items() if var not in without)
    at = place(store.buffer, store.index, values, memory)
    if count == 1:
        return True
    flat = np.ravel_multi_index(np.broadcast_arrays(*at), store.buffer.shape)
    return flat.size == count and np.unique(flat).size == count


def _assign(store: Store, values: Values, memory: Memory, shape: tuple[int, ...] | None) -> None:
    """Stores all elements; the last iteration wins where several write one."""
    new = evaluate(store.value, values, memory)
    at = place(store.buffer, store.index, values, memory)
    if shape is not None and np.broadcast_shapes(*map(np.shape, at)) != shape:
        new = np.broadcast_to(new, shape)
        at = tuple(np.broadcast_to(each, shape) for each in at)
    memory_of(store.buffer, memory)[at] = new


def _accumulate(
    nest: BulkNest, combine: np.ufunc, rest: Expr, values: Values, memory: Memory
) -> None:
    """Combines along the axes that the element does not depend on, then into the elements."""
    store, shape = nest.store, nest.shape
    at = place(store.buffer, store.index, values, memory)
    amounts = np.broadcast_to(evaluate(rest, values, memory), shape)
    target = np.broadcast_shapes(*map(np.shape, at))
    kept = (1,) * (len(shape) - len(target)) + target
    gone = tuple(axis for axis, extent in enumerate(kept) if extent == 1 and shape[axis] > 1)
    if gone:
        amounts = combine.reduce(amounts, axis=gone, keepdims=True, dtype=amounts.dtype)
    where = tuple(np.asarray(each) for each in at)
    combine.at(memory_of(store.buffer, memory), where, amounts.reshape(target))
