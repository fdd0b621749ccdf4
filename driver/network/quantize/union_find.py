"""Things in groups that only ever grow together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Disjoint(Generic[T]):
    """Groups of things; each is alone at first. One of a group stands for it."""

    def __init__(self, things: Iterable[T]) -> None:
        self._parent = {thing: thing for thing in things}

    def join(self, one: T, other: T) -> None:
        """Makes their groups one, that of the other."""
        self._parent[self.group(one)] = self.group(other)

    def group(self, thing: T) -> T:
        """What stands for the thing's group."""
        while self._parent[thing] != thing:
            self._parent[thing] = thing = self._parent[self._parent[thing]]
        return thing
