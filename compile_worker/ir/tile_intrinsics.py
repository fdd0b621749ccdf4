"""Intrinsics of users that do a small nest of loops at once: what one means, and which nest it is.

    for i in 0:8: for k in 0:2:  out[i] = out[i] + int32(a[i, k]) * int32(b[i, k])

Operands are vectors of what the nest reads, in the order of their indices. In a function they may
lie anywhere, as long as the distances are known:

    for j in 0:8 {intrinsic=pairs_3f1c0a9b2d44}: for t in 0:2 {intrinsic=pairs_3f1c0a9b2d44}:
      s[j] = s[j] + int32(x[r*64 + t]) * int32(y[j*64 + t])

The loops stay, and say what the intrinsic computes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefarm.processors import needed_words
from tilefarm.target import Host

from compile_worker.ir.affine import linear
from compile_worker.ir.annotations import INTRINSIC
from compile_worker.ir.expr import Expr, Load, Var
from compile_worker.ir.matching import matched
from compile_worker.ir.simplify import simplify
from compile_worker.ir.stmt import Block, For, LoopKind, Stmt, Store
from compile_worker.ir.visit import mentioned


@dataclass(frozen=True, slots=True)
class TileIntrinsic:
    """One of them.

    Attributes:
        loops: variables and extents, outermost first.
        reductions: those of the variables that it sums over.
        store: what the innermost loop does.
        operands: what that reads, each once; the last one is what it adds to.
        llvm: the text of a function's body, in which operands are vectors by their names.
        needs: words of /proc/cpuinfo, of processors that have its instructions.
    """

    name: str
    loops: tuple[tuple[Var, int], ...]
    reductions: tuple[Var, ...]
    store: Store
    operands: tuple[Load, ...]
    llvm: str
    needs: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Its name without the digits of the file that declares it."""
        return self.name.rpartition("_")[0]

    def lacking(self, host: Host) -> str:
        """What it needs and a processor has not; "" where it has all."""
        words = needed_words(host)
        if host.triple.startswith("x86_64"):
            words |= {"sse", "sse2"}  # Every one has these, so no level names them.
        return ", ".join(word for word in self.needs if word not in words)

    def extents(self, operand: Load) -> tuple[int, ...]:
        """How long an operand is along each of its axes."""
        known = dict(self.loops)
        return tuple(known[at] for at in operand.index if isinstance(at, Var))

    def accesses(self, store: Store, loops: Sequence[Var]) -> tuple[Load, ...] | None:
        """What stands for each operand in a store, if that does the same over these loops."""
        value, mine = simplify(store.value), self.operands[-1]
        own = Load(store.buffer, tuple(map(simplify, store.index)))
        over = [(var, loop) for (var, _), loop in zip(self.loops, loops, strict=True)]

        def may_be(operand: Load, expr: Expr) -> bool:
            if not isinstance(expr, Load) or (operand is mine) != (expr.buffer is store.buffer):
                return False
            for var, loop in over:
                steps, moves = _steps(expr.index, loop), var in operand.index
                if steps is None or (any(steps) and not moves):
                    return False
                if operand is mine and moves and not any(steps):
                    return False
            return operand is not mine or expr is own

        bound = matched(self.store.value, value, self.operands, {}, may_be)
        if bound is None or store.buffer.dtype is not self.store.buffer.dtype:
            return None
        return tuple(_as_load(bound[each]) for each in self.operands)


@dataclass(frozen=True, slots=True)
class TileCall:
    """A nest that an intrinsic does.

    Attributes:
        loops: those of the nest, in the order of the intrinsic's.
        accesses: what stands for each operand; the last one is where the result goes.
    """

    intrinsic: TileIntrinsic
    loops: tuple[Var, ...]
    accesses: tuple[Load, ...]


def tile_call(stmt: Stmt) -> TileCall | None:
    """What a loop and those inside are, if they are marked as a known intrinsic and are it."""
    mine = tile_intrinsic(INTRINSIC.of(stmt) or "") if isinstance(stmt, For) else None
    return None if mine is None else call_of(mine, stmt)


def call_of(mine: TileIntrinsic, stmt: Stmt) -> TileCall | None:
    """The intrinsic with a nest's operands, if the nest is it."""
    loops: list[Var] = []
    for _, extent in mine.loops:
        if not isinstance(stmt, For) or (stmt.extent, stmt.kind) != (extent, LoopKind.SERIAL):
            return None
        loops.append(stmt.var)
        stmt = stmt.body
    inner = stmt.body if isinstance(stmt, Block) else stmt
    found = mine.accesses(inner, loops) if isinstance(inner, Store) else None
    return None if found is None else TileCall(mine, tuple(loops), found)


_of_users: dict[str, TileIntrinsic] = {}


def know_tile_intrinsic(mine: TileIntrinsic) -> None:
    """Schedules and marks of its name are understood in this process."""
    _of_users[mine.name] = mine


def tile_intrinsic(name: str) -> TileIntrinsic | None:
    """The one of that name; None if this process knows none."""
    return _of_users.get(name)


def _steps(index: Sequence[Expr], var: Var) -> tuple[int, ...] | None:
    """How far each index goes with every step of a variable; None if that is not always as far."""
    found = []
    for at in index:
        terms, _ = linear(at)
        found.append(terms.pop(var, 0))
        if any(var in mentioned(term) for term in terms):
            return None
    return tuple(found)


def _as_load(expr: Expr) -> Load:
    assert isinstance(expr, Load)
    return expr
