"""The one interface of every search: ask for candidates, tell how they ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from tilefarm.measurement import Trial
from tilefarm.space import Point


class Proposer(Protocol):
    """ask -> (measured elsewhere, in any order, some never) -> tell -> ask …

    ask(n) returns at most n valid points that were neither asked nor told before; [] means that the
    space has no others. tell() may bring points that were never asked (records of an earlier run)
    and failures: these are information, not noise, and never a time. Same seed and same calls, same
    answers.
    """

    def ask(self, n: int) -> list[Point]:
        """The next candidates."""
        ...

    def tell(self, trials: Sequence[Trial]) -> None:
        """How candidates ended."""
        ...


@runtime_checkable
class Hopeful(Protocol):
    """A proposer that knows what may still be found."""

    def hope(self) -> float | None:
        """The least that an unseen candidate may cost; None while nobody can tell."""
        ...
