"""Every on-chip buffer moves out of all loops and gets its place in its memory.

    for k: alloc inp x[2, 16] {copies=2}       alloc x {copies=2, base=0}
             alloc inp y[8]: ...          ->     alloc y {base=32}: for k: ...

Buffers of one memory lie one after the other for the whole function. Micro-ops stay resident for
the whole function too, in one copy for every slot key: this is where their sum is refused.
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
from compile_worker.ir.stmt import Alloc, For, MicroKernel, Seq, Stmt, sequence
from compile_worker.ir.visit import rewrite
from compile_worker.limits import SramScope, slot_keys_fit, uops_fit
from compile_worker.passes.nests import of_kind
from compile_worker.passes.slots import combinations, digits_of

STAGE: Final = "place_sram"

_LANE_AXES: Final = 2


def place_sram(func: Func, target: Target) -> Func:
    """Hoist on-chip allocations and give each its ("base", first element) mark."""
    used: dict[SramScope, int] = {"inp": 0, "wgt": 0, "acc": 0}
    placed: list[Alloc] = []
    for alloc in of_kind(func.body, Alloc):
        for scope in used:
            if alloc.buffer.scope == scope:
                marks = (*alloc.marks, ("base", used[scope]))
                placed.append(Alloc(alloc.buffer, alloc.body, marks))
                used[scope] += prod(alloc.buffer.shape[:-_LANE_AXES])
    if not placed:
        return func
    _check_uops(func, target)
    body: Stmt = rewrite(func.body, _dropped)
    for alloc in reversed(placed):
        body = Alloc(alloc.buffer, body, alloc.marks)
    return Func(func.name, func.params, body, func.attrs)


def _dropped(node: Node) -> Node | None:
    match node:
        case Alloc(buffer, body) if buffer.scope != "local":
            return body
        case Seq(stmts):
            return sequence(stmts)
        case _:
            return None


def _check_uops(func: Func, target: Target) -> None:
    extents: Mapping[Var, int] = {loop.var: loop.extent for loop in of_kind(func.body, For)}
    total = 0
    for kernel in of_kind(func.body, MicroKernel):
        keys = combinations(digits_of(kernel, extents))
        require(STAGE, slot_keys_fit(keys))
        total += keys * len(kernel.uops)
    require(STAGE, uops_fit(target, total))
