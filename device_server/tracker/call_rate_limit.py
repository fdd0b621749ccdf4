"""How many calls a second each user may make: a bucket of tokens for everybody who calls."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from tilefarm.clock import Clock
from tilefarm.errors import BusyError

MOST_USERS: Final = 4096
"""Whose calls are counted; who was quiet longest begins anew, as after a second's quiet."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class CallRateLimit:
    """Counts users' calls, and refuses those that come too fast.

    A user who has been quiet may make a second's calls at once.

    Args:
        per_second: of one user, on the average.
    """

    def __init__(self, per_second: float, clock: Clock) -> None:
        self._per_second = per_second
        self._most = max(1.0, per_second)
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, user: str) -> None:
        """Note one call.

        Raises:
            BusyError: the user makes too many; it says when the next one is welcome.
        """
        now = self._clock.seconds()
        bucket = self._buckets.setdefault(user, _Bucket(self._most, now))
        self._buckets.move_to_end(user)
        if len(self._buckets) > MOST_USERS:
            self._buckets.popitem(last=False)
        gained = (now - bucket.at) * self._per_second
        bucket.tokens, bucket.at = min(self._most, bucket.tokens + gained), now
        if bucket.tokens < 1:
            raise BusyError(
                f"{user} makes more than {self._per_second:g} calls a second, the most that one"
                " user may make here",
                "ask less often, or ask who runs the farm for a higher"
                " `tilefarm tracker --calls-per-user`",
                (1 - bucket.tokens) / self._per_second,
            )
        bucket.tokens -= 1
