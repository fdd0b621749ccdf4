"""How much of a buffer a tile needs, as a sum over the tile's extents: what bounds the stack.

    top[n, c] is read at (n, c)              as long as the tile's n and c
    x[n, c, i + t] for t in 0:3              as long as the tile's n, c, and its i + 2

Where that is no such sum, or may leave the buffer behind a guard, it is the whole axis; so it is
never less than what `compute_at` makes and `compact_buffers` keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from compile_worker.ir.affine import Affine, as_affine
from compile_worker.ir.expr import Buffer, Expr, Var
from compile_worker.machines.cpu.space.script_stages import ScriptStages, Stage


@dataclass(frozen=True, slots=True)
class Length:
    """constant + Σ factor * extent of a tile along an axis, by the axis' number."""

    constant: int
    terms: Mapping[int, int] = field(default_factory=dict)


Region: TypeAlias = tuple[Length, ...]
"""The length of each axis of a buffer that a tile needs."""

_Key: TypeAlias = int | Var
"""What a loop runs over: an axis of the tile by its number, or itself."""


class Regions:
    """The regions of a script's buffers, where its stages are computed for a tile."""

    def __init__(self, stages: ScriptStages) -> None:
        self._stages = stages
        self._lengths: dict[Var, Length] = {}
        self._keys: dict[Var, _Key] = {}
        self._known: dict[Buffer, Region] = {}
        for stage in reversed(stages.stages):
            self._enter(stage)

    def axis_of(self, var: Var) -> int | None:
        """The number of the tile's axis that a stage's loop runs over, if it is one."""
        key = self._keys.get(var)
        return key if isinstance(key, int) else None

    def of(self, buffer: Buffer) -> Region:
        """What one tile needs of a buffer: what is read of it, or the tile itself of the result."""
        if buffer is self._stages.out:
            return tuple(self._lengths[var] for var in self._stages.last.index if type(var) is Var)
        if buffer not in self._known:
            readers = self._stages.readers(buffer)
            extents = {loop.var: loop.extent for each in readers for loop in each.all_loops}
            columns = zip(
                *(load.index for each in readers for load in each.loads(buffer)), strict=True
            )
            self._known[buffer] = tuple(
                self._span(column, size, extents)
                for column, size in zip(columns, buffer.shape, strict=True)
            )
        return self._known[buffer]

    def _enter(self, stage: Stage) -> None:
        """How long the loops of a stage are in a tile; those of its readers are known."""
        for loop in stage.all_loops:
            self._set(loop.var, loop.var, Length(loop.extent))
        if stage is self._stages.last:
            for at, axis in enumerate(self._stages.axes):
                self._set(axis.var, at, Length(0, {at: 1}))
        elif stage.made is not None and self._stages.readers(stage.made):
            for var, length in zip(stage.index, self.of(stage.made), strict=True):
                assert isinstance(var, Var)
                is_axis = length.constant == 0 and [*length.terms.values()] == [1]
                self._set(var, next(iter(length.terms)) if is_axis else var, length)

    def _set(self, var: Var, key: _Key, length: Length) -> None:
        self._keys[var], self._lengths[var] = key, length

    def _span(self, column: Sequence[Expr], size: int, extents: Mapping[Var, int]) -> Length:
        forms: list[Affine] = []
        for index in column:
            form = as_affine(index)
            if form is None:
                return Length(size)
            low, high = form.bounds(extents)
            if low < 0 or high >= size:
                return Length(size)
            forms.append(form)
        kinds = [{self._keys[var]: factor for var, factor in each.terms.items()} for each in forms]
        if any(each != kinds[0] for each in kinds):
            return Length(size)
        constants = [each.constant for each in forms]
        constant, terms = 1 + max(constants) - min(constants), dict[int, int]()
        for var, factor in forms[0].terms.items():
            length = self._lengths[var]
            constant += abs(factor) * (length.constant - 1)
            for axis, times in length.terms.items():
                terms[axis] = terms.get(axis, 0) + abs(factor) * times
        return Length(constant, terms)
