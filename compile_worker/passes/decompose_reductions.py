"""The start value of a reduction becomes a nest of its own, before the outermost reduction loop.

for h: for r: block s {init: s[h] = 0}     for h:
s[h] = s[h] + a[h, r]                 ->   block s_init: s[h] = 0
for r: block s: s[h] = s[h] + a[h, r]
"""

from __future__ import annotations

from tilefarm.target import Target

from compile_worker.ir.expr import Var
from compile_worker.ir.func import Func
from compile_worker.ir.reduction_start import start_of
from compile_worker.ir.stmt import Block, For, If, Stmt, Store, sequence
from compile_worker.passes.nests import descend, of_kind


def decompose_reductions(func: Func, target: Target) -> Func:
    """Split every block with an init into a block that starts and one that updates."""
    del target
    reducing = [block for block in of_kind(func.body, Block) if block.init is not None]
    if not reducing:
        return func
    reductions = frozenset(v for block in reducing for v in block.reductions)
    return Func(func.name, func.params, _split(func.body, reductions), func.attrs)


def _split(stmt: Stmt, reductions: frozenset[Var]) -> Stmt:
    """Start nests go before the first loop on the way down that is the block's reduction."""
    match stmt:
        case For(var, extent, body, kind, marks):
            starts: list[Stmt] = []
            if var in reductions:
                body = _take_starts(body, (), var, starts)
            return sequence((*starts, For(var, extent, _split(body, reductions), kind, marks)))
        case Block(init=init) if init is not None:  # no loop is left of its reduction
            return sequence((start_of(stmt, ()), _update(stmt)))
        case Block() | Store():
            return stmt
        case _:
            return descend(stmt, lambda each: _split(each, reductions))


def _take_starts(stmt: Stmt, path: tuple[Stmt, ...], over: Var, starts: list[Stmt]) -> Stmt:
    """`stmt` without the inits of reductions over `over`; their nests are added to `starts`."""
    match stmt:
        case For(var, extent, body, kind, marks):
            return For(var, extent, _take_starts(body, (*path, stmt), over, starts), kind, marks)
        case Block(init=init) if init is not None and over in stmt.reductions:
            starts.append(start_of(stmt, path))
            return _update(stmt)
        case Block() | Store():
            return stmt
        case If():
            return descend(stmt, lambda each: _take_starts(each, (*path, stmt), over, starts))
        case _:
            return descend(stmt, lambda each: _take_starts(each, path, over, starts))


def _update(block: Block) -> Block:
    return Block(block.name, block.body, None, block.reductions, block.marks)
