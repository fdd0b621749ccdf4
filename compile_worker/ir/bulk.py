"""Whole loop nests at once: numpy in place of iterating, where that cannot change the result.

A nest qualifies if it is nothing but loops around one store (with one initialisation, for a
reduction). Whatever is not certainly safe is refused, and iterated by the interpreter instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from compile_worker.ir.evaluate import Array, Memory, Values, evaluate, memory_of, place
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


@dataclass(frozen=True, slots=True)
class Nest:
    """Perfectly nested loops, outermost first, around one store."""

    loops: tuple[For, ...]
    store: Store
    init: Store | None
    reductions: tuple[Expr, ...]

    @property
    def reduced(self) -> frozenset[Var]:
        """Loop variables of this nest that the store reduces over."""
        inside = frozenset(loop.var for loop in self.loops)
        return inside & frozenset(var for each in self.reductions for var in variables(each))


def nest_at(loop: For) -> Nest | None:
    """The nest that starts at `loop`, if there is nothing else in it and it is not too large."""
    loops: list[For] = []
    at: Stmt = loop
    while isinstance(at, For):
        loops.append(at)
        at = at.body
    if math.prod(each.extent for each in loops) > LIMIT:
        return None
    match at:
        case Store():
            return Nest(tuple(loops), at, None, ())
        case Block(body=Store() as store, init=Store() | None as init, reductions=reductions):
            return Nest(tuple(loops), store, init, reductions)
        case _:
            return None


def run_nest(nest: Nest, values: Values, memory: Memory) -> bool:
    """Does the whole nest and returns True, or does nothing and returns False."""
    axes = _axes(nest)
    store = nest.store
    everywhere = {**values, **axes}
    loads = [load for load in find(store.value, Load) if load.buffer is store.buffer]
    if any(load.index != store.index for load in loads) or _depends_on_itself(store):
        return False
    starts = nest.init is not None and _starts(nest, everywhere, memory)
    if starts and not _initialises_once(nest, everywhere, memory):
        return False
    work = _planned(nest, everywhere, memory, accumulates=bool(loads), starts=starts)
    if work is None:
        return False
    if starts and nest.init is not None:
        zeros = {var: axes[var].ravel()[:1].reshape(()) for var in nest.reduced}
        _assign(nest.init, {**everywhere, **zeros}, memory, None)
    work()
    return True


def _axes(nest: Nest) -> dict[Var, Array]:
    """Each loop variable as an array along its own axis."""
    count = len(nest.loops)
    return {
        loop.var: np.arange(loop.extent, dtype=np.int64).reshape(
            [loop.extent if axis == position else 1 for axis in range(count)]
        )
        for position, loop in enumerate(nest.loops)
    }


def _depends_on_itself(store: Store) -> bool:
    """Whether the store's own coordinates are read from the buffer that it changes."""
    return any(load.buffer is store.buffer for index in store.index for load in find(index, Load))


def _starts(nest: Nest, values: Values, memory: Memory) -> bool:
    """Whether some iteration of the nest is the first of its reduction."""
    return all((evaluate(each, values, memory) == 0).any() for each in nest.reductions)


def _initialises_once(nest: Nest, values: Values, memory: Memory) -> bool:
    """Whether no element is initialised twice, so that doing it first is the same."""
    init, reduced = nest.init, nest.reduced
    if init is None or init.buffer is not nest.store.buffer or init.index != nest.store.index:
        return False
    if any(type(each) is not Var for each in nest.reductions) or _reads(init):
        return False
    if any(variables(index) & reduced for index in nest.store.index):
        return False
    kept = [loop for loop in nest.loops if loop.var not in reduced]
    return _distinct(nest.store, kept, values, memory)


def _reads(store: Store) -> bool:
    return any(True for _ in find(store.value, Load))


def _distinct(store: Store, loops: list[For], values: Values, memory: Memory) -> bool:
    """Whether the iterations of `loops` write distinct elements."""
    at = place(store.buffer, store.index, values, memory)
    flat = np.ravel_multi_index(np.broadcast_arrays(*at), store.buffer.shape) if at else np.zeros(1)
    count = math.prod(loop.extent for loop in loops)
    return flat.size == count and np.unique(flat).size == count


def _planned(
    nest: Nest, values: Values, memory: Memory, *, accumulates: bool, starts: bool
) -> Callable[[], None] | None:
    """What to do for the store itself; None if it has to be iterated."""
    store = nest.store
    shape = tuple(loop.extent for loop in nest.loops)
    if not accumulates:
        return lambda: _assign(store, values, memory, shape)
    combine, rest = _accumulation(store)
    if combine is not None and rest is not None:
        return lambda: _accumulate(store, combine, rest, values, memory, shape)
    if starts or not _distinct(store, list(nest.loops), values, memory):
        return None
    return lambda: _assign(store, values, memory, shape)


def _accumulation(store: Store) -> tuple[np.ufunc | None, Expr | None]:
    """How an integer is combined into the element itself, and with what.

    Not for floats: their sums depend on the order.
    """
    value = store.value
    if type(value) not in _COMBINE or not isinstance(value, Add | Max | Min):
        return None, None
    own = Load(store.buffer, store.index)
    rest = value.right if value.left is own else value.left if value.right is own else None
    if rest is None or value.dtype.is_float or own in find(rest, Load):
        return None, None
    return _COMBINE[type(value)], rest


def _assign(store: Store, values: Values, memory: Memory, shape: tuple[int, ...] | None) -> None:
    """Stores all elements; the last iteration wins where several write one."""
    new = evaluate(store.value, values, memory)
    at = place(store.buffer, store.index, values, memory)
    if shape is not None:
        new = np.broadcast_to(new, shape)
        at = tuple(np.broadcast_to(each, shape) for each in at)
    memory_of(store.buffer, memory)[at] = new


def _accumulate(
    store: Store,
    combine: np.ufunc,
    rest: Expr,
    values: Values,
    memory: Memory,
    shape: tuple[int, ...],
) -> None:
    """Combines along the axes that the element does not depend on, then into the elements."""
    at = place(store.buffer, store.index, values, memory)
    amounts = np.broadcast_to(evaluate(rest, values, memory), shape)
    kept = np.broadcast_shapes(*(each.shape for each in at), (1,) * len(shape))
    gone = tuple(axis for axis, extent in enumerate(kept) if extent == 1 and shape[axis] > 1)
    if gone:
        amounts = combine.reduce(amounts, axis=gone, keepdims=True, dtype=amounts.dtype)
    at = tuple(np.broadcast_to(each, amounts.shape) for each in at)
    where = tuple(np.broadcast_to(each, amounts.shape) for each in at)
    combine.at(memory_of(store.buffer, memory), where, amounts)
