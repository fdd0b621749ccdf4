"""Loops that hold nothing but one another: taken off, put around, named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from compile_worker.ir.expr import Var
from compile_worker.ir.stmt import For, Stmt
from compile_worker.ir.visit import children, find, rewrite

Loops: TypeAlias = tuple[For, ...]
"""The loops around something, outermost first."""


def perfect_nest(stmt: Stmt) -> tuple[Loops, Stmt]:
    """The loops that hold nothing but one another, outermost first, and what the last one holds."""
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    return tuple(loops), stmt


def outermost_loops(stmt: Stmt) -> Iterator[For]:
    """The loops of a statement that no other loop of it holds, in order."""
    if isinstance(stmt, For):
        yield stmt
        return
    for each in children(stmt):
        if isinstance(each, Stmt):
            yield from outermost_loops(each)


def wrap(loops: Sequence[For], body: Stmt) -> Stmt:
    """The same loops around another body."""
    for loop in reversed(loops):
        body = For(loop.var, loop.extent, body, loop.kind, loop.marks)
    return body


def with_named_loops(stmt: Stmt, stage: str, short: Callable[[str], str]) -> Stmt:
    """The statement with its loop variables called `<stage>_<short>`, counted where that is taken.

    Args:
        short: of a variable's name, what says which one it is.
    """
    taken: Counter[str] = Counter()
    values: dict[Var, Var] = {}
    for loop in find(stmt, For):
        name = short(loop.var.name)
        taken[name] += 1
        suffix = f"_{taken[name]}" if taken[name] > 1 else ""
        values[loop.var] = Var(f"{stage}_{name}{suffix}")
    return rewrite(stmt, lambda at: values.get(at) if isinstance(at, Var) else None)
