"""Rules about the form of a function: names, scopes of variables, which statements may occur."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from compile_worker.ir.annotations import BASE
from compile_worker.ir.expr import Buffer, Expr, Load, Var
from compile_worker.ir.findings import Finding
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import (
    Alloc,
    Block,
    Dma,
    For,
    LoopKind,
    MicroKernel,
    Pop,
    Push,
    Seq,
    Stmt,
    Store,
    Synchronize,
)
from compile_worker.ir.visit import buffers_of, children, distinct, find, variables, walk


def unique_names(func: Func) -> Iterator[Finding]:
    """No two buffers share a name; loops over one variable have one extent."""
    buffers = [*func.params, *(alloc.buffer for alloc in find(func.body, Alloc))]
    for name, count in Counter(buffer.name for buffer in buffers).items():
        if count > 1:
            yield f"{count} buffers are called {name}", func
    extents: dict[Var, int] = {}
    for loop in find(func.body, For):
        if extents.setdefault(loop.var, loop.extent) != loop.extent:
            yield f"loops over {loop.var.name} with different extents", loop


def one_block_each(func: Func) -> Iterator[Finding]:
    """A schedule can refer to every block by its name."""
    for name, count in Counter(block.name for block in find(func.body, Block)).items():
        if count > 1:
            yield f"{count} blocks are called {name}", func


def variables_bound(func: Func) -> Iterator[Finding]:
    """Every variable is that of a loop around, and of just one."""
    yield from _unbound(func.body, frozenset(), func.body)


def _unbound(node: Node, bound: frozenset[Var], where: Stmt) -> Iterator[Finding]:
    match node:
        case Var(name):
            if node not in bound:
                yield f"no loop around binds {name}", where
        case For(var, _, body):
            if var in bound:
                yield f"{var.name} is bound twice", node
            yield from _unbound(body, bound | {var}, node)
        case Expr() if bound.issuperset(variables(node)):
            return
        case _:
            for child in children(node):
                yield from _unbound(child, bound, node if isinstance(node, Stmt) else where)


def buffers_declared(func: Func) -> Iterator[Finding]:
    """Every buffer is a parameter or allocated around its use."""
    yield from _undeclared(func.body, frozenset(func.params), func.body)


def _undeclared(node: Node, known: frozenset[Buffer], where: Stmt) -> Iterator[Finding]:
    match node:
        case Buffer(name):
            if node not in known:
                yield f"buffer {name} does not exist here", where
        case Alloc(buffer, body):
            yield from _undeclared(body, known | {buffer}, node)
        case Expr() if known.issuperset(buffers_of(node)):
            return
        case _:
            for child in children(node):
                yield from _undeclared(child, known, node if isinstance(node, Stmt) else where)


def extents_positive(func: Func) -> Iterator[Finding]:
    """Loops iterate and buffers have elements."""
    for node in distinct(func):
        if isinstance(node, For) and node.extent < 1:
            yield f"{node.extent} iterations", node
        if isinstance(node, Buffer) and any(extent < 1 for extent in node.shape):
            yield f"{node.name} has no elements", node


def sequences_flat(func: Func) -> Iterator[Finding]:
    """Statements in a row are in one sequence."""
    for seq in find(func.body, Seq):
        if len(seq.stmts) == 1 or any(isinstance(each, Seq) for each in seq.stmts):
            yield "a sequence of one, or directly inside another", func


def inputs_untouched(func: Func) -> Iterator[Finding]:
    """Parameters are inputs, which are only read, and then outputs, which are written."""
    stored = {store.buffer for store in find(func.body, Store)}
    stored |= {dma.dram.buffer for dma in find(func.body, Dma) if dma.direction == "store"}
    read = {load.buffer for load in find(func.body, Load)}
    outputs = [param for param in func.params if param in stored]
    if not outputs:
        yield "nothing is written", func
    if outputs != list(func.params[len(func.params) - len(outputs) :]):
        yield "the outputs are not the last parameters", func
    for param in func.params:
        if param not in stored and param not in read and not _copied(func, param):
            yield f"parameter {param.name} is not used", func


def _copied(func: Func, param: Buffer) -> bool:
    return any(dma.dram.buffer is param for dma in find(func.body, Dma))


def plain_nests(func: Func) -> Iterator[Finding]:
    """Allocations around nests of loops around one block each."""
    body = func.body
    while isinstance(body, Alloc):
        body = body.body
    for nest in body.stmts if isinstance(body, Seq) else (body,):
        at: Stmt = nest
        while isinstance(at, For):
            at = at.body
        if not isinstance(at, Block):
            yield "not a nest of loops around one block", nest


def host_only(func: Func) -> Iterator[Finding]:
    """There are no instructions of the accelerator."""
    yield from _none_of(func, (Dma, MicroKernel, Push, Pop, Synchronize))


def starts_own(func: Func) -> Iterator[Finding]:
    """A block initialises what it goes on with."""
    for block in find(func.body, Block):
        if block.init is not None:
            begun = {store.buffer for store in find(block.init, Store)}
            for buffer in begun - {store.buffer for store in find(block.body, Store)}:
                yield f"{block.name} initialises {buffer.name} and does not go on with it", block


def at_once(func: Func) -> Iterator[Finding]:
    """Iterations that may be done at the same time do not need one another."""
    for loop in find(func.body, For):
        if loop.kind in (LoopKind.PARALLEL, LoopKind.VECTORIZED):
            for block in find(loop, Block):
                if loop.var in block.reductions:
                    yield f"{block.name} reduces over the {loop.kind.value} {loop.var.name}", loop


def no_init(func: Func) -> Iterator[Finding]:
    """No block initialises."""
    for block in find(func.body, Block):
        if block.init is not None:
            yield "initialises although reductions are decomposed", block


def no_blocks(func: Func) -> Iterator[Finding]:
    """There are no blocks."""
    yield from _none_of(func, (Block,))


def _none_of(func: Func, kinds: tuple[type[Stmt], ...]) -> Iterator[Finding]:
    for node in walk(func.body):
        if isinstance(node, kinds):
            yield f"{type(node).__name__} has no place here", node


def bases_given(func: Func) -> Iterator[Finding]:
    """Every on-chip buffer says where it is."""
    for alloc in find(func.body, Alloc):
        if alloc.buffer.on_chip and not BASE.is_on(alloc):
            yield f"{alloc.buffer.name} has no place in {alloc.buffer.scope}", alloc


def ends_synchronized(func: Func) -> Iterator[Finding]:
    """What uses the accelerator ends by waiting for it."""
    uses = any(isinstance(node, Dma | MicroKernel) for node in walk(func.body))
    if uses and not isinstance(_last(func.body), Synchronize):
        yield "the accelerator is not waited for at the end", func


def _last(stmt: Stmt) -> Stmt:
    while isinstance(stmt, Seq | Alloc) and stmt != Seq(()):
        stmt = stmt.stmts[-1] if isinstance(stmt, Seq) else stmt.body
    return stmt


def flat(func: Func) -> Iterator[Finding]:
    """Parameters and local buffers have one axis."""
    local = (alloc.buffer for alloc in find(func.body, Alloc) if alloc.buffer.scope == "local")
    for buffer in (*func.params, *local):
        if len(buffer.shape) != 1:
            yield f"{buffer.name} has rank {len(buffer.shape)}", buffer
