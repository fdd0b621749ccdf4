"""The leases that live: by id, by the request that asked for each, and how they are shared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, ValuesView

from device_server.tracker.deadlines import Deadlines
from device_server.tracker.entries import Held
from device_server.tracker.shares import Shares
from device_server.tracker.table_state import Holding
from device_server.tracker.wait_queue import share_of


class LeaseIndex:
    """Leases from their beginning to their end, whoever decides on it."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        self._by_request: dict[tuple[str, str], Held] = {}
        self._counts: Counter[str] = Counter()
        self._deadlines: Deadlines[Held] = Deadlines()
        self._changed: set[str] = set()
        self._renewed: set[str] = set()
        self.shares = Shares()
        """What every user and every job holds of the farm."""

    def __iter__(self) -> Iterator[Holding]:
        return (held.holding for held in self._held.values())

    @property
    def counts(self) -> Mapping[str, int]:
        """How many leases everybody holds, as limits count them."""
        return self._counts

    @property
    def held(self) -> ValuesView[Held]:
        """All that live."""
        return self._held.values()

    def get(self, lease_id: str) -> Held | None:
        """A lease, if it lives."""
        return self._held.get(lease_id)

    def asked_for(self, request_id: str, user: str) -> Held | None:
        """The lease that a user's request was given, if it lives; an empty request names none."""
        return self._by_request.get((user, request_id))

    def add(self, holding: Holding, now: float, left_seconds: float | None = None) -> None:
        """A lease begins, or goes on with the time that is left of it."""
        ttl_seconds = holding.lease.ttl_seconds
        left_seconds = ttl_seconds if left_seconds is None else min(left_seconds, ttl_seconds)
        held = Held(holding, since=now, until=now + left_seconds)
        self._held[holding.lease.lease_id] = held
        self._counts[share_of(holding, holding.user)] += 1
        self.shares.add(holding.claimant)
        if holding.request_id:
            self._by_request[holding.user, holding.request_id] = held
        self._deadlines.add(held)
        self._changed.add(holding.lease.lease_id)
        self._renewed.add(holding.lease.lease_id)

    def renew(self, held: Held, now: float) -> None:
        """A lease has its whole time to live from now on."""
        held.until = now + held.holding.lease.ttl_seconds
        self._renewed.add(held.holding.lease.lease_id)

    def end(self, held: Held) -> None:
        """A lease that lives is over."""
        holding, held.gone = held.holding, True
        share = share_of(holding, holding.user)
        del self._held[holding.lease.lease_id]
        self._counts[share] -= 1
        if not self._counts[share]:
            del self._counts[share]
        self.shares.remove(holding.claimant)
        self._by_request.pop((holding.user, holding.request_id), None)
        self._changed.add(holding.lease.lease_id)

    def over(self, now: float) -> list[Held]:
        """Leases that nobody has renewed in time; each is told once, and is then to be ended."""
        return self._deadlines.over(now)

    def until(self) -> tuple[tuple[str, float], ...]:
        """When those run out that were given or renewed since this was last asked, by id."""
        renewed = [self._held[each] for each in sorted(self._renewed) if each in self._held]
        self._renewed.clear()
        return tuple((held.holding.lease.lease_id, held.until) for held in renewed)

    def changes(self) -> tuple[tuple[str, Holding | None], ...]:
        """What has begun and ended since this was last asked, by id."""
        changed = [(lease_id, self._held.get(lease_id)) for lease_id in sorted(self._changed)]
        self._changed.clear()
        return tuple((lease_id, held.holding if held else None) for lease_id, held in changed)
