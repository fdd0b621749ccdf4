"""A store of one value or another, by a loop's variable, becomes a store of each, early.

    upper: x[i] = min(x[i], 127)                      upper: x[i] = min(x[i], 127)
    high: y[i] = y[i] >> 8                      ->    for i: block out: out[1, i] = x[i]
    for p in 2: for i:                                high: y[i] = y[i] >> 8
      block out: out[p, i] = p == 0 ? y[i] : x[i]     for i: block out: out[0, i] = y[i]

What is there first is stored while the other is computed. The values differ, so neither store reads
what the other one does.
"""

from __future__ import annotations

from tilefarm.target import Target

from compile_worker.ir.annotations import DMA
from compile_worker.ir.expr import Buffer, Const, Eq, Expr, Select, Var, index
from compile_worker.ir.func import Func
from compile_worker.ir.nests import perfect_nest, wrap
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Block, For, Seq, Stmt, Store, sequence
from compile_worker.ir.visit import find, mentioned, rewrite, substitute
from compile_worker.passes.nests import of_kind, uses


def part_stores(func: Func, target: Target) -> Func:
    """Write every choice between values that are stored as a store of each."""
    del target
    if not any(_choice(block) is not None for block in of_kind(func.body, Block)):
        return func
    return Func(func.name, func.params, _parted(func.body), func.attrs)


def _parted(stmt: Stmt) -> Stmt:
    match stmt:
        case Seq(stmts):
            done: list[Stmt] = []
            for each in stmts:
                parts = _parts(each)
                for part in parts or (_parted(each),):
                    done.insert(_place(done, part) if parts else len(done), part)
            return sequence(done)
        case For(var, extent, body, kind, marks):
            parts = _parts(stmt)
            return sequence(parts) if parts else For(var, extent, _parted(body), kind, marks)
        case Alloc(buffer, body, marks):
            return Alloc(buffer, _parted(body), marks)
        case _:
            return stmt


def _parts(stmt: Stmt) -> tuple[Stmt, ...]:
    """The nests of a store of one value or another; nothing if a nest is something else."""
    loops, block = perfect_nest(stmt)
    over = _choice(block) if isinstance(block, Block) else None
    loop = next((loop for loop in loops if loop.var is over), None)
    if loop is None:
        return ()
    others = [each for each in loops if each is not loop]
    return tuple(wrap(others, _turn(block, loop.var, at)) for at in range(loop.extent))


def _choice(block: Block) -> Var | None:
    """The variable that a value is chosen by, of a block that is a copy to memory."""
    if not isinstance(block.body, Store) or DMA.of(block) != "store":
        return None
    for select in find(block.body.value, Select):
        match select.condition:
            case Eq(left=Var() as var, right=Const()):
                return var
    return None


def _turn(block: Stmt, var: Var, at: int) -> Stmt:
    """The block with the value that is chosen at one turn of the loop."""

    def rule(node: Node) -> Node | None:
        match node:
            case Select(Eq(left=Const(one, _), right=Const(other, _)), then, otherwise):
                chosen: Expr = then if one == other else otherwise
                return chosen
            case _:
                return None

    return rewrite(substitute(block, {var: index(at)}), rule)


def _place(done: list[Stmt], store: Stmt) -> int:
    """Where among the statements a store goes: behind the last that writes what it reads."""
    read = {each for each in mentioned(store) if isinstance(each, Buffer) and each.scope == "acc"}
    at = len(done)
    while at and not any(
        access.writes for buffer in read for access in uses(done[at - 1]).of.get(buffer, ())
    ):
        at -= 1
    return at
