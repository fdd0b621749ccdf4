"""All iterations of a vectorized loop at once: values are LLVM vectors with one lane an iteration.

    vectorized o in 0:16: y[o] = int32(x[p*16 + o]) * a    ->    <16 x i8> load, sext, mul, store

What does not depend on the loop's variable is computed once, as a scalar, and splat. An index is a
base and an offset for each lane wherever the offsets are known now: lanes side by side in memory
are one load. Lanes that a condition excludes read nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, cast

from tilefarm.dtype import DType

from compile_worker.codegen.byte_tables import looked_up
from compile_worker.codegen.dots import DotWriter
from compile_worker.codegen.interleave import interleaved, loaded_together, unwoven, woven
from compile_worker.codegen.lane_memory import LaneMemory
from compile_worker.codegen.lane_runs import LanePlaces, runs
from compile_worker.codegen.scalars import Scalars, reads
from compile_worker.codegen.text import MEMORY_TYPES, VALUE_TYPES, FunctionText, literal
from compile_worker.ir.affine import linear, sum_of
from compile_worker.ir.bounds import Interval, interval
from compile_worker.ir.expr import (
    INDEX,
    Buffer,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Load,
    Select,
    Var,
)
from compile_worker.ir.simplify import simplify
from compile_worker.ir.stmt import For, Seq, Stmt, Store
from compile_worker.ir.visit import mentioned, substitute
from compile_worker.isa import Isa
from compile_worker.passes.byte_tables import index_of_entry
from compile_worker.passes.dot_products import Dot, dot_by

_SMALL: Final = Interval(0, (1 << 31) - 1)


class Vectors(Scalars):
    """The values that expressions have in all iterations of one loop.

    `outer` gives what is the same for all of them; `extents` are those of the loops around.
    """

    def __init__(
        self, text: FunctionText, outer: Scalars, loop: For, extents: dict[Var, int], isa: Isa
    ) -> None:
        super().__init__(text, {})
        self._isa = isa
        self._outer = outer
        self._var, self._lanes = loop.var, loop.extent
        self._memory = LaneMemory(text, loop.extent)
        self._extents = {**extents, loop.var: loop.extent}
        self._active: tuple[bool, ...] = (True,) * loop.extent
        self._live: str | None = None
        numbers = ", ".join(f"i64 {lane}" for lane in range(loop.extent))
        self.define(loop.var, f"<{numbers}>")

    def statement(self, stmt: Stmt) -> None:
        """A store, statements in order, or a loop that all iterations go through in step."""
        match stmt:
            case Seq(stmts):
                with self._scope():
                    for loads in loaded_together(stmts, self._var, self._lanes):
                        self._load_interleaved(loads)
                    for group in interleaved(stmts, self._var):
                        if len(group) > 1:
                            self._store_interleaved(cast(tuple[Store, ...], group))
                        else:
                            self.statement(group[0])
            case For(var, 1, body):
                self._outer.define(var, "0")
                self.statement(body)
            case For() if (dot := self._dot(stmt)) is not None:
                with self._scope():
                    self._add_products(dot)
            case For(var, extent, body):
                self._extents[var] = extent
                with self._text.loop(extent) as counter, self._scope():
                    self._outer.define(var, counter)
                    self.statement(body)
            case Store():
                with self._scope():
                    self._store(stmt)
            case _:
                raise TypeError(f"{type(stmt).__name__} in a vectorized loop")

    def _store_interleaved(self, group: tuple[Store, ...]) -> None:
        """Stores that together fill memory without gaps: one store of all lanes of all of them."""
        with self._scope():
            kind, dtype = MEMORY_TYPES[group[0].buffer.dtype], group[0].buffer.dtype
            values = [self._stored_value(store) for store in group]
            start = self._outer.address(
                group[0].buffer, (self._in_lane(group[0].index[0], 0),), inbounds=False
            )
            whole = woven(self._text, values, self._lanes, kind)
            lanes = self._lanes * len(group)
            self._text.do(f"store <{lanes} x {kind}> {whole}, ptr {start}, align {dtype.nbytes}")

    def _load_interleaved(self, loads: tuple[Load, ...]) -> None:
        """Loads that together fill memory without gaps: one load of all lanes of all of them."""
        kind, dtype = MEMORY_TYPES[loads[0].buffer.dtype], loads[0].buffer.dtype
        start = self._outer.address(
            loads[0].buffer, (self._in_lane(loads[0].index[0], 0),), inbounds=False
        )
        lanes = self._lanes * len(loads)
        whole = self._text.op(f"load <{lanes} x {kind}>, ptr {start}, align {dtype.nbytes}")
        parts = unwoven(self._text, whole, len(loads), self._lanes, kind)
        self._scopes[-1].update(zip(loads, parts, strict=True))

    def _dot(self, loop: For) -> Dot | None:
        """The dot product that a loop is, if there is an instruction for it."""
        return dot_by(self._isa, loop, self._var, self._lanes)

    def _add_products(self, dot: Dot) -> None:
        first = {self._var: Const(0, INDEX), dot.over: Const(0, INDEX)}
        total, data, rows = (
            self._outer.address(each.buffer, (simplify(substitute(each.index[0], first)),))
            for each in (dot.total, dot.data, dot.row)
        )
        kind, align = self.kind(DType.INT32), DType.INT32.nbytes
        start = self._text.op(f"load {kind}, ptr {total}, align {align}")
        writer = DotWriter(self._text, self._isa, self._lanes)
        found = writer.total(start, dot, data, rows)
        self._text.do(f"store {kind} {found}, ptr {total}, align {align}")

    def kind(self, dtype: DType) -> str:
        return f"<{self._lanes} x {VALUE_TYPES[dtype]}>"

    def number(self, value: float, dtype: DType) -> str:
        return f"splat ({VALUE_TYPES[dtype]} {literal(value, dtype)})"

    def suffix(self, dtype: DType) -> str:
        return f"v{self._lanes}{super().suffix(dtype)}"

    def enter(self) -> None:
        super().enter()
        self._outer.enter()

    def leave(self) -> None:
        super().leave()
        self._outer.leave()

    def value(self, expr: Expr) -> str:
        if isinstance(expr, Const):
            return self.number(expr.value, expr.dtype)
        if self._uniform(expr) and not (self._live and reads(expr)):
            return self._splat(self._outer.value(expr), VALUE_TYPES[expr.dtype])
        return super().value(expr)

    @contextmanager
    def _scope(self) -> Iterator[None]:
        self.enter()
        yield
        self.leave()

    def _uniform(self, expr: Expr) -> bool:
        return self._var not in mentioned(expr)

    def _splat(self, scalar: str, kind: str) -> str:
        lanes = self._lanes
        one = self._text.op(f"insertelement <{lanes} x {kind}> poison, {kind} {scalar}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self._text.op(
            f"shufflevector <{lanes} x {kind}> {one}, <{lanes} x {kind}> poison, {zeros}"
        )

    def _select(self, expr: Select) -> str:
        if self._uniform(expr.condition):
            return self._chosen_for_all(expr)
        known = self._known(expr.condition)
        if known is None:
            return self._chosen_by_lane(expr)
        if all(known) or not any(known):
            return self.value(expr.then if known[0] else expr.otherwise)
        with self._only(known):
            then = self.value(expr.then)
        with self._only([not each for each in known]):
            otherwise = self.value(expr.otherwise)
        return self.chosen(_truths(known), self.kind(expr.dtype), then, otherwise)

    def _chosen_for_all(self, expr: Select) -> str:
        condition, kind = self._outer.value(expr.condition), self.kind(expr.dtype)
        if reads(expr.then) or reads(expr.otherwise):
            return self.branched(condition, expr)
        then, otherwise = self.value(expr.then), self.value(expr.otherwise)
        return self._text.op(f"select i1 {condition}, {kind} {then}, {kind} {otherwise}")

    def _chosen_by_lane(self, expr: Select) -> str:
        """A select whose condition is known when the kernel runs, and differs between lanes."""
        condition, truth = self.value(expr.condition), self.kind(DType.BOOL)
        opposite = self._text.op(f"xor {truth} {condition}, {self.number(1, DType.BOOL)}")
        with self._only_live(condition):
            then = self.value(expr.then)
        with self._only_live(opposite):
            otherwise = self.value(expr.otherwise)
        return self.chosen(condition, self.kind(expr.dtype), then, otherwise)

    @contextmanager
    def _only(self, active: Sequence[bool]) -> Iterator[None]:
        """Values that matter in some lanes only."""
        before = self._active
        self._active = tuple(a and b for a, b in zip(before, active, strict=True))
        with self._scope():
            yield
        self._active = before

    @contextmanager
    def _only_live(self, condition: str) -> Iterator[None]:
        """Values that matter only in lanes where a condition holds, known at run time."""
        before = self._live
        truth = self.kind(DType.BOOL)
        live = self._text.op(f"and {truth} {before}, {condition}") if before else condition
        self._live = live
        with self._scope():
            yield
        self._live = before

    def _known(self, condition: Expr) -> list[bool] | None:
        """The condition for each lane, if that is known now."""
        if reads(condition):
            return None
        found = [simplify(self._in_lane(condition, i), self._extents) for i in range(self._lanes)]
        values = [each.value for each in found if isinstance(each, Const)]
        return [bool(value) for value in values] if len(values) == self._lanes else None

    def _in_lane(self, expr: Expr, lane: int) -> Expr:
        return substitute(expr, {self._var: Const(lane, INDEX)})

    def _places(self, at: Expr) -> LanePlaces | None:
        """Where the lanes are, if their distances are known now."""
        terms, constant = linear(at)
        step = terms.pop(self._var, 0)
        if all(map(self._uniform, terms)):
            return LanePlaces(sum_of(terms, constant), tuple(step * i for i in range(self._lanes)))
        if reads(at):
            return None
        forms = [linear(simplify(self._in_lane(at, i), self._extents)) for i in range(self._lanes)]
        first, start = forms[0]
        if any(terms != first for terms, _ in forms):
            return None
        return LanePlaces(sum_of(first, start), tuple(constant - start for _, constant in forms))

    def _floor(self, expr: FloorDiv | FloorMod) -> str:
        """Of what is known to be small and not negative: there are no vector divisions of int64."""
        if expr.dtype is not INDEX or not isinstance(expr.right, Const):
            return super()._floor(expr)
        if not interval(expr.left, self._extents).within(_SMALL) or expr.right.value not in _SMALL:
            return super()._floor(expr)
        narrow, wide = self.kind(DType.INT32), self.kind(INDEX)
        left = self._text.op(f"trunc {wide} {self.value(expr.left)} to {narrow}")
        operation = "udiv" if isinstance(expr, FloorDiv) else "urem"
        right = self.number(expr.right.value, DType.INT32)
        found = self._text.op(f"{operation} {narrow} {left}, {right}")
        return self._text.op(f"zext {narrow} {found} to {wide}")

    def _load(self, expr: Load) -> str:
        (at,) = expr.index
        places = self._places(at) if not self._live or self._is_inside(expr) else None
        entry = index_of_entry(self._isa, expr)
        if places is None and entry is not None:
            found = self._looked_up(expr.buffer, entry)
        elif places is not None:
            found = self._loaded(expr.buffer, places)
        else:
            found = self._gathered(expr.buffer, at)
        if expr.buffer.dtype is DType.BOOL:
            return self._text.op(f"trunc <{self._lanes} x i8> {found} to {self.kind(DType.BOOL)}")
        return found

    def _is_inside(self, load: Load) -> bool:
        """Whether what is read is there for every lane, also where it does not matter."""
        (at,), (extent,) = load.index, load.buffer.shape
        return interval(at, self._extents).within(Interval(0, extent - 1))

    def _looked_up(self, table: Buffer, entry: Expr) -> str:
        """Any byte is an index, also where lanes are not live."""
        return looked_up(
            self._text,
            self._outer.pointer(table),
            self.value(entry),
            self._lanes,
            signed=entry.dtype is DType.INT8,
        )

    def _loaded(self, buffer: Buffer, places: LanePlaces) -> str:
        start = self._outer.address(buffer, (places.base,), inbounds=False)
        if len(set(places.offsets)) == 1:
            kind = MEMORY_TYPES[buffer.dtype]
            return self._splat(self._text.op(f"load {kind}, ptr {start}"), kind)
        return self._memory.read(buffer.dtype, start, runs(places.offsets, self._active))

    def _gathered(self, buffer: Buffer, at: Expr) -> str:
        """Lane by lane; lanes that are not live read the first element, which is always there."""
        places = self.value(at)
        if self._live:
            none = self.number(0, INDEX)
            places = self.chosen(self._live, self.kind(INDEX), places, none)
        start = self._outer.pointer(buffer)
        active = [lane for lane in range(self._lanes) if self._active[lane]]
        return self._memory.gathered(buffer.dtype, start, places, active)

    def _stored_value(self, stmt: Store) -> str:
        value = self.value(stmt.value)
        if stmt.buffer.dtype is DType.BOOL:
            return self._text.op(f"zext {self.kind(DType.BOOL)} {value} to <{self._lanes} x i8>")
        return value

    def _store(self, stmt: Store) -> None:
        value = self._stored_value(stmt)
        places = self._places(stmt.index[0])
        if places is None:
            raise TypeError(f"lanes of {stmt.buffer.name} are stored at unknown distances")
        start = self._outer.address(stmt.buffer, (places.base,), inbounds=False)
        self._memory.write(stmt.buffer.dtype, start, value, runs(places.offsets, self._active))


def _truths(values: Sequence[bool]) -> str:
    return "<" + ", ".join(f"i1 {'true' if value else 'false'}" for value in values) + ">"
