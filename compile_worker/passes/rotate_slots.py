"""Buffers with slots become one allocation per function, and iterations take turns in it.

    for k in 0:8:                          alloc a[2, 16] {copies=2}
      alloc a[16] {slots=2}            ->    for k in 0:8:
        load a[0]; gemm a[0]                   load a[16*(k % 2)]; gemm a[16*(k % 2)]

Every on-chip buffer moves out of all loops: the accelerator's memories are laid out once.
"""

from __future__ import annotations

from math import prod

from tilefarm.target import Target

from compile_worker.ir.expr import INDEX, Add, Buffer, Const, Expr, Mul
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Ref, Stmt
from compile_worker.ir.visit import rewrite
from compile_worker.passes.turns import homes, slot, trips

_LANE_AXES = 2


def rotate_slots(func: Func, target: Target) -> Func:
    """Hoist on-chip allocations and make the slot part of every reference."""
    del target
    found = [(a, path) for a, path in homes(func.body) if a.buffer.scope not in ("dram", "local")]
    if not found:
        return func
    whole: dict[Buffer, tuple[Buffer, Expr]] = {}
    hoisted: list[Alloc] = []
    for alloc, path in found:
        copies = min(int(dict(alloc.marks).get("slots", 1)), trips(path))
        buffer = _with_copies(alloc.buffer, copies)
        whole[alloc.buffer] = buffer, _offset(alloc.buffer, slot(path, copies))
        hoisted.append(Alloc(buffer, alloc.body, (("copies", copies),)))

    def rule(node: Node) -> Node | None:
        match node:
            case Ref(buffer, element) if buffer in whole:
                new, offset = whole[buffer]
                return Ref(new, _sum(element, offset))
            case Alloc(buffer, body, _) if buffer in whole:
                return body
            case _:
                return None

    body: Stmt = rewrite(func.body, rule)
    for alloc in reversed(hoisted):
        body = Alloc(alloc.buffer, body, alloc.marks)
    return Func(func.name, func.params, body, func.attrs)


def _with_copies(buffer: Buffer, copies: int) -> Buffer:
    shape = (copies, *buffer.shape) if copies > 1 else buffer.shape
    return Buffer(buffer.name, shape, buffer.dtype, buffer.scope)


def _offset(buffer: Buffer, at: Expr) -> Expr:
    """First element of a slot."""
    elements = prod(buffer.shape[:-_LANE_AXES])
    return Mul(at, Const(elements, INDEX)) if not isinstance(at, Const) else Const(0, INDEX)


def _sum(left: Expr, right: Expr) -> Expr:
    zero = Const(0, INDEX)
    if left is zero or right is zero:
        return right if left is zero else left
    return Add(left, right)
