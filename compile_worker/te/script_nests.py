"""The nests of a script: loops around one block each, as a schedule wants them.

Loops that hold one another are peeled off; what is left is the block. A reduction is recognized:

    for i in 4:                              for i in 4: for k in 8:
      out[i] = 0                     ->        block out over k
      for k in 8: out[i] = out[i] + x[i, k]      init: out[i] = 0
                                                 out[i] = out[i] + x[i, k]

A loop whose iterations need one another is one that the block reduces over, too: schedules leave
its order alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from compile_worker.ir.expr import Buffer, Expr, Var
from compile_worker.ir.independence import independent
from compile_worker.ir.stmt import Block, For, LoopKind, Seq, Stmt, Store
from compile_worker.ir.visit import find, rewrite, variables
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
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    over = tuple(loop.var for loop in loops if not independent(loop.var, stmt))
    for loop in loops:
        if loop.var in over and loop.kind in (LoopKind.PARALLEL, LoopKind.VECTORIZED):
            why = f"iterations of this {loop.kind.value} loop need one another"
            raise written.error(written.loops[loop.var], why, "range(...)")
    found = None if over else _reduction(name, stmt)
    inner, block = found or ([], Block(name, stmt, None, over))
    whole: Stmt = block
    for loop in reversed([*loops, *inner]):
        whole = For(loop.var, loop.extent, whole, loop.kind)
    return whole


def _reduction(name: str, stmt: Stmt) -> tuple[list[For], Block] | None:
    """Stores that start, then loops around stores that go on with the same elements."""
    if not isinstance(stmt, Seq):
        return None
    *starts, last = stmt.stmts
    loops: list[For] = []
    while isinstance(last, For):
        loops.append(last)
        last = last.body
    updates = last.stmts if isinstance(last, Seq) else (last,)
    begun, changed = _elements(starts), _elements(updates)
    over = tuple(loop.var for loop in loops)
    if not loops or begun is None or begun != changed:
        return None
    if any(variables(at) & {*over} for _, index in begun for at in index):
        return None
    init = starts[0] if len(starts) == 1 else Seq(tuple(starts))
    return loops, Block(name, last, init, over)


def _elements(stmts: Iterable[Stmt]) -> frozenset[tuple[Buffer, tuple[Expr, ...]]] | None:
    """Where stores store; None if one is something else, or two store at one place."""
    stores = list(stmts)
    found = frozenset((s.buffer, s.index) for s in stores if isinstance(s, Store))
    return found if len(found) == len(stores) else None
