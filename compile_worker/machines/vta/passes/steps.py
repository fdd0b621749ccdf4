"""Steps of a kernel: what is loaded since the last GEMM, and which tokens order them.

for k in 0:8: load inp; gemm        2 slots: step k waits for step k - 2 if 2 <= k, and
releases its slot if k < 6
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from compile_worker.ir.affine import Affine
from compile_worker.ir.expr import And, Eq, Expr, Le, Lt, Ne, Or, index
from compile_worker.ir.nests import Loops
from compile_worker.ir.stmt import If, Module, Pop, Push, Stmt, sequence
from compile_worker.passes.turns import trips, turn


@dataclass(frozen=True, slots=True)
class LoadSteps:
    """The loops around a step, the depths at which loads sit, and how many steps may be ahead.

    With `hold`, a number of loops, the last release inside them comes at the end of their body.
    """

    loops: Loops
    depths: tuple[int, ...]
    slots: int
    hold: int | None = None

    @property
    def count(self) -> int:
        return trips(self.loops)

    def wait(self, depth: int) -> list[Stmt]:
        """Before the loads at `depth`: unless further out a load began this step, take a token."""
        before = max((d for d in self.depths if d < depth), default=None)
        done = turn(self.loops, of=depth)
        if self.count <= self.slots or not done.terms:
            return []
        free = self.slots if self.hold is None else 1
        late: Expr = Le(index(free), done.expr())
        if before is not None:
            moved = [loop.var for loop in self.loops[before:depth] if loop.extent > 1]
            if not moved:
                return []
            again: list[Expr] = [Ne(var, index(0)) for var in moved]
            late = And(late, reduce(Or, again))
        return [If(late, Pop(Module.COMPUTE, Module.LOAD))]

    def release(self) -> list[Stmt]:
        """After the GEMM of a step: a token for the step that will overwrite its operands."""
        token = Push(Module.COMPUTE, Module.LOAD)
        if self.hold is None:
            return before_the_last(self.loops, self.slots, token)
        inner = self.loops[self.hold :]
        if self.count <= self.slots or trips(inner) == 1:
            return []
        goes_on = Lt(turn(inner).expr(), index(trips(inner) - 1))
        needed = Lt(turn(self.loops).expr(), index(self.count - self.slots))
        return [If(And(goes_on, needed), token)]

    def release_late(self) -> list[Stmt]:
        """After the end of what holds: the token of its last step."""
        assert self.hold is not None
        outer, inner = self.loops[: self.hold], trips(self.loops[self.hold :])
        left = self.count - self.slots - (inner - 1)
        if left <= 0:
            return []
        begun = Affine({v: c * inner for v, c in turn(outer).terms.items()})
        return [If(Lt(begun.expr(), index(left)), Push(Module.COMPUTE, Module.LOAD))]

    def begin(self) -> list[Stmt]:
        """After the first reset: tokens for the steps that do not wait for an earlier one."""
        assert self.hold is not None
        if self.count <= self.slots or self.slots == 1:
            return []
        tokens = [Push(Module.COMPUTE, Module.LOAD)] * (self.slots - 1)
        first = turn(self.loops[: self.hold])
        whole = sequence(tokens)
        return [If(Eq(first.expr(), index(0)), whole) if first.terms else whole]


def before_the_last(loops: Loops, slots: int, token: Push) -> list[Stmt]:
    """The token, except in the last iterations, after which nobody waits for it."""
    count = trips(loops)
    if count <= slots:
        return []
    return [If(Lt(turn(loops).expr(), index(count - slots)), token)]
