"""Where things are in a function: paths from its body to a loop or block, and edits along them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from tilefarm.errors import ScheduleError

from compile_worker.ir.expr import Buffer, Expr, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Block, For, If, Seq, Stmt
from compile_worker.ir.visit import find, map_children, mentioned

_S = TypeVar("_S", bound=Stmt)


@dataclass(frozen=True, slots=True)
class Path:
    """Statements from the function's body down to one statement, each directly inside the last."""

    steps: tuple[Stmt, ...]

    @property
    def target(self) -> Stmt:
        return self.steps[-1]

    @property
    def loops(self) -> tuple[For, ...]:
        """Loops on the way, outermost first, the target included if it is one."""
        return tuple(step for step in self.steps if isinstance(step, For))

    def within(self, outer: Stmt) -> Path:
        """The part of the path from `outer` on."""
        return Path(self.steps[self.steps.index(outer) :])


def below(stmt: Stmt) -> tuple[Stmt, ...]:
    """Every statement at or below `stmt`, blocks being leaves; parents first."""
    return _tree(stmt)[0]


@lru_cache(maxsize=64)
def _tree(stmt: Stmt) -> tuple[tuple[Stmt, ...], tuple[int, ...]]:
    """What `below` gives, and for each statement the position of the one it is directly inside."""
    found: list[Stmt] = []
    parents: list[int] = []
    stack = [(stmt, -1)]
    while stack:
        at, parent = stack.pop()
        position = len(found)
        found.append(at)
        parents.append(parent)
        if type(at) is For or type(at) is Alloc:
            stack.append((at.body, position))
        else:
            for child in reversed(inside(at)):
                stack.append((child, position))
    return tuple(found), tuple(parents)


def blocks(stmt: Stmt) -> list[Block]:
    """Every block at or below `stmt`, in program order."""
    return [at for at in below(stmt) if type(at) is Block]


def inside(stmt: Stmt) -> tuple[Stmt, ...]:
    """Statements directly inside; none for a block, which schedules treat as one piece of work."""
    if type(stmt) is For or type(stmt) is Alloc:
        return (stmt.body,)
    if type(stmt) is Seq:
        return stmt.stmts
    if type(stmt) is If:
        return (stmt.then,) if stmt.otherwise is None else (stmt.then, stmt.otherwise)
    return ()


def loop_path(primitive: str, func: Func, loop: str) -> Path:
    """The path to a loop, by the name of its variable."""
    found = _path_to(func.body, For, lambda at: at.var.name == loop)
    if not found:
        names = ", ".join(at.var.name for at in below(func.body) if isinstance(at, For))
        raise ScheduleError(primitive, loop, "there is no such loop", f"one of {names}")
    return Path(found)


def block_path(primitive: str, func: Func, stage: str) -> Path:
    """The path to the block of a stage."""
    found = _path_to(func.body, Block, lambda at: at.name == stage)
    if not found:
        names = ", ".join(block.name for block in blocks(func.body))
        raise ScheduleError(primitive, stage, "there is no such stage", f"one of {names}")
    return Path(found)


def alloc_path(primitive: str, func: Func, buffer: str) -> Path:
    """The path to the allocation of a buffer."""
    found = _path_to(func.body, Alloc, lambda at: at.buffer.name == buffer)
    if not found:
        names = ", ".join(at.buffer.name for at in below(func.body) if isinstance(at, Alloc))
        params = ", ".join(param.name for param in func.params)
        hint = f"one of {names}" if names else f"cache_read, of {params}, makes one"
        raise ScheduleError(primitive, buffer, "there is no such allocation", hint)
    return Path(found)


def _path_to(stmt: Stmt, kind: type[_S], wanted: Callable[[_S], bool]) -> tuple[Stmt, ...]:
    """Statements from `stmt` down to the first wanted one of a kind; empty when there is none."""
    for position, at in enumerate(below(stmt)):
        if type(at) is kind and wanted(at):
            return _path_of(stmt, position)
    return ()


def _path_of(stmt: Stmt, position: int) -> tuple[Stmt, ...]:
    """Statements from `stmt` down to the one that has this position in `below(stmt)`."""
    found, parents = _tree(stmt)
    path: list[Stmt] = []
    while position >= 0:
        path.append(found[position])
        position = parents[position]
    return tuple(reversed(path))


def nest_path(path: Path) -> Path:
    """The path to the root of the perfect nest that a block is the only work of."""
    depth = len(path.steps) - 1
    while depth and isinstance(path.steps[depth - 1], For):
        depth -= 1
    return Path(path.steps[: depth + 1])


def loop_target(path: Path) -> For:
    """The loop that a path from `loop_path` leads to."""
    assert isinstance(path.target, For)
    return path.target


def block_target(path: Path) -> Block:
    """The block that a path from `block_path` leads to."""
    assert isinstance(path.target, Block)
    return path.target


def replaced(func: Func, path: Path, new: Stmt | None) -> Func:
    """The function with the statement at `path` replaced, or removed when `new` is None."""
    for child, parent in zip(reversed(path.steps[1:]), reversed(path.steps[:-1]), strict=True):
        new = _with_child(parent, child, new)
    if new is None:
        raise ValueError(f"nothing would be left of {func.name}")
    return with_body(func, new)


def _with_child(parent: Stmt, old: Stmt, new: Stmt | None) -> Stmt | None:
    """`parent` with one of its statements replaced; None when that leaves it without work."""
    match parent:
        case Seq(stmts=stmts):
            return in_sequence([new if stmt is old else stmt for stmt in stmts])
        case If(condition=condition, then=then, otherwise=otherwise) if new is not None:
            if then is old:
                return If(condition, new, otherwise)
            return If(condition, then, new)
        case For(var, extent, _, kind, marks) if new is not None:
            return For(var, extent, new, kind, marks)
        case Alloc(buffer, _, marks) if new is not None:
            return Alloc(buffer, new, marks)
        case _:
            return None


def in_sequence(stmts: Sequence[Stmt | None]) -> Stmt | None:
    """The statements one after the other, without absent ones and without a Seq inside a Seq."""
    flat: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, Seq):
            flat.extend(stmt.stmts)
        elif stmt is not None:
            flat.append(stmt)
    return Seq(tuple(flat)) if len(flat) > 1 else flat[0] if flat else None


def with_body(func: Func, body: Stmt) -> Func:
    """`func` with another body."""
    return Func(func.name, func.params, body, func.attrs)


def rebind(
    stmt: Stmt,
    values: Mapping[Var, Expr],
    reductions: Mapping[Var, tuple[Var, ...]] | None = None,
) -> Stmt:
    """`stmt` with loop variables replaced, and the reductions of its blocks renamed accordingly."""
    renamed = reductions or {}
    done: dict[Node, Node] = {}
    done.update(values.items())
    changing = values.keys() | renamed.keys()

    def visit(at: Node) -> Node:
        found = done.get(at)
        if found is None:
            if changing.isdisjoint(mentioned(at)):
                found = at
            else:
                found = block(at) if type(at) is Block else map_children(at, visit)
            done[at] = found
        return found

    def block(at: Node) -> Node:
        assert isinstance(at, Block)
        body, init = visit(at.body), visit(at.init) if at.init is not None else None
        assert isinstance(body, Stmt)
        assert init is None or isinstance(init, Stmt)
        over: list[Var] = []
        for var in at.reductions:
            over += [new for new in renamed.get(var, (var,)) if new not in over]
        return Block(at.name, body, init, tuple(over), at.marks)

    result = visit(stmt)
    assert isinstance(result, Stmt)
    return result


@lru_cache(maxsize=4096)
def loads(block: Block) -> tuple[Load, ...]:
    """Every element that a block reads."""
    return tuple(find(block, Load))


def reads(stmt: Stmt, buffer: Buffer) -> bool:
    """Whether a block at or below `stmt` reads `buffer`."""
    return any(load.buffer is buffer for block in blocks(stmt) for load in loads(block))
