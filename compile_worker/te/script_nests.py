"""The nests of a script: loops around one block each, as a schedule wants them.

Loops that hold one another are peeled off; what is left is the block, see `ir.reductions`.
"""

from __future__ import annotations

from collections.abc import Sequence

from compile_worker.ir.expr import Buffer
from compile_worker.ir.independence import independent
from compile_worker.ir.nests import perfect_nest, with_named_loops
from compile_worker.ir.reductions import nest_of_block
from compile_worker.ir.stmt import LoopKind, Stmt, Store
from compile_worker.ir.visit import find
from compile_worker.te.script_statements import Statements


def nests_of(body: Sequence[Stmt], ranked: Sequence[Buffer], written: Statements) -> list[Stmt]:
    """The outermost statements of a script as nests, named after what they write.

    Of several that write the same first buffer the last has its name, the one before is its
    `_init`; were there more, they are counted.

    Raises:
        ScriptError: a parallel or vectorized loop whose iterations need one another.
    """
    working = [stmt for stmt in body if next(find(stmt, Store), None) is not None]
    owners = [_owner(stmt, ranked) for stmt in working]
    return [
        with_named_loops(_nest(stmt, name, written), name, _written)
        for stmt, name in zip(working, _names(owners), strict=True)
    ]


def _names(owners: Sequence[str]) -> list[str]:
    """A name for each nest."""
    return [
        _name(each, owners.count(each), owners[:at].count(each)) for at, each in enumerate(owners)
    ]


def _owner(stmt: Stmt, ranked: Sequence[Buffer]) -> str:
    stored = {store.buffer for store in find(stmt, Store)}
    return next((buffer.name for buffer in ranked if buffer in stored), "nothing")


def _name(owner: str, count: int, before: int) -> str:
    if before == count - 1:
        return owner
    return f"{owner}_init" if count == 2 else f"{owner}_{before}"


def _nest(stmt: Stmt, name: str, written: Statements) -> Stmt:
    """Loops peeled off, around one block."""
    loops, held = perfect_nest(stmt)
    for loop in loops:
        is_apart = loop.kind in (LoopKind.PARALLEL, LoopKind.VECTORIZED)
        if is_apart and not independent(loop.var, held):
            why = f"iterations of this {loop.kind.value} loop need one another"
            raise written.error(written.loops[loop.var], why, "range(...)")
    return nest_of_block(stmt, name)


def _written(name: str) -> str:
    """What a loop's variable is called where it is written: see Statements."""
    return name.split(".")[0]
