"""A reduction of a CPU kernel moves next to the only stage that reads it, a few lanes at a time.

    for a, l: for r: block s (init 0)          for c:
    for c, m: block out: out[c, m] = f(s[c, m])  ->  for r: for l: block s (init 0), at a = c
                                                     for m: block out

Its buffer then holds the lanes of one vector only, and the innermost loop runs over lanes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefarm.target import Target

from compile_worker.ir.expr import Buffer, Var
from compile_worker.ir.func import Func
from compile_worker.ir.nests import Loops, perfect_nest, wrap
from compile_worker.ir.stmt import Alloc, Block, Seq, Stmt, Store, sequence
from compile_worker.ir.visit import substitute
from compile_worker.passes.nests import LANE_AXES, uses


@dataclass(frozen=True, slots=True)
class _Stage:
    loops: Loops
    block: Block
    store: Store


def fuse_reductions(func: Func, target: Target) -> Func:
    """Compute each large reduction inside the loops of its one reader."""
    del target
    body = func.body
    wrappers: list[Alloc] = []
    while isinstance(body, Alloc):
        wrappers.append(body)
        body = body.body
    if not isinstance(body, Seq) or not any(a.buffer.scope == "local" for a in wrappers):
        return func
    body = sequence(_fused(list(body.stmts), body))
    for alloc in reversed(wrappers):
        body = Alloc(alloc.buffer, body, alloc.marks)
    return Func(func.name, func.params, body, func.attrs)


def _fused(nests: list[Stmt], body: Stmt) -> list[Stmt]:
    readers = _single_readers(body)
    done: list[Stmt] = []
    for nest in nests:
        reader = _stage(nest)
        producer = _stage(done[-1]) if done else None
        if reader and producer and _fits(producer, reader, readers):
            done[-1] = _together(producer, reader)
        else:
            done.append(nest)
    return done


def _single_readers(body: Stmt) -> dict[Buffer, str]:
    """Buffers that one block reads, apart from the block that writes them: the reader's name."""
    found: dict[Buffer, str] = {}
    for buffer, accesses in uses(body).of.items():
        writers = {a.block.name for a in accesses if a.writes and a.block}
        readers = {a.block.name for a in accesses if not a.writes and a.block} - writers
        if buffer.scope == "local" and len(readers) == len(writers) == 1:
            found[buffer] = readers.pop()
    return found


def _stage(nest: Stmt) -> _Stage | None:
    loops, block = perfect_nest(nest)
    if isinstance(block, Block) and isinstance(block.body, Store) and not block.marks:
        return _Stage(loops, block, block.body)
    return None


def _fits(producer: _Stage, reader: _Stage, readers: dict[Buffer, str]) -> bool:
    buffer = producer.store.buffer
    if producer.block.init is None or readers.get(buffer) != reader.block.name:
        return False
    rank = len(buffer.shape)
    spatial = tuple(loop.var for loop in reader.loops[:rank])
    reads = [a.index for a in uses(reader.block).of[buffer]]
    return (
        rank > LANE_AXES
        and len(reader.loops) == rank
        and all(index == spatial for index in reads)
        and producer.store.index == tuple(loop.var for loop in producer.loops[:rank])
    )


def _together(producer: _Stage, reader: _Stage) -> Stmt:
    rank = len(producer.store.buffer.shape)
    outer, lanes = rank - LANE_AXES, producer.loops[rank - LANE_AXES : rank]
    reductions = producer.loops[rank:]
    renamed = {
        old.var: new.var
        for old, new in zip(producer.loops[:outer], reader.loops[:outer], strict=True)
    }
    first = substitute(wrap((*reductions, *lanes), producer.block), dict[Var, Var](renamed))
    second = wrap(reader.loops[outer:], reader.block)
    return wrap(reader.loops[:outer], sequence((first, second)))
