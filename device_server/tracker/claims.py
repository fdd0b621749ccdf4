"""Which leases somebody else has the fairer claim to: the farm moves towards equal shares.

Who waits with a higher priority may have any device that they can use. Among equals, users who hold
two devices more than those who wait give one up; who holds one more does so when they have had it
for a turn, so that what cannot be divided goes round. Among the jobs of one user it is likewise.
Clients hear of it when they renew their leases, and only those that lend are asked.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from tilefarm.clock import Clock
from tilefarm.rpc.calls import Acquire

from device_server.tracker.entries import Held
from device_server.tracker.leases import LeaseTable
from device_server.tracker.line import Place, turn_of
from device_server.tracker.shares import Claimant, Shares
from device_server.tracker.waiting import WaitingLine

_FRESH_SECONDS: Final = 1.0

Serves: TypeAlias = Callable[[Held, Acquire], bool]
"""Whether the device of a lease would do for a wish."""


class Claims:
    """What is wanted of a table's leases, looked at anew every second, and when a device moved."""

    def __init__(self, table: LeaseTable, line: WaitingLine, clock: Clock) -> None:
        self._table = table
        self._line = line
        self._clock = clock
        self._wanted: Mapping[str, Claim] = {}
        self._stale_at = 0.0
        self._served = 0

    def seconds_left(self, lease_id: str) -> float | None:
        """When a lease is to be given up; None if its holder may keep it."""
        now = self._clock.seconds()
        if now >= self._stale_at or self._served != self._line.served:
            self._wanted = self._found()
            self._stale_at, self._served = now + _FRESH_SECONDS, self._line.served
        claim = self._wanted.get(lease_id)
        return None if claim is None else max(0.0, claim.at - now)

    def heir(self, lease_id: str) -> Place | None:
        """Who wants the device of a lease, as of the last look."""
        claim = self._wanted.get(lease_id)
        return None if claim is None else claim.place

    def _found(self) -> Mapping[str, Claim]:
        places = [p for p in self._line.places() if not self._table.has_enough(p.share)]
        if not places:
            return {}
        limits = self._table.limits
        return wanted(
            places,
            self._table.held(),
            self._table.shares(),
            serves=self._table.would_serve,
            patience=Patience(
                settle_seconds=limits.settle_seconds, turn_seconds=limits.turn_seconds
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a device stays with who got it: in any case, and if it is the odd one."""

    settle_seconds: float
    turn_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Somebody has the fairer claim to a lease's device, from a time on."""

    at: float
    place: Place


def wanted(
    places: Iterable[Place],
    leases: Iterable[Held],
    shares: Shares,
    *,
    serves: Serves,
    patience: Patience,
) -> dict[str, Claim]:
    """The claims to leases, by their ids: one at most for each place in the line.

    Args:
        places: who waits.
        leases: all that live.
        shares: what everybody holds.
        serves: whether a lease's device would do for a wish.
        patience: how long devices stay.
    """
    trial = _Trial(shares.copy(), list(leases), serves, patience)
    waiting: dict[tuple[object, ...], deque[Place]] = {}
    for place in places:
        wish = place.wish
        alike = wish.priority, place.claimant, wish.target, wish.labels
        waiting.setdefault(alike, deque()).append(place)
    order = [(turn_of(group[0], trial.shares), group) for group in waiting.values()]
    heapq.heapify(order)
    while order:
        turn, group = heapq.heappop(order)
        as_of_now = turn_of(group[0], trial.shares)
        if turn == as_of_now and not trial.claim(group.popleft()):
            continue  # Those behind it want the same, and have no better claim.
        if group:
            heapq.heappush(order, (turn_of(group[0], trial.shares), group))
    return trial.found


@dataclass(slots=True)
class _Holder:
    """The leases of one job at one priority that would do for a wish, longest held first."""

    claimant: Claimant
    priority: int
    leases: deque[Held] = field(default_factory=deque)


class _Offer(NamedTuple):
    """A lease that may be had `at` a time; lower ones are taken first.

    It is `odd` if equal shares are impossible, and its holder has had the one more for a turn.
    """

    odd: bool
    priority: int
    minus_users: int
    minus_jobs: int
    since: float
    at: float


class _Trial:
    """Devices move on paper: `shares` are as they will be, `found` is what moves."""

    def __init__(
        self, shares: Shares, leases: Sequence[Held], serves: Serves, patience: Patience
    ) -> None:
        self.shares = shares
        self.found: dict[str, Claim] = {}
        self._lent = sorted((held for held in leases if held.lends), key=lambda held: held.since)
        self._serves = serves
        self._patience = patience
        self._holders: dict[object, list[_Holder]] = {}
        self._givers: set[Claimant] = set()
        self._moved: set[str | Claimant] = set()
        self._newest: dict[str | Claimant, float] = {}
        for held in leases:
            claimant = held.holding.claimant
            for gained in (claimant.user, claimant):
                self._newest[gained] = max(held.since, self._newest.get(gained, held.since))

    def claim(self, place: Place) -> bool:
        """Let one lease move to who has that place; False if nobody has to give one up."""
        if place.claimant in self._givers:
            return False
        offers = [
            (offer, holder)
            for holder in self._holders_for(place.wish)
            if (offer := self._offer(holder, place)) is not None
        ]
        if not offers:
            return False
        offer, holder = min(offers, key=lambda both: both[0])
        lease_id = holder.leases.popleft().holding.lease.lease_id
        self.found[lease_id] = Claim(at=offer.at, place=place)
        self._move(holder.claimant, place.claimant)
        return True

    def _offer(self, holder: _Holder, place: Place) -> _Offer | None:
        """A holder's oldest lease that stays so far; None if it may not be had."""
        while holder.leases and holder.leases[0].holding.lease.lease_id in self.found:
            holder.leases.popleft()
        mine, theirs = place.claimant, holder.claimant
        if not holder.leases or mine == theirs or holder.priority > place.wish.priority:
            return None
        since = holder.leases[0].since
        settled = since + self._patience.settle_seconds
        users, jobs = self.shares.users, self.shares.jobs
        offer = _Offer(False, holder.priority, -users[theirs.user], -jobs[theirs], since, settled)
        one: str | Claimant = theirs.user
        other: str | Claimant = mine.user
        more = users[theirs.user] - users[mine.user]
        if one == other:
            one, other, more = theirs, mine, jobs[theirs] - jobs[mine]
        if holder.priority < place.wish.priority or more > 1:
            return offer
        if more < 1 or one in self._moved or other in self._moved:
            return None
        turned = self._newest[one] + self._patience.turn_seconds
        return offer._replace(odd=True, at=max(settled, turned))

    def _move(self, giver: Claimant, taker: Claimant) -> None:
        self.shares.remove(giver)
        self.shares.add(taker)
        self._givers.add(giver)
        self._moved |= {giver, taker, giver.user, taker.user}

    def _holders_for(self, wish: Acquire) -> list[_Holder]:
        sought = wish.target, wish.labels
        if sought not in self._holders:
            found: dict[tuple[Claimant, int], _Holder] = {}
            for held in self._lent:
                if self._serves(held, wish):
                    whose = held.holding.claimant, held.holding.priority
                    found.setdefault(whose, _Holder(*whose)).leases.append(held)
            self._holders[sought] = list(found.values())
        return self._holders[sought]
