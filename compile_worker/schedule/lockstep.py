"""The primitive that lets iterations of a loop go on side by side, whatever the loop holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from tilefarm.errors import ScheduleError

from compile_worker.ir.expr import INDEX, Buffer, Const, Expr, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.independence import independent, may_be_outermost
from compile_worker.ir.nests import Loops, perfect_nest, with_named_loops, wrap
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Block, For, If, LoopKind, Seq, Stmt, Store, sequence
from compile_worker.ir.visit import mentioned, rewrite, substitute, variables
from compile_worker.schedule.guards import unused_stage, written_nest
from compile_worker.schedule.places import replaced
from compile_worker.schedule.schedule import Schedule, primitive

_T = TypeVar("_T")

WAYS: Final[Mapping[str, LoopKind]] = {
    "vectors": LoopKind.VECTORIZED,
    "written out": LoopKind.UNROLLED,
}
"""How iterations that are side by side are done."""


@primitive
def lockstep(schedule: Schedule, stage: str, loop: str, lanes: int, way: str) -> Func:
    """So many iterations of a loop of a stage go on side by side, statement by statement.

        for c in 0:40:                                    lockstep("out", "c", 16, "vectors")
          s[0] = 0
          for t in 0:8:
            s[0] = s[0] * 0.5 + x[t, c]
            out[t, c] = s[0]
    ->
        for c_0 in 0:2:
          vectorized c_1 in 0:16: s[0, c_1] = 0
          for t in 0:8:
            vectorized c_2 in 0:16: s[0, c_2] = s[0, c_2] * 0.5 + x[t, c_0*16 + c_2]
            vectorized c_3 in 0:16: out[t, c_0*16 + c_3] = s[0, c_3]

    The loop goes around all others of the stage; the iterations that are left, here 8, become the
    stage `<stage>_rest`. Each iteration does its own statements in their order, and a buffer of an
    iteration's own gets an axis for it: the last one, so that a vector lies side by side, or the
    first where lanes are written out, so that vectors may run along what each has for itself.
    (Nuzman and Zaks, Outer-loop vectorization, PACT 2008.)

    Raises:
        ScheduleError: the loop is not among those around the stage, its iterations need one
            another, there are fewer than `lanes`, or there is no such way.
    """
    kind = WAYS.get(way)
    if kind is None:
        raise ScheduleError("lockstep", stage, f"there is no way {way!r}", f"one of {[*WAYS]}")
    func = schedule.func
    raw, path = written_nest("lockstep", func, stage)
    rest_name = f"{stage}_rest"
    unused_stage("lockstep", func, rest_name)
    outer, held = _serial_nest(raw)
    chosen = _chosen(outer, loop)
    others = tuple(each for each in outer if each is not chosen)
    if not may_be_outermost(chosen, outer, held):
        why = f"iterations of {loop} need one another"
        raise ScheduleError("lockstep", stage, why, "a loop around what needs nothing of others")
    if not 0 < lanes <= chosen.extent:
        why = f"{lanes} of {chosen.extent} iterations cannot be side by side"
        raise ScheduleError("lockstep", stage, why, f"1 to {chosen.extent}")
    whole, rest = divmod(chosen.extent, lanes)
    tile = Var(f"{loop}_0")
    first = _Lanes(chosen.var, lanes, kind, tile * lanes)
    parts: list[Stmt] = [For(tile, whole, _part(others, held, stage, first))]
    if rest:
        end = _Lanes(chosen.var, rest, kind, Const(whole * lanes, INDEX), "_rest")
        last = _part(others, held, rest_name, end)
        parts.append(with_named_loops(last, rest_name, lambda name: name.removeprefix(f"{stage}_")))
    return replaced(func, path, sequence(parts))


def _serial_nest(stmt: Stmt) -> tuple[Loops, Stmt]:
    """The loops that hold nothing but one another, as far as nobody says how they run."""
    loops, held = perfect_nest(stmt)
    count = next(
        (at for at, loop in enumerate(loops) if loop.kind is not LoopKind.SERIAL), len(loops)
    )
    return loops[:count], wrap(loops[count:], held)


def _chosen(loops: Loops, name: str) -> For:
    found = next((each for each in loops if each.var.name == name), None)
    if found is None:
        names = ", ".join(each.var.name for each in loops)
        why = f"{name} is not around all of it"
        raise ScheduleError("lockstep", name, why, f"one of {names}" if names else "another stage")
    return found


def _part(others: Loops, held: Stmt, stage: str, lanes: _Lanes) -> Stmt:
    """The nest of a stage with iterations side by side within its block."""
    over = tuple(each.var for each in others if not independent(each.var, held))
    return wrap(others, Block(stage, lanes.sunk(held, {}), None, over))


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Iterations of a loop side by side: its variable, how many, and the first one's value.

    Buffers with an axis for them have names that end with `suffix`.
    """

    var: Var
    count: int
    kind: LoopKind
    start: Expr
    suffix: str = ""
    _used: list[Var] = field(default_factory=list)

    def sunk(self, stmt: Stmt, wide: Mapping[Buffer, Buffer]) -> Stmt:
        """The statement for all lanes, which `wide` buffers have an axis for."""
        match stmt:
            case Seq(stmts):
                return sequence(self.sunk(each, wide) for each in stmts)
            case For(var, extent, body, LoopKind.SERIAL, marks):
                return For(var, extent, self.sunk(body, wide), LoopKind.SERIAL, marks)
            case Alloc(buffer, body, marks):
                shape = self._with_lane(buffer.shape, self.count)
                more = Buffer(f"{buffer.name}{self.suffix}", shape, buffer.dtype, buffer.scope)
                return Alloc(more, self.sunk(body, {**wide, buffer: more}), marks)
            case If(condition, then, otherwise) if self._is_common(condition, wide):
                then = self.sunk(then, wide)
                other = None if otherwise is None else self.sunk(otherwise, wide)
                return If(condition, then, other)
            case _:
                return self._side_by_side(stmt, wide)

    def _with_lane(self, axes: tuple[_T, ...], own: _T) -> tuple[_T, ...]:
        """The axes of a buffer, and that of the lanes."""
        return (*axes, own) if self.kind is LoopKind.VECTORIZED else (own, *axes)

    def _is_common(self, condition: Expr, wide: Mapping[Buffer, Buffer]) -> bool:
        """Whether a condition is the same for all lanes."""
        return self.var not in variables(condition) and not (mentioned(condition) & wide.keys())

    def _side_by_side(self, stmt: Stmt, wide: Mapping[Buffer, Buffer]) -> Stmt:
        """A loop over the lanes around a statement."""
        lane = Var(f"{self.var.name}_{len(self._used) + 1}")
        self._used.append(lane)

        def rule(node: Node) -> Node | None:
            match node:
                case Load(buffer, index) if buffer in wide:
                    return Load(wide[buffer], self._with_lane(index, lane))
                case Store(buffer, index, value) if buffer in wide:
                    return Store(wide[buffer], self._with_lane(index, lane), value)
                case _:
                    return None

        moved = substitute(rewrite(stmt, rule), {self.var: self.start + lane})
        kind = self.kind if isinstance(moved, Store) else LoopKind.SERIAL
        return For(lane, self.count, moved, kind)
