"""Host memory becomes one-dimensional, blocks lose their names.

block t: t[i, j] = a[j, 0]    ->    t[i*16 + j] = a[j*4]
"""

from __future__ import annotations

from math import prod
from typing import Final

from tilefarm.target import Target

from compile_worker.errors import require
from compile_worker.ir.expr import INDEX, Add, Buffer, Const, Expr, Load, Mul
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Block, Ref, Seq, Store, sequence
from compile_worker.ir.visit import rewrite
from compile_worker.limits import Violation

STAGE: Final = "flatten"

LOCAL_NBYTES: Final = 64 * 1024
"""Most bytes of one local buffer: they live on the stack of whoever calls the kernel."""

_HOST: Final = ("dram", "local")


def flatten(func: Func, target: Target) -> Func:
    """Index every host buffer by one number, counted in elements of its type."""
    del target
    params = tuple(map(_flat, func.params))
    flat = dict(zip(func.params, params, strict=True))

    def rule(node: Node) -> Node | None:
        match node:
            case Load(buffer, index):
                return Load(_flat(buffer), _position(buffer, index))
            case Store(buffer, index, value):
                return Store(_flat(buffer), _position(buffer, index), value)
            case Alloc(buffer, body, marks) if buffer.scope == "local":
                require(STAGE, _stack_fits(buffer))
                return Alloc(_flat(buffer), body, marks)
            case Block(body=body, init=None):
                return body
            case Seq(stmts):
                return sequence(stmts)
            case Ref(buffer, element) if buffer in flat:
                return Ref(flat[buffer], element)
            case _:
                return None

    return Func(func.name, params, rewrite(func.body, rule), func.attrs)


def _stack_fits(buffer: Buffer) -> Violation | None:
    nbytes = prod(buffer.shape) * buffer.dtype.nbytes
    if nbytes <= LOCAL_NBYTES:
        return None
    why = f"{buffer.name} takes {nbytes} bytes on the stack, at most {LOCAL_NBYTES}"
    return Violation("local_nbytes", why)


def _flat(buffer: Buffer) -> Buffer:
    if buffer.scope not in _HOST or len(buffer.shape) == 1:
        return buffer
    return Buffer(buffer.name, (prod(buffer.shape),), buffer.dtype, buffer.scope)


def _position(buffer: Buffer, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    if len(index) == 1:
        return index
    total: Expr = Const(0, INDEX)
    for size, at in zip(buffer.shape, index, strict=True):
        total = Add(Mul(total, Const(size, INDEX)), at)
    return (total,)
