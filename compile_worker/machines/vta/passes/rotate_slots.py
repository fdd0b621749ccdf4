"""Buffers with slots become as many copies in one buffer, and iterations take turns in them.

    for k in 0:8:                          for k in 0:8:
      alloc a[16] {slots=2}                  alloc a[2, 16] {copies=2}
        load a[0]; gemm a[0]          ->       load a[16*(k % 2)]; gemm a[16*(k % 2)]

The slot becomes part of every reference; a buffer never has more copies than turns.
"""

from __future__ import annotations

from tilefarm.target import Target

from compile_worker.ir.annotations import COPIES, SLOTS, with_mark, without_marks
from compile_worker.ir.expr import INDEX, Add, Buffer, Const, Expr, Mul
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Ref
from compile_worker.ir.visit import rewrite_statements
from compile_worker.machines.vta.passes.elements import elements_of
from compile_worker.passes.turns import homes, slot, trips


def rotate_slots(func: Func, target: Target) -> Func:
    """Give on-chip buffers one copy for every slot, and references their slot."""
    del target
    whole: dict[Buffer, tuple[Buffer, int, Expr]] = {}
    for alloc, path in homes(func.body):
        if alloc.buffer.on_chip:
            copies = min(SLOTS.of(alloc), trips(path))
            offset = _offset(alloc.buffer, slot(path, copies))
            whole[alloc.buffer] = _with_copies(alloc.buffer, copies), copies, offset
    if not whole:
        return func

    def rule(node: Node) -> Node | None:
        match node:
            case Ref(buffer, element) if buffer in whole:
                new, _, offset = whole[buffer]
                return Ref(new, _sum(element, offset))
            case Alloc(buffer, body, marks) if buffer in whole:
                new, copies, _ = whole[buffer]
                others = without_marks(marks, SLOTS)
                return Alloc(new, body, with_mark(others, COPIES(copies)))
            case _:
                return None

    return Func(func.name, func.params, rewrite_statements(func.body, rule), func.attrs)


def _with_copies(buffer: Buffer, copies: int) -> Buffer:
    shape = (copies, *buffer.shape) if copies > 1 else buffer.shape
    return Buffer(buffer.name, shape, buffer.dtype, buffer.scope)


def _offset(buffer: Buffer, at: Expr) -> Expr:
    """First element of a slot."""
    return (
        Mul(at, Const(elements_of(buffer), INDEX)) if not isinstance(at, Const) else Const(0, INDEX)
    )


def _sum(left: Expr, right: Expr) -> Expr:
    zero = Const(0, INDEX)
    if left is zero or right is zero:
        return right if left is zero else left
    return Add(left, right)
