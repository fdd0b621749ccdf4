"""How far a tile reaches over the edges of an image.

A copy takes `extent` rows from `start` on, where start depends on the loops around. Rows `low` to
`high` exist; those before and after are padding.

    before = max(low - start, 0)      after = max(start + extent - 1 - high, 0)

A copy of every `step`-th row counts only those, so both are divided by step, rounded up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compile_worker.errors import require
from compile_worker.ir.affine import Affine
from compile_worker.ir.expr import And, Const, Expr, FloorDiv, Le, Lt, Max, Var, index
from compile_worker.ir.stmt import For
from compile_worker.machines.vta.limits import dma_fields_fit
from compile_worker.machines.vta.passes.elements import moving, unsupported


@dataclass(frozen=True, slots=True)
class Edge:
    """One dimension of a copy that may reach over the image: var is its loop, if it has one."""

    var: Var | None
    start: Affine
    extent: int
    low: int
    high: int
    reaches_before: bool
    reaches_after: bool
    step: int = 1

    @property
    def _reach(self) -> int:
        """How far the last row is from the first one."""
        return (self.extent - 1) * self.step

    def before(self) -> Expr:
        """Rows of padding before the first row that exists."""
        missing = Affine({}, self.low) - self.start
        return _clamped(missing, self.reaches_before, self.step)

    def after(self) -> Expr:
        """Rows of padding after the last row that exists."""
        missing = self.start + Affine({}, self._reach - self.high)
        return _clamped(missing, self.reaches_after, self.step)

    def worst(self, extents: Mapping[Var, int]) -> tuple[int, int, int]:
        """Most padding before, most after, and fewest rows that are left to load."""
        cases = [self._at(start) for start in self.start.bounds(extents)]
        least = min(self.extent - before - after for before, after in cases)
        return max(c[0] for c in cases), max(c[1] for c in cases), least

    def _at(self, start: int) -> tuple[int, int]:
        missing = self.low - start, start + self._reach - self.high
        return max(-(-missing[0] // self.step), 0), max(-(-missing[1] // self.step), 0)


def edges_of(
    stage: str,
    inside: Expr | None,
    dims: Sequence[Affine],
    loops: Sequence[For],
    extents: Mapping[Var, int],
) -> list[Edge]:
    """The dimensions of a guarded copy that really reach over the image in some iteration.

    Args:
        stage: the pass on whose behalf a refusal is raised.
        inside: the condition under which the image is read, a conjunction of comparisons.
        dims: the image's indices.
        loops: the loops of the copy itself; all others of `extents` are around it.
        extents: trips of every loop.

    Raises:
        Refused: the condition is not about these indices, or never holds.
    """
    limits: dict[int, list[int | None]] = {}
    for condition in _conditions(inside):
        slack = _slack(stage, condition, extents)
        if slack.terms:
            dim, side, value = _limit(stage, slack, dims)
            limits.setdefault(dim, [None, None])[side] = value
        elif slack.constant < 0:  # never holds: all of the copy is padding
            require(stage, dma_fields_fit(0, 1, 0, (0, 0, 0, 0)))
    found = (
        _edge(stage, dims[dim], low, high, loops, extents) for dim, (low, high) in limits.items()
    )
    return [edge for edge in found if edge is not None]


def _edge(
    stage: str,
    at: Affine,
    low: int | None,
    high: int | None,
    loops: Sequence[For],
    extents: Mapping[Var, int],
) -> Edge | None:
    own = [loop for loop in loops if loop.var in at.terms]
    start = at.without(loop.var for loop in own)
    step = at.terms[own[0].var] if own else 1
    if len(own) > 1 or step < 1:
        raise unsupported(stage, "a padded axis is copied by more than one loop, or backwards")
    extent = own[0].extent if own else 1
    first, last = start.bounds(extents)
    last += (extent - 1) * step
    before = low is not None and first < low
    after = high is not None and last > high
    if not before and not after:
        return None
    low = first if low is None else low
    high = last if high is None else high
    return Edge(own[0].var if own else None, start, extent, low, high, before, after, step)


def _conditions(inside: Expr | None) -> Iterator[Expr]:
    if isinstance(inside, And):
        yield from _conditions(inside.left)
        yield from _conditions(inside.right)
    elif inside is not None:
        yield inside


def _slack(stage: str, condition: Expr, extents: Mapping[Var, int]) -> Affine:
    """What is at least 0 exactly where a comparison holds."""
    match condition:
        case Le(small, large) | Lt(small, large):
            left, right = moving(small, extents), moving(large, extents)
            if left is not None and right is not None:
                return right - left - Affine({}, int(isinstance(condition, Lt)))
    raise unsupported(stage, "a copy's condition is not a comparison of indices")


def _limit(stage: str, slack: Affine, dims: Sequence[Affine]) -> tuple[int, int, int]:
    """`slack >= 0` as (dimension, 0 for a lower and 1 for an upper limit, the limit)."""
    for dim, at in enumerate(dims):
        if not (slack - at).terms:
            return dim, 0, -(slack - at).constant
        if not (slack + at).terms:
            return dim, 1, (slack + at).constant
    raise unsupported(stage, "a copy's condition is not about the index that it guards")


def _clamped(value: Affine, reaches: bool, step: int) -> Expr:
    """Max(value, 0) / step, rounded up; 0 if the copy never reaches over this edge."""
    if not reaches:
        return index(0)
    if not value.terms:
        return index(max(-(-value.constant // step), 0))
    rounded = (value + Affine({}, step - 1)).expr()
    positive = Max(rounded, Const(0, rounded.dtype))
    return FloorDiv(positive, index(step)) if step > 1 else positive
