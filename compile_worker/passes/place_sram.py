"""Every on-chip buffer gets its place: the first element that it occupies in its memory.

    alloc inp x[2, 16], inp y[8]   ->   alloc x {base=0}, y {base=32}

Buffers of one memory lie one after the other for the whole function. This is also where everything
that only shows up in the sum is refused: memories, micro-ops and slot keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Final

from tilefarm.target import Target

from compile_worker.errors import require
from compile_worker.ir.expr import Var
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, For, MicroKernel
from compile_worker.ir.visit import rewrite
from compile_worker.limits import scope_fits, slot_keys_fit, uops_fit
from compile_worker.passes.nests import of_kind
from compile_worker.passes.slots import combinations, digits_of

STAGE: Final = "place_sram"

_LANE_AXES: Final = 2


def place_sram(func: Func, target: Target) -> Func:
    """Give each on-chip allocation its ("base", first element) mark."""
    used = {"inp": 0, "wgt": 0, "acc": 0}

    def place(node: Node) -> Node | None:
        if not isinstance(node, Alloc) or node.buffer.scope not in used:
            return None
        scope = node.buffer.scope
        base = used[scope]
        used[scope] += prod(node.buffer.shape[:-_LANE_AXES])
        return Alloc(node.buffer, node.body, (*node.marks, ("base", base)))

    body = rewrite(func.body, place)
    require(STAGE, scope_fits(target, "inp", used["inp"]))
    require(STAGE, scope_fits(target, "wgt", used["wgt"]))
    require(STAGE, scope_fits(target, "acc", used["acc"]))
    _check_uops(func, target)
    return Func(func.name, func.params, body, func.attrs)


def _check_uops(func: Func, target: Target) -> None:
    extents: Mapping[Var, int] = {loop.var: loop.extent for loop in of_kind(func.body, For)}
    total = 0
    for kernel in of_kind(func.body, MicroKernel):
        keys = combinations(digits_of(kernel, extents))
        require(STAGE, slot_keys_fit(keys))
        total += keys * len(kernel.uops)
    require(STAGE, uops_fit(target, total))
