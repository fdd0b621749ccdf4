"""Which devices may not be leased, and why: remembered by name, whether or not they live."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from device_server.tracker.admission import LONGEST_REASON
from device_server.tracker.table_state import AdministrativeState

MOST_STANDINGS: Final = 4096
"""That are remembered: those of all devices that live, and of as many that do not."""

MOST_LOSERS: Final = 16
"""Users whose word on a lost device counts already: more than are needed for a quarantine."""

_GOOD = AdministrativeState()


def _nobody_lives(_name: str) -> bool:
    """Of devices that are nowhere registered."""
    return False


class AdministrativeStates:
    """The standing of every device; most have a good one, which takes no room.

    Nobody puts a device into quarantine alone. A user's word that it is lost counts once, until
    somebody gives it back well or the tracker itself sees it fall silent. Where all have one secret
    nobody is told apart, and every word counts.

    Args:
        losses: in a row that are forgiven; the next one puts a device into quarantine.
        lives: whether there is a device of a name. Of those that do not live, the standings that
            changed longest ago are forgotten when there are too many.
    """

    def __init__(self, losses: int, lives: Callable[[str], bool] = _nobody_lives) -> None:
        self._losses = losses
        self._lives = lives
        self._standings: dict[str, AdministrativeState] = {}
        self._changed: set[str] = set()
        self._told: dict[str, int] = {}

    def of(self, name: str) -> AdministrativeState:
        """A device's."""
        return self._standings.get(name, _GOOD)

    def keep(self, name: str, standing: AdministrativeState) -> None:
        """A device has another one from now on."""
        if standing == self.of(name):
            return
        self._changed.add(name)
        self._standings.pop(name, None)
        if standing != _GOOD:
            self._standings[name] = standing
        while len(self._standings) > MOST_STANDINGS:
            self._forget(next((n for n in self._standings if not self._lives(n)), name))

    def _forget(self, name: str) -> None:
        del self._standings[name]
        self._told.pop(name, None)
        self._changed.add(name)

    def given_back(self, name: str) -> None:
        """A client has given a device back, and it was well."""
        self.keep(name, replace(self.of(name), losses=0, lost_by=()))

    def lost(self, name: str, *, user: str, owner: str, why: str) -> None:
        """A client says that a device does not answer.

        Args:
            name: the device's.
            user: whose client; empty where all have one secret.
            owner: what it leased the device for.
            why: what it saw.
        """
        old = self.of(name)
        if user and user in old.lost_by:
            return
        seen = (old.lost_by + ((user,) if user else ()))[-MOST_LOSERS:]
        self._count(name, replace(old, lost_by=seen), user or owner or "the last", why)

    def silent(self, name: str, *, told: bool) -> None:
        """The tracker itself sees a device fall silent that was leased.

        Args:
            name: the device's.
            told: whether a client has said so before, and it counts already.
        """
        old = replace(self.of(name), lost_by=())
        if told:
            self.keep(name, old)
        else:
            self._count(name, old, "the tracker", "no heartbeat")

    def _count(self, name: str, old: AdministrativeState, who: str, why: str) -> None:
        losses, quarantine = old.losses + 1, old.quarantine
        if losses > self._losses:
            words = f"lost {losses} times in a row; {who}: {why or 'no answer'}"
            quarantine = words[:LONGEST_REASON]
        self.keep(name, replace(old, losses=losses, quarantine=quarantine))

    def quarantine(self, name: str, why: str) -> None:
        """Keep a device from being leased; the first reason stays."""
        if not self.of(name).quarantine:
            self.keep(name, replace(self.of(name), quarantine=why))

    def drain(self, name: str, why: str) -> None:
        """An admin takes a device out of service."""
        self.keep(name, replace(self.of(name), draining=why))

    def readmit(self, name: str) -> None:
        """Forget all that is held against a device; it is told, so that it forgets as well."""
        self.keep(
            name, AdministrativeState(readmissions=self.of(name).readmissions + 1, readmitting=True)
        )

    def tell_readmissions(self, name: str) -> int:
        """What a device that beats is told: how often it was readmitted, 0 if that is no news.

        It acts on an answer before it beats again, and registers if it got none. So one that beats
        twice has heard, and its answer is the last that says so.
        """
        standing = self.of(name)
        if not standing.readmitting:
            return 0
        if self._told.get(name) == standing.readmissions:
            del self._told[name]
            self.keep(name, replace(standing, readmitting=False))
        else:
            self._told[name] = standing.readmissions
        return standing.readmissions

    def registered(self, name: str) -> None:
        """A device begins anew: nobody knows whether it got the last answer."""
        self._told.pop(name, None)

    def restore(self, standings: Mapping[str, AdministrativeState]) -> None:
        """Go on with those of an earlier time."""
        self._standings = dict(standings)

    def rows(self) -> tuple[tuple[str, AdministrativeState], ...]:
        """All that are not good, by name."""
        return tuple(sorted(self._standings.items(), key=lambda row: row[0]))

    def changes(self) -> tuple[tuple[str, AdministrativeState | None], ...]:
        """Those that have changed since this was last asked; None: it is good again."""
        changed = tuple((name, self._standings.get(name)) for name in sorted(self._changed))
        self._changed.clear()
        return changed
