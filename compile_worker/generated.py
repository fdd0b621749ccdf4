"""What a machine makes of a workload: a search space, and the schedule that each point is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tilefarm.space import Point, SearchSpace
from tilefarm.trace import Step, Trace

from compile_worker.draft import complete


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """Whether a generation rule fired on a workload, and why or why not."""

    rule: str
    fired: bool
    why: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """Cycles that no schedule of a workload goes below; 0 where nobody knows.

    Attributes:
        ideal: of the multiplications alone.
        least: of whatever is busiest when everything is moved once.
    """

    ideal: int = 0
    least: int = 0


@dataclass(frozen=True, slots=True)
class Generated:
    """The search space of one workload on one target, and which rules made it.

    Attributes:
        steps: the schedule of a point that has a value for every variable.
    """

    space: SearchSpace
    steps: Callable[[Point], Iterable[Step]] = field(compare=False, repr=False)
    rules: tuple[RuleOutcome, ...] = ()
    default: Point = field(init=False, compare=False, repr=False)
    """That of the space."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "default", dict(self.space.default))

    def completed(self, tunables: Point) -> dict[str, int]:
        """A value for every variable, valid or not; `tilefarm.space.violations` tells."""
        return complete(self.space.constraints, self.space.variables, tunables)

    def trace(self, point: Point) -> Trace:
        """The schedule of a valid point; only the tunable variables count."""
        return Trace(tuple(self.steps({**self.default, **point})))
