"""What the generation rules are asked about a script, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilefarm.machine import Host
from tilefarm.space import Point
from tilefarm.trace import Step

from compile_worker.draft import Draft
from compile_worker.generated import RuleOutcome
from compile_worker.ir.tile_intrinsics import TileIntrinsic
from compile_worker.isa import Isa
from compile_worker.machines.cpu.space.script_dots import quads_of
from compile_worker.machines.cpu.space.script_regions import Regions
from compile_worker.machines.cpu.space.script_stages import ScriptStages

BEFORE, TILE, BLOCK = range(3)
"""Where a stage is computed: before all tiles, for each, or for each block of one."""

LEVELS: Final = ("before the tiles", "once a tile", "once a block")


@dataclass(frozen=True, slots=True)
class ScriptContext:
    """A script on a processor.

    Attributes:
        stages: of the script as the steps in `simplified` left it, those in `inlined` being part
            of what reads them.
        regions: how much of each buffer a tile needs.
        isa: the vector unit.
        threads: of the processor.
        host: the processor.
        intrinsics: of users, that may do the main stage's sums.
    """

    stages: ScriptStages
    regions: Regions
    simplified: tuple[Step, ...]
    inlined: tuple[str, ...]
    isa: Isa
    threads: int
    host: Host
    intrinsics: tuple[TileIntrinsic, ...] = ()

    @property
    def has_dots(self) -> bool:
        """Whether dot products of the processor can do the main stage's sums."""
        main = self.stages.main
        return bool(self.isa.dot) and main is not None and quads_of(main) is not None

    def size(self, level: int, axis: int) -> str:
        """The variable of how long a tile or a block is along an axis, by its number."""
        return f"{('', 'tile', 'block')[level]}_{self.stages.axes[axis].label}"


Steps: TypeAlias = Callable[[ScriptContext, Point], Iterator[Step]]


def declare_nothing(draft: Draft, context: ScriptContext) -> None:
    """What a rule declares that has nothing to choose."""
    del draft, context


def no_steps(context: ScriptContext, point: Point) -> Iterator[Step]:
    """What a rule does that is about the order of loops only, see `script_trace`."""
    del context, point
    yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRule:
    """A generation rule.

    Attributes:
        when, effect: for people: when it fires, and what it does then.
        unmet: why it does not fire; empty where it does.
        declare: adds its variables and constraints.
        steps: of a rule of a user's: what it adds to the schedule, once the others are done.
        intrinsic: that it is about, see `script_intrinsics`.
        simplifies: the primitive that it tries on every stage, before all else.
    """

    name: str
    when: str
    effect: str
    unmet: Callable[[ScriptContext], str]
    declare: Callable[[Draft, ScriptContext], None] = declare_nothing
    steps: Steps = no_steps
    intrinsic: TileIntrinsic | None = None
    simplifies: str = ""


def outcomes(rules: Sequence[ScriptRule], context: ScriptContext) -> tuple[RuleOutcome, ...]:
    """What every rule makes of a script."""
    found = []
    for rule in rules:
        unmet = rule.unmet(context)
        found.append(RuleOutcome(rule.name, not unmet, unmet or f"{rule.when}: {rule.effect}"))
    return tuple(found)
