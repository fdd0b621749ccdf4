"""The nests of a script: loops around one block each, as a schedule wants them.

Loops that hold one another are peeled off; what is left is the block, see `ir.reductions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compile_worker.ir.expr import Buffer, Var
from compile_worker.ir.independence import independent
from compile_worker.ir.reductions import perfect_nest
from compile_worker.ir.stmt import For, LoopKind, Stmt, Store
from compile_worker.ir.visit import find, rewrite
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
        _named(_nest(stmt, name, written), name)
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


def _named(stmt: Stmt, name: str) -> Stmt:
    """The statement with its loop variables called `<name>_<variable>`."""
    taken: Counter[str] = Counter()
    values: dict[Var, Var] = {}
    for loop in find(stmt, For):
        short = loop.var.name.split(".")[0]
        taken[short] += 1
        suffix = f"_{taken[short]}" if taken[short] > 1 else ""
        values[loop.var] = Var(f"{name}_{short}{suffix}")
    return rewrite(stmt, lambda at: values.get(at) if isinstance(at, Var) else None)


def _nest(stmt: Stmt, name: str, written: Statements) -> Stmt:
    """Loops peeled off, around one block."""
    whole, loops = stmt, list[For]()
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    for loop in loops:
        is_apart = loop.kind in (LoopKind.PARALLEL, LoopKind.VECTORIZED)
        if is_apart and not independent(loop.var, stmt):
            why = f"iterations of this {loop.kind.value} loop need one another"
            raise written.error(written.loops[loop.var], why, "range(...)")
    return perfect_nest(whole, name)
