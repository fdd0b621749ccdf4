"""How much of a farm everybody has: users, and the jobs of each user.

Where all have one secret there is one user, and shares are those of jobs.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Final, NamedTuple

MOST_CHANGED: Final = 4096
"""Users and jobs whose last lease is remembered; others count as if they never had one."""


class Claimant(NamedTuple):
    """Whoever has leases, or wants some: one job of one user."""

    user: str
    job: str


class Shares:
    """Leases that users and jobs hold, and who last got one or gave one back.

    Attributes:
        users: leases of each user.
        jobs: leases of each job.
    """

    def __init__(self) -> None:
        self.users: Counter[str] = Counter()
        self.jobs: Counter[Claimant] = Counter()
        self._changed: OrderedDict[str | Claimant, int] = OrderedDict()
        self._number = 0

    def add(self, claimant: Claimant) -> None:
        """A job has got a lease."""
        self.users[claimant.user] += 1
        self.jobs[claimant] += 1
        self._note(claimant)

    def remove(self, claimant: Claimant) -> None:
        """A lease of a job has ended."""
        self.users[claimant.user] -= 1
        self.jobs[claimant] -= 1
        if not self.users[claimant.user]:
            del self.users[claimant.user]
        if not self.jobs[claimant]:
            del self.jobs[claimant]
        self._note(claimant)

    def last_of_user(self, user: str) -> int:
        """When a user last had a change, as a number that grows; 0 if never, or long ago."""
        return self._changed.get(user, 0)

    def last_of_job(self, job: Claimant) -> int:
        """When a job last had one; as `last_of_user`."""
        return self._changed.get(job, 0)

    def copy(self) -> Shares:
        """As they are now, to try something out."""
        other = Shares()
        other.users, other.jobs = self.users.copy(), self.jobs.copy()
        other._changed, other._number = self._changed.copy(), self._number
        return other

    def _note(self, claimant: Claimant) -> None:
        self._number += 1
        for changed in (claimant.user, claimant):
            self._changed[changed] = self._number
            self._changed.move_to_end(changed)
        while len(self._changed) > MOST_CHANGED:
            self._changed.popitem(last=False)
