"""Reductions of a CPU kernel run outside of the lanes, so that the innermost loop is a vector's.

    for h: for b, o: for k: block s        ->        for h: for k: for b, o: block s

Each element still meets its terms in the same order.
"""

from __future__ import annotations

from tilefarm.target import Target

from compile_worker.ir.func import Func
from compile_worker.ir.nests import perfect_nest, wrap
from compile_worker.ir.stmt import Block, For, Stmt, Store
from compile_worker.passes.nests import LANE_AXES, descend


def sink_lanes(func: Func, target: Target) -> Func:
    """Put the two lane loops of every plain reduction innermost."""
    del target
    return Func(func.name, func.params, _sunk(func.body), func.attrs)


def _sunk(stmt: Stmt) -> Stmt:
    loops, inner = perfect_nest(stmt)
    if isinstance(inner, Block):
        return _reordered(stmt, loops, inner)
    match stmt:
        case For(var, extent, body, kind, marks):
            return For(var, extent, _sunk(body), kind, marks)
        case _:
            return descend(stmt, _sunk)


def _reordered(stmt: Stmt, loops: tuple[For, ...], block: Block) -> Stmt:
    store = block.body
    if block.init is None or block.marks or not isinstance(store, Store):
        return stmt
    lanes = store.index[-LANE_AXES:]
    if len(store.index) <= LANE_AXES or not set(lanes) <= {loop.var for loop in loops}:
        return stmt
    outer = [loop for loop in loops if loop.var not in lanes]
    inner = [loop for loop in loops if loop.var in lanes]
    return wrap((*outer, *inner), block)
