"""Where things are used, and blocks in their nests: what passes ask of a function's structure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from compile_worker.ir.annotations import Annotation
from compile_worker.ir.expr import Buffer, Expr, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.nests import Loops, perfect_nest
from compile_worker.ir.stmt import Alloc, Block, For, If, Seq, Stmt, Store, sequence
from compile_worker.ir.visit import find

LANE_AXES: Final = 2
"""Blocked tensors end in two axes that are one hardware element."""

_S = TypeVar("_S", bound=Stmt)


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write of an element, with the loops around it, outermost first."""

    path: Loops
    index: tuple[Expr, ...]
    block: Block | None
    writes: bool


@dataclass(slots=True)
class Uses:
    """Every access of every buffer of a function, in program order."""

    of: dict[Buffer, list[Access]] = field(default_factory=dict)

    def add(self, buffer: Buffer, access: Access) -> None:
        self.of.setdefault(buffer, []).append(access)


def uses(stmt: Stmt) -> Uses:
    """Where each buffer is read and written element by element."""
    found = Uses()
    _visit(stmt, (), None, found)
    return found


def _visit(stmt: Stmt, path: Loops, block: Block | None, found: Uses) -> None:
    match stmt:
        case For():
            _visit(stmt.body, (*path, stmt), block, found)
        case Seq(stmts):
            for each in stmts:
                _visit(each, path, block, found)
        case Alloc(body=body):
            _visit(body, path, block, found)
        case Block():
            if stmt.init is not None:
                _visit(stmt.init, path, stmt, found)
            _visit(stmt.body, path, stmt, found)
        case If(condition, then, otherwise):
            _reads(condition, path, block, found)
            _visit(then, path, block, found)
            if otherwise is not None:
                _visit(otherwise, path, block, found)
        case Store(buffer, index, value):
            _reads(value, path, block, found)
            found.add(buffer, Access(path, index, block, writes=True))


def _reads(expr: Expr, path: Loops, block: Block | None, found: Uses) -> None:
    for load in find(expr, Load):
        found.add(load.buffer, Access(path, load.index, block, writes=False))


def statements(stmt: Stmt) -> Iterator[Stmt]:
    """The statement and every statement in it, in program order; nothing below a statement."""
    stack = [stmt]
    while stack:
        at = stack.pop()
        yield at
        if type(at) is For or type(at) is Alloc or type(at) is Block:
            stack.append(at.body)
        elif type(at) is Seq:
            stack += reversed(at.stmts)
        elif type(at) is If:
            stack += (at.then,) if at.otherwise is None else (at.otherwise, at.then)


def of_kind(stmt: Stmt, kind: type[_S]) -> Iterator[_S]:
    """Every statement of one kind at or below a statement."""
    return (each for each in statements(stmt) if isinstance(each, kind))


def common_loops(paths: Sequence[Loops]) -> Loops:
    """The loops that are around every one of the places."""
    first, *rest = paths
    depth = len(first)
    for path in rest:
        depth = min(depth, len(path))
        while first[:depth] != path[:depth]:
            depth -= 1
    return first[:depth]


def lower_blocks(
    func: Func,
    annotation: Annotation[Block, Any, Any],
    lowered: Callable[[Block, Sequence[For], Mapping[Var, int]], Stmt],
) -> Func:
    """`func` with every annotated block, and the loops that hold only it, replaced.

    `lowered` gets the block, those loops, and the extents of the loops around them.
    """

    def visit(stmt: Stmt, extents: dict[Var, int]) -> Stmt:
        loops, inner = perfect_nest(stmt)
        if isinstance(inner, Block) and annotation.is_on(inner):
            return lowered(inner, loops, extents)
        match stmt:
            case For(var, extent, body, kind, marks):
                return For(var, extent, visit(body, {**extents, var: extent}), kind, marks)
            case Block() | Store():
                return stmt
            case _:
                return descend(stmt, lambda each: visit(each, extents))

    return Func(func.name, func.params, visit(func.body, {}), func.attrs)


def descend(stmt: Stmt, change: Callable[[Stmt], Stmt]) -> Stmt:
    """A statement that is not a loop with the statements in it changed."""
    match stmt:
        case Seq(stmts):
            return sequence([change(each) for each in stmts])
        case Alloc(buffer, body, marks):
            return Alloc(buffer, change(body), marks)
        case If(condition, then, otherwise):
            return If(condition, change(then), None if otherwise is None else change(otherwise))
        case _:
            return stmt
