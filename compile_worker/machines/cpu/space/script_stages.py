"""What a script's nest has to schedule: its stages, what they read, and the loops to be tiled.

    for n, c: for i: block top                stage top, reduced over i      a producer
    for n, c: for i: block whole              stage whole, reduced over i    another, the main one
    for n, c, i: block out                    stage out                      the tiled stage

The last stage is tiled, and the others are computed where a tile of it needs them. Where the last
one reduces, its sums grow in a cache, and the copy out of that is what is tiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

from compile_worker.ir.expr import Buffer, Expr, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.nests import perfect_nest
from compile_worker.ir.reductions import statements
from compile_worker.ir.stmt import Alloc, Block, For, LoopKind, Stmt, Store
from compile_worker.ir.visit import find

CACHE: Final = "local"
"""The memory of caches: the stack, and so a first-level cache at best."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Loops around one block, none of them with a kind or a guard yet."""

    loops: tuple[For, ...]
    block: Block

    @property
    def name(self) -> str:
        return self.block.name

    @property
    def all_loops(self) -> tuple[For, ...]:
        """Its loops, and those within the block."""
        return (*self.loops, *find(self.block, For))

    @property
    def spatial(self) -> tuple[For, ...]:
        """Loops whose iterations need not one another."""
        return tuple(loop for loop in self.loops if loop.var not in self.block.reductions)

    @property
    def reduced(self) -> tuple[For, ...]:
        return tuple(loop for loop in self.loops if loop.var in self.block.reductions)

    @property
    def reduces(self) -> bool:
        return self.block.init is not None or bool(self.block.reductions)

    @property
    def work(self) -> int:
        return prod(loop.extent for loop in self.loops)

    @property
    def made(self) -> Buffer | None:
        """The buffer of its one store, whose elements are its spatial loops' values.

        None where it is more than that: such a stage stays where it is.
        """
        store, init = self.block.body, self.block.init
        own = [loop.var for loop in self.spatial]
        if not isinstance(store, Store) or not (init is None or isinstance(init, Store)):
            return None
        return store.buffer if sorted(map(id, store.index)) == sorted(map(id, own)) else None

    @property
    def index(self) -> tuple[Expr, ...]:
        """Where its one store stores."""
        assert isinstance(self.block.body, Store)
        return self.block.body.index

    def loads(self, buffer: Buffer) -> tuple[Load, ...]:
        """What it reads of a buffer, apart from what it goes on with."""
        own = self.block.body.buffer if isinstance(self.block.body, Store) else None
        found = dict.fromkeys(find(self.block, Load))
        return tuple(load for load in found if load.buffer is buffer and buffer is not own)


@dataclass(frozen=True, slots=True)
class TileAxis:
    """A loop that is tiled: its name, the last stage's own variable, and a short name for it."""

    loop: str
    var: Var
    extent: int
    label: str


@dataclass(frozen=True)
class ScriptStages:
    """The stages of a script in order; the last one makes the result.

    Attributes:
        func: the whole nest.
    """

    func: Func
    stages: tuple[Stage, ...]

    @property
    def last(self) -> Stage:
        return self.stages[-1]

    @cached_property
    def has_cache(self) -> bool:
        """Whether the last stage reduces, so that its sums get a cache."""
        return self.last.reduces

    @cached_property
    def axes(self) -> tuple[TileAxis, ...]:
        """The loops of what is tiled, those of one iteration left out."""
        prefix = f"{self.last.name}_"
        own = [(loop.var, loop.extent) for loop in self.last.spatial]
        loops = [var.name for var, _ in own]
        if self.has_cache:
            own.sort(key=lambda each: self.last.index.index(each[0]))
            loops = [f"{self.out.name}_{CACHE}_back_i{at}" for at in range(len(own))]
        return tuple(
            TileAxis(loop, var, extent, var.name.removeprefix(prefix))
            for loop, (var, extent) in zip(loops, own, strict=True)
            if extent > 1
        )

    @property
    def out(self) -> Buffer:
        store = next(find(self.last.block, Store))
        return store.buffer

    @cached_property
    def main(self) -> Stage | None:
        """The stage whose sums stay in registers: the last if it reduces.

        Otherwise the one that does most, and of several the one nearest the end.
        """
        if self.has_cache:
            return self.last
        reducing = [each for each in self.stages if each.reduces and each.made is not None]
        return max(reversed(reducing), key=lambda each: each.work, default=None)

    @property
    def reads_itself(self) -> bool:
        """Whether the last stage reads what it stores."""
        return any(load.buffer is self.out for load in find(self.last.block, Load))

    @property
    def producers(self) -> tuple[Stage, ...]:
        """The stages before the last one."""
        return self.stages[:-1]

    def readers(self, buffer: Buffer) -> tuple[Stage, ...]:
        return tuple(each for each in self.stages if each.loads(buffer))

    def writer_stages(self, buffer: Buffer) -> tuple[Stage, ...]:
        """Stages that store to a buffer."""
        return tuple(
            each
            for each in self.stages
            if any(store.buffer is buffer for store in find(each.block, Store))
        )


def stages_of(func: Func) -> ScriptStages | None:
    """The stages of a script's nest; None where its last one cannot be tiled."""
    found = ScriptStages(func, all_stages(func))
    return found if found.stages and _is_tileable(found) else None


def all_stages(func: Func) -> tuple[Stage, ...]:
    """The stages of a script's nest, in order; none where it says of one how it runs."""
    body: Stmt = func.body
    while isinstance(body, Alloc):
        body = body.body
    stages = [_stage(part) for part in statements(body)]
    return () if None in stages else tuple(each for each in stages if each is not None)


def _stage(stmt: Stmt) -> Stage | None:
    loops, block = perfect_nest(stmt)
    if any(loop.kind is not LoopKind.SERIAL for loop in loops):
        return None  # the script says how it runs
    return Stage(loops, block) if isinstance(block, Block) else None


def _is_tileable(found: ScriptStages) -> bool:
    """Whether the last stage's loops can be cut and put in order."""
    last = found.last
    if len(found.writer_stages(found.out)) > 1 or not isinstance(last.block.body, Store):
        return False
    if last.reduces and (last.made is None or last.block.init is None):
        return False
    return bool(found.axes)


def names(loops: Sequence[For]) -> tuple[str, ...]:
    """The names of loops."""
    return tuple(loop.var.name for loop in loops)
