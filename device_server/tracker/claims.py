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
from tilefarm.rpc.tracker_calls import Acquire

from device_server.tracker.entries import Held
from device_server.tracker.leases import LeaseTable
from device_server.tracker.ranked import Ranked
from device_server.tracker.shares import Claimant, Shares
from device_server.tracker.wait_queue import Ticket, turn_of
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
        self._wanted: Mapping[str, Preemption] = {}
        self._stale_at = 0.0
        self._served = 0

    def seconds_left(self, lease_id: str) -> float | None:
        """When a lease is to be given up; None if its holder may keep it.

        Who takes a device out of service has the claim to it at once.
        """
        if self._table.draining(lease_id):
            return 0.0
        now = self._clock.seconds()
        if now >= self._stale_at or self._served != self._line.served:
            self._wanted = self._found()
            self._stale_at, self._served = now + _FRESH_SECONDS, self._line.served
        claim = self._wanted.get(lease_id)
        return None if claim is None else max(0.0, claim.at - now)

    def heir(self, lease_id: str) -> Ticket | None:
        """Who wants the device of a lease, as of the last look."""
        claim = self._wanted.get(lease_id)
        return None if claim is None else claim.place

    def _found(self) -> Mapping[str, Preemption]:
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
class Preemption:
    """Somebody has the fairer claim to a lease's device, from a time on."""

    at: float
    place: Ticket


def wanted(
    places: Iterable[Ticket],
    leases: Iterable[Held],
    shares: Shares,
    *,
    serves: Serves,
    patience: Patience,
) -> dict[str, Preemption]:
    """The claims to leases, by their ids: one at most for each place in the line.

    Args:
        places: who waits.
        leases: all that live.
        shares: what everybody holds.
        serves: whether a lease's device would do for a wish.
        patience: how long devices stay.
    """
    trial = _Trial(shares.copy(), list(leases), serves, patience)
    waiting: dict[tuple[object, ...], deque[Ticket]] = {}
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
    holder: _Holder


class _Trial:
    """Devices move on paper: `shares` are as they will be, `found` is what moves."""

    def __init__(
        self, shares: Shares, leases: Sequence[Held], serves: Serves, patience: Patience
    ) -> None:
        self.shares = shares
        self.found: dict[str, Preemption] = {}
        self._lent = sorted((held for held in leases if held.lends), key=lambda held: held.since)
        self._serves = serves
        self._patience = patience
        self._piles: dict[object, _Piles] = {}
        self._givers: set[Claimant] = set()
        self._moved: set[str | Claimant] = set()
        self._newest: dict[str | Claimant, float] = {}
        for held in leases:
            claimant = held.holding.claimant
            for gained in (claimant.user, claimant):
                self._newest[gained] = max(held.since, self._newest.get(gained, held.since))

    def claim(self, place: Ticket) -> bool:
        """Let one lease move to who has that place; False if nobody has to give one up."""
        taker = place.claimant
        if taker in self._givers:
            return False
        offers = [*filter(None, (self._of_others(place), self._of_siblings(place)))]
        if not offers:
            return False
        offer = min(offers, key=lambda offer: offer[:-1])
        giver = offer.holder.claimant
        lease_id = offer.holder.leases.popleft().holding.lease.lease_id
        self.found[lease_id] = Preemption(at=offer.at, place=place)
        self.shares.remove(giver)
        self.shares.add(taker)
        self._givers.add(giver)
        self._moved |= {giver, taker, giver.user, taker.user}
        return True

    def _of_others(self, place: Ticket) -> _Offer | None:
        """What the users who have the most have to give to another one."""
        piles, users = self._piles_for(place.wish), self.shares.users

        def judge(user: str) -> _Offer | bool:
            holder = piles.of_user[user].first()
            if user == place.user or holder is None:
                return True
            more = users[user] - users[place.user]
            return self._offer(place, holder, more, giver=user, taker=place.user)

        return piles.users.find(judge)

    def _of_siblings(self, place: Ticket) -> _Offer | None:
        """What the jobs of the same user that have the most have to give to another one."""
        mine, jobs = place.claimant, self.shares.jobs

        def judge(holder: _Holder) -> _Offer | bool:
            theirs = holder.claimant
            if theirs == mine:
                return True
            more = jobs[theirs] - jobs[mine]
            return self._offer(place, holder, more, giver=theirs, taker=mine)

        pile = self._piles_for(place.wish).of_user.get(mine.user)
        return None if pile is None else pile.find(judge)

    def _offer(
        self,
        place: Ticket,
        holder: _Holder,
        more: int,
        *,
        giver: str | Claimant,
        taker: str | Claimant,
    ) -> _Offer | bool:
        """A holder's oldest lease; True: others may have one to give, False: nor have others.

        The giver has so many leases `more` than the taker.
        """
        if holder.priority > place.wish.priority:
            return False
        since, theirs = holder.leases[0].since, holder.claimant
        at = since + self._patience.settle_seconds
        odd = holder.priority == place.wish.priority and more < 2
        if odd:
            if more < 1:
                return False
            if giver in self._moved or taker in self._moved:
                return True
            at = max(at, self._newest[giver] + self._patience.turn_seconds)
        users, jobs = self.shares.users[theirs.user], self.shares.jobs[theirs]
        return _Offer(odd, holder.priority, -users, -jobs, since, at, holder)

    def _piles_for(self, wish: Acquire) -> _Piles:
        sought = wish.target, wish.labels
        if sought not in self._piles:
            fitting = [held for held in self._lent if self._serves(held, wish)]
            self._piles[sought] = _Piles(fitting, self.shares, self.found)
        return self._piles[sought]


class _Piles:
    """Leases that would do for a wish, by users and their jobs, those first that give first."""

    def __init__(
        self, leases: Iterable[Held], shares: Shares, found: Mapping[str, Preemption]
    ) -> None:
        holders: dict[tuple[Claimant, int], _Holder] = {}
        for held in leases:
            whose = held.holding.claimant, held.holding.priority
            holders.setdefault(whose, _Holder(*whose)).leases.append(held)

        def rank(holder: _Holder) -> tuple[float, ...] | None:
            while holder.leases and holder.leases[0].holding.lease.lease_id in found:
                holder.leases.popleft()
            if not holder.leases:
                return None
            return holder.priority, -shares.jobs[holder.claimant], holder.leases[0].since

        def rank_of_user(user: str) -> tuple[float, ...] | None:
            first = self.of_user[user].first()
            if first is None:
                return None
            return first.priority, -shares.users[user], first.leases[0].since

        by_user: dict[str, list[_Holder]] = {}
        for holder in holders.values():
            by_user.setdefault(holder.claimant.user, []).append(holder)
        self.of_user = {user: Ranked(own, rank) for user, own in by_user.items()}
        self.users = Ranked(by_user, rank_of_user)
