"""How many calls a server answers at a time, and how many of them may be one caller's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tilefarm.errors import BusyError
from tilefarm.plural import plural

_RETRY_SECONDS: Final = 1.0
MOST_OF_NEIGHBOURS: Final = 64
_USER_SHARE: Final = 2


class CallSlots:
    """Places of calls that were let in. Lives in one event loop.

    A user may have half of them. Users whose farm has one secret for all cannot be told apart, and
    may have all. Who calls without a token, on the server's own machine, shares a few with others
    who call the same method, and takes none from those who have one.

    Args:
        places: that there are.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._taken = 0
        self._of_users: Counter[str] = Counter()
        self._of_methods: Counter[str] = Counter()

    @contextmanager
    def one_for(self, user: str) -> Iterator[None]:
        """Hold a place for a user's call; `user` is empty where all have one secret.

        Raises:
            BusyError: there is none.
        """
        if self._taken >= self._places:
            raise _none("this server", self._taken)
        if user and self._of_users[user] >= self._places // _USER_SHARE:
            raise _none(user, self._of_users[user])
        self._taken += 1
        try:
            with _counted(self._of_users, user):
                yield
        finally:
            self._taken -= 1

    @contextmanager
    def one_for_neighbours(self, method: str) -> Iterator[None]:
        """Hold a place for the call of somebody without a token.

        Raises:
            BusyError: there is none.
        """
        if self._of_methods[method] >= MOST_OF_NEIGHBOURS:
            raise _none(f"{method} without a token", self._of_methods[method])
        with _counted(self._of_methods, method):
            yield


@contextmanager
def _counted(counts: Counter[str], key: str) -> Iterator[None]:
    counts[key] += 1
    try:
        yield
    finally:
        counts[key] -= 1
        if not counts[key]:
            del counts[key]


def _none(who: str, taken: int) -> BusyError:
    return BusyError(
        f"{who} has {plural(taken, 'call')} under way, and no place for another",
        "wait until some have ended",
        _RETRY_SECONDS,
    )
