"""Element-wise stages of a CPU kernel disappear into the expressions that read them.

    for i: block t: t[i] = a[i] + 1            for j: block out: out[j] = (a[j] + 1) * 2
    for j: block out: out[j] = t[j] * 2   ->

A stage goes if it lives in host memory, is not a reduction, and writes every element once at its
loop variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tilefarm.target import Target

from compile_worker.ir.expr import Buffer, Expr, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.nests import perfect_nest
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Block, Seq, Stmt, Store, sequence
from compile_worker.ir.visit import rewrite, substitute
from compile_worker.passes.nests import of_kind


def inline_stages(func: Func, target: Target) -> Func:
    """Replace reads of element-wise host stages by what the stage computes."""
    del target
    stages = _inlinable(func.body)
    if not stages:
        return func
    return Func(func.name, func.params, _without(func.body, stages), func.attrs)


def _inlinable(body: Stmt) -> dict[Buffer, Store]:
    """Stages that may go: written by one plain block, at its own loop variables."""
    local = {a.buffer for a in of_kind(body, Alloc) if a.buffer.scope == "local"}
    writes = Counter(store.buffer for store in of_kind(body, Store))
    found = {}
    for nest in _nests(body):
        loops, block = perfect_nest(nest)
        if not isinstance(block, Block) or block.init is not None or block.marks:
            continue
        store = block.body
        if not isinstance(store, Store) or store.buffer not in local:
            continue
        if writes[store.buffer] == 1 and store.index == tuple(loop.var for loop in loops):
            found[store.buffer] = store
    return found


def _nests(stmt: Stmt) -> tuple[Stmt, ...]:
    """The top-level loop nests of a function's body."""
    while isinstance(stmt, Alloc):
        stmt = stmt.body
    return stmt.stmts if isinstance(stmt, Seq) else (stmt,)


def _without(body: Stmt, stages: Mapping[Buffer, Store]) -> Stmt:
    inlined: dict[Buffer, Expr] = {}

    def read(node: Node) -> Node | None:
        if isinstance(node, Load) and node.buffer in inlined:
            return _element(stages[node.buffer], inlined[node.buffer], node.index)
        return None

    def rebuilt(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Alloc):
            inner = rebuilt(stmt.body)
            return inner if stmt.buffer in stages else Alloc(stmt.buffer, inner, stmt.marks)
        kept = []
        for nest in _nests(stmt):
            new = rewrite(nest, read)
            _, block = perfect_nest(new)
            written = block.body if isinstance(block, Block) else None
            if isinstance(written, Store) and written.buffer in stages:
                inlined[written.buffer] = written.value
            else:
                kept.append(new)
        return sequence(kept)

    return rebuilt(body)


def _element(store: Store, value: Expr, index: tuple[Expr, ...]) -> Expr:
    """What a stage computes for the element at `index`."""
    variables = [v for v in store.index if isinstance(v, Var)]
    return substitute(value, dict(zip(variables, index, strict=True)))
