"""Statements of scripts: loops, branches and assignments as IR, before nests are named."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tilefarm.dtype import DType
from tilefarm.names import unused

from compile_worker.ir.expr import INDEX, Buffer, Const, Expr, Load, Var, index
from compile_worker.ir.stmt import NOTHING, Alloc, For, If, LoopKind, Stmt, Store, sequence
from compile_worker.ir.visit import find
from compile_worker.te.script_errors import ScriptSource
from compile_worker.te.script_values import TYPES, ScriptValues

KINDS: Final[Mapping[str, LoopKind]] = {
    "range": LoopKind.SERIAL,
    "parallel": LoopKind.PARALLEL,
    "vectorized": LoopKind.VECTORIZED,
    "unrolled": LoopKind.UNROLLED,
}

_STATEMENTS: Final = (
    "for i in range(...), if, t[i] = ..., name = ..., += and the like, pass; results are stored in"
    " the outputs"
)
_RANGES: Final = "for i in range(n), range(a, b), parallel(n), vectorized(n) or unrolled(n)"


class Statements(ScriptValues):
    """Turns a function's statements into IR.

    Loop variables have names of their own, `<name>.<number>`, until nests are named; `loops` says
    where each was written. `scratch` are buffers that outermost statements share.
    """

    def __init__(
        self, source: ScriptSource, names: dict[str, object], outputs: set[Buffer]
    ) -> None:
        super().__init__(source, names)
        self.loops: dict[Var, ast.For] = {}
        self.scratch: list[Buffer] = []
        self._outputs = outputs
        self._cells: dict[str, Buffer] = {}
        self._own: set[str] = set()
        self._changing: frozenset[str] = frozenset()
        self._buffers = {each.name for each in names.values() if isinstance(each, Buffer)}
        self._inputs = {each for each in names.values() if isinstance(each, Buffer)} - outputs

    def run(self, body: Sequence[ast.stmt]) -> list[Stmt]:
        """The function's statements in order; what they share is in `scratch`."""
        self._changing = frozenset(_changed_names(body))
        made, self.scratch = self._scope(body)
        return made

    def _scope(self, body: Sequence[ast.stmt]) -> tuple[list[Stmt], list[Buffer]]:
        """Statements of one block, and the buffers that begin in it; names end with it."""
        made: list[Stmt] = []
        begun: list[Buffer] = []
        for tree in body:
            made += self._statement(tree, begun)
        return made, begun

    def _inner(self, body: Sequence[ast.stmt]) -> Stmt:
        """A block as one statement, with its own names."""
        names, cells, own = dict(self.names), dict(self._cells), set(self._own)
        made, begun = self._scope(body)
        self.names, self._cells, self._own = names, cells, own
        stmt = sequence(made)
        for buffer in reversed(begun):
            stmt = Alloc(buffer, stmt)
        return stmt

    def _statement(self, tree: ast.stmt, begun: list[Buffer]) -> list[Stmt]:
        match tree:
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                return []
            case ast.For(target=ast.Name(id=name), body=body, orelse=[]):
                return [self._loop(tree, name, body)]
            case ast.If(test=test, body=body, orelse=orelse):
                return self._branch(test, body, orelse)
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                return [self._store(target, value)]
            case ast.Assign(targets=[ast.Name() as target], value=value):
                return self._name(target, value, begun)
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                return self._name(target, value, begun)
            case ast.AugAssign(target=ast.Subscript() | ast.Name() as target, op=op, value=value):
                return [self._changed(target, op, value)]
            case _:
                what = type(tree).__name__
                raise self.error(tree, f"{what} is no statement of a script", _STATEMENTS)

    def _loop(self, tree: ast.For, name: str, body: Sequence[ast.stmt]) -> Stmt:
        match tree.iter:
            case ast.Call(func=ast.Name(id=kind), args=bounds, keywords=[]) if kind in KINDS:
                numbers = [self.number(each, "a loop's bound") for each in bounds]
            case _:
                raise self.error(tree, "this is no loop of a script", _RANGES)
        if len(numbers) not in (1, 2):
            raise self.error(tree, f"{len(numbers)} bounds", _RANGES)
        begin, end = (0, *numbers) if len(numbers) == 1 else numbers
        if end <= begin:
            raise self.error(tree, f"no iterations from {begin} to {end}", "a range of one or more")
        self._fresh(tree)
        var = Var(f"{name}.{len(self.loops)}")
        self.loops[var] = tree
        outer = dict(self.names)
        self.names[name] = var + begin if begin else var
        made = self._inner(body)
        self.names = outer
        self._own.discard(name)
        return For(var, end - begin, made, KINDS[kind])

    def _branch(
        self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]
    ) -> list[Stmt]:
        known = self.value(test)
        if not isinstance(known, Expr):
            chosen = self._inner(body if known else orelse)
            return [] if chosen is NOTHING else [chosen]
        otherwise = self._inner(orelse) if orelse else None
        return [If(self.condition(test), self._inner(body), otherwise)]

    def _store(self, target: ast.Subscript, value: ast.expr) -> Stmt:
        place = self._place(target)
        return self._stored(target, place, self.expr(value, place.dtype))

    def _place(self, target: ast.Subscript) -> Load:
        """An element that may be written."""
        place = self.element(target)
        if place.buffer in self._inputs:
            legal = f"one of {', '.join(sorted(each.name for each in self._outputs))}"
            raise self.error(target, f"{place.buffer.name} is an input", legal)
        return place

    def _stored(self, tree: ast.AST, place: Load, value: Expr) -> Store:
        store = Store(place.buffer, place.index, value)
        self.places.setdefault(store, tree)
        return store

    def _name(self, target: ast.Name, value: ast.expr, begun: list[Buffer]) -> list[Stmt]:
        """A name for a buffer, a number, an expression of indices, or what can change."""
        match value:
            case ast.Call(
                func=ast.Name(id="buffer"), args=[ast.Name(id=kind), *shape], keywords=[]
            ):
                self._fresh(target)
                extents = tuple(self.number(each, "an extent") for each in shape)
                self.names[target.id] = self._buffer(target, kind, extents, begun)
                return []
        cell = self._cells.get(target.id)
        if cell is not None:
            place = Load(cell, (index(0),))
            return [self._stored(target, place, self.expr(value, cell.dtype))]
        self._fresh(target)
        found = self.value(value)
        if isinstance(found, float) and target.id in self._changing:
            found = Const(found, DType.FLOAT32)
        if not isinstance(found, Expr) or not (
            _changes(found) or self._gets_another(target, found)
        ):
            self.names[target.id] = found
            return []
        cell = self._buffer(target, found.dtype.value, (1,), begun)
        self._cells[target.id] = cell
        place = Load(cell, (index(0),))
        self.names[target.id] = place
        return [self._stored(target, place, found)]

    def _gets_another(self, target: ast.Name, value: Expr) -> bool:
        """Whether a name gets another value later than this one, which is no index."""
        return target.id in self._changing and value.dtype is not INDEX

    def _fresh(self, target: ast.Name | ast.For) -> None:
        """Refuse to give a name that the script has given already."""
        name = target.id if isinstance(target, ast.Name) else ast.unparse(target.target)
        if name in self._own or isinstance(self.names.get(name), Buffer):
            why = f"{name} stands for something else already"
            raise self.error(target, why, "another name, or 0.0 or int32(0) first where it changes")
        self._own.add(name)

    def _buffer(
        self, target: ast.Name, kind: str, shape: tuple[int, ...], begun: list[Buffer]
    ) -> Buffer:
        if kind not in TYPES or not shape:
            why = f"{kind}{list(shape)} is no type of elements with a shape"
            raise self.error(target, why, f"one of {', '.join(TYPES)}, then extents")
        name = unused(target.id, self._buffers)
        self._buffers.add(name)
        begun.append(Buffer(name, shape, TYPES[kind], "local"))
        return begun[-1]

    def _changed(self, target: ast.Subscript | ast.Name, op: ast.operator, value: ast.expr) -> Stmt:
        """`target op= value`."""
        if isinstance(target, ast.Subscript):
            place = self._place(target)
        elif target.id in self._cells:
            place = Load(self._cells[target.id], (index(0),))
        else:
            legal = f"{target.id} = 0.0, or int32(0), before"
            raise self.error(target, f"{target.id} does not change", legal)
        new = self.binary(target, op, place, self.value(value))
        return self._stored(target, place, self.typed(target, new, place.dtype))


def _changed_names(body: Sequence[ast.stmt], known: frozenset[str] = frozenset()) -> Iterator[str]:
    """Names that get a value again: total += ..., best = x[i], there or in a block inside."""
    names = set(known)
    for tree in body:
        match tree:
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name in names:
                    yield name
                names.add(name)
            case ast.For(body=inner, orelse=orelse) | ast.If(body=inner, orelse=orelse):
                yield from _changed_names(inner, frozenset(names))
                yield from _changed_names(orelse, frozenset(names))


def _changes(value: Expr) -> bool:
    """Whether a name for this value is an element that can change, and not just another name."""
    return isinstance(value, Const) or next(find(value, Load), None) is not None
