"""What the end of a tile takes whose last operations and store take turns, part by part.

    ALU    |part 0|part 1|part 2|              the tile after next may start when the last store of
    store         |part 0   |part 1   |part 2   |  this one is done, the next one when the ALU is

Both the pass that cuts tiles (`passes/stagger_stores.py`) and the space that foresees it ask here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Final

from compile_worker.machines.vta.costs import Costs

KERNEL_UOPS: Final = 10
"""About so many micro-ops has a kernel that is loaded once more, for another slot key."""

MOST_PARTS: Final = 64
FINER: Final = (1, 2, 4)
"""Into how many parts the last one may be cut once more: only its store is waited for."""

HANDED: Final = 10
"""Cycles from the end of a store until the next tile is reset in its slot."""


@dataclass(frozen=True, slots=True)
class LastStage:
    """One ALU operation: instructions, micro-op kernels recorded for them, cycles an element."""

    instructions: int
    keys: int
    element_cycles: int


@dataclass(frozen=True, slots=True)
class EqualParts:
    """Equal parts of a tile, the last of which is cut once more into `finer` ones."""

    count: int
    finer: int = 1

    @property
    def all(self) -> int:
        """How many there are, the finer ones included."""
        return self.count - 1 + self.finer

    def sizes(self, elements: int) -> tuple[tuple[int, int], ...]:
        """(how many parts, accumulators of each), in order."""
        each = elements // self.count
        return (self.count - 1, each), (self.finer, each // self.finer)


def equal_parts(elements: int) -> Iterator[EqualParts]:
    """All ways to cut so many accumulators, the whole first."""
    yield EqualParts(1)
    for count in range(2, MOST_PARTS + 1):
        if elements % count == 0:
            each = elements // count
            yield from (EqualParts(count, finer) for finer in FINER if each % finer == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TileEnd:
    """The end of each tile of one allocation.

    Attributes:
        elements: accumulators of a tile; rows: of its store.
        element_cycles: of the store, for each element.
        turns: tiles; copies: slots that they take turns in.
    """

    costs: Costs
    operations: tuple[LastStage, ...]
    elements: int
    rows: int
    element_cycles: int
    turns: int
    copies: int

    def busy(self, parts: EqualParts) -> tuple[float, float]:
        """When the ALU, and when the last store is done with a tile that is cut so."""
        alu = store = 0.0
        for count, size in parts.sizes(self.elements):
            if count:
                each, last = self._alu(size), self._store(size)
                begun = max(store + count * last, alu + each + count * last)
                store = max(begun, alu + count * each + last)
                alu += count * each
        return alu, store

    def cycles(self, parts: EqualParts) -> float:
        """What the ends of all tiles take: ALU, stores that somebody waits for, micro-op loads."""
        alu, store = self.busy(parts)
        return self.turns * store if self.copies == 1 else self.turns * alu + (store - alu)

    def _store(self, size: int) -> float:
        costs = self.costs.store
        return (
            costs.start
            + self.element_cycles * size
            + costs.row * ceil(self.rows * size / self.elements)
        )

    def _alu(self, size: int) -> float:
        """One part's ALU instructions, one for each block of channels where they differ.

        Each loads its micro-ops for every slot key once, which is shared among all tiles.
        """
        total, costs = 0.0, self.costs
        uop_load = costs.uop_load + KERNEL_UOPS * costs.uop_quarters / 4
        for operation in self.operations:
            instructions = max(1, size * operation.instructions // self.elements)
            each = costs.start + uop_load * (operation.keys / operation.instructions) / self.turns
            total += each * instructions + size * operation.element_cycles
        return total


@dataclass(frozen=True, slots=True)
class CutEnd:
    """What is foreseen of a tile's end: cycles that parts add to its ALU operations and, with one
    slot, stores that the next tile waits for; its last store; micro-op kernels of a slot.
    """

    cycles: int
    last_store: int
    kernels: int

    @property
    def columns(self) -> tuple[int, int, int]:
        """As a row of a table has them."""
        return self.cycles, self.last_store, self.kernels


@lru_cache(maxsize=8192)
def foreseen(end: TileEnd, row_cycles: int) -> CutEnd:
    """What becomes of a tile's end, when it is cut as pays most.

    Args:
        row_cycles: that the store module takes for each row; where a cut is chosen rows count as
            `costs` says.
    """
    choices = list(equal_parts(end.elements))
    parts = min(choices, key=end.cycles)
    taken = replace(end, costs=replace(end.costs, store=replace(end.costs.store, row=row_cycles)))
    alu, store = taken.busy(parts)
    more, left = alu - taken.busy(choices[0])[0], store - alu
    kernels = max(parts.all, *(each.instructions for each in end.operations))
    if end.copies == 1:
        return CutEnd(max(0, round(more + left)) + HANDED, 0, kernels)
    return CutEnd(max(0, round(more)), round(left), kernels)
