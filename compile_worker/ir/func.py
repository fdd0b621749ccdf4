"""A function: parameters in DRAM and a body."""

from __future__ import annotations

from compile_worker.ir.expr import Buffer
from compile_worker.ir.node import Node, node
from compile_worker.ir.stmt import Mark, Stmt


@node
class Func(Node):
    """What is scheduled, lowered and compiled as one unit.

    `params` are the workload's inputs, then its outputs, all of scope "dram". `attrs` are marks
    of the function itself: OPERATOR, BATCH, BLOCK and LOWER_WITH of `ir.annotations`.
    """

    name: str
    params: tuple[Buffer, ...]
    body: Stmt
    attrs: tuple[Mark, ...] = ()
