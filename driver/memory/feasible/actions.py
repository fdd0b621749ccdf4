"""What a list schedule is made of: actions on engines, and homes of buffers in their memories."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class ActionKind(Enum):
    """Why something runs."""

    ORIGINAL = "original"
    PREFETCHED = "prefetched"
    SAVE = "save"
    READ = "read"


@dataclass(slots=True, eq=False, kw_only=True)
class Action:
    """A step, or a transfer of a buffer (`step` is -1), on an engine's instance (-1: on all)."""

    kind: ActionKind
    engine: int
    ticks: int
    step: int = -1
    buffer: int = -1
    instance: int = 0
    begin: int = 0
    end: int = 0
    homes: list[Home] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class Home:
    """One stay of a buffer in its memory, and the actions that touch it meanwhile.

    The first action brings the buffer, unless that was present at the begin.
    """

    buffer: int
    offset: int = -1
    is_present: bool = False
    actions: list[Action] = field(default_factory=list)

    @property
    def begin(self) -> int:
        return 0 if self.is_present else min(each.begin for each in self.actions)

    @property
    def end(self) -> int:
        return max((each.end for each in self.actions), default=0)


@dataclass(slots=True, kw_only=True)
class Schedule:
    """Actions in the order in which they were placed, and homes in that of their allocation."""

    actions: list[Action] = field(default_factory=list)
    homes: list[Home] = field(default_factory=list)

    @property
    def makespan_ticks(self) -> int:
        return max((each.end for each in self.actions), default=0)

    @property
    def moved(self) -> tuple[Action, ...]:
        """The transfers that spilling needs."""
        return tuple(each for each in self.actions if each.step < 0)
