"""The line of clients that wait for devices: who is served next.

Higher priorities first; among equals, users who hold fewer leases; among those, who came first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tilefarm.rpc.calls import Acquire
from tilefarm.rpc.work import Work


class Owned(Protocol):
    """Something that somebody wants, or has, for an `owner`: words of theirs."""

    @property
    def owner(self) -> str: ...


def share_of(what: Owned, user: str) -> str:
    """Whose share of the farm it is; a farm with one secret knows owners only."""
    return user or what.owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in the line; `number` grows with every arrival, `work` is what it is for."""

    wish: Acquire
    user: str
    number: int
    since: float
    work: Work | None = None

    @property
    def share(self) -> str:
        """Whose share of the farm a lease would be."""
        return share_of(self.wish, self.user)


def in_turn(places: Iterable[Place], held_by: Mapping[str, int]) -> list[Place]:
    """The line in the order of service, given how many leases everybody holds."""
    return sorted(
        places,
        key=lambda place: (-place.wish.priority, held_by.get(place.share, 0), place.number),
    )
