"""The queue of clients that wait for devices: who is served next.

Higher priorities first; among equals, users who hold fewer leases; among those, users who last got
one, or gave one back, longer ago; among the jobs of one user likewise; at last, who came first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tilefarm.rpc.tracker_calls import Acquire
from tilefarm.watch.trace_context import TraceContext

from device_server.tracker.shares import Claimant, Shares

Turn: TypeAlias = tuple[int, int, int, int, int, int]
"""Lower ones are served first."""


class Owned(Protocol):
    """Something that somebody wants, or has, for an `owner`: words of theirs."""

    @property
    def owner(self) -> str: ...


def share_of(what: Owned, user: str) -> str:
    """Whose leases are counted together against a limit; a farm with one secret knows owners."""
    return user or what.owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A place in the queue; `number` grows with every arrival, `work` is what it is for."""

    wish: Acquire
    user: str
    number: int
    since: float
    work: TraceContext | None = None

    @property
    def share(self) -> str:
        """Against whose limit a lease would count."""
        return share_of(self.wish, self.user)

    @property
    def claimant(self) -> Claimant:
        """Whose share of the farm a lease would be."""
        return Claimant(self.user, self.wish.job or self.wish.owner)


def turn_of(place: Ticket, shares: Shares) -> Turn:
    """When a place is served, as things stand."""
    claimant, user = place.claimant, place.user
    return (
        -place.wish.priority,
        shares.users[user],
        shares.last_of_user(user),
        shares.jobs[claimant],
        shares.last_of_job(claimant),
        place.number,
    )


def in_turn(places: Iterable[Ticket], shares: Shares) -> list[Ticket]:
    """The queue in the order of service."""
    return sorted(places, key=lambda place: turn_of(place, shares))
