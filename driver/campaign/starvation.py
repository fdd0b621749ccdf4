"""Notices that devices and workers are kept idle by the lookahead, and says what would help."""

from __future__ import annotations

from typing import Final

from tilefarm.clock import Clock
from tilefarm.plural import plural

from driver.campaign.campaign import Campaign

_LEAST_SECONDS: Final = 5.0
_SHARE: Final = 0.25
"""Of the time since there was a device; less is a matter of moments between two answers."""


class Starvation:
    """Adds up for how long nothing more could be begun; speaks once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: float | None = None
        self._since: float | None = None
        self._seconds = 0.0
        self._has_spoken = False

    def look(self, campaign: Campaign) -> str:
        """What there is to say of it in this state, in words; empty nearly always."""
        if self._has_spoken or not campaign.devices:
            return ""
        now = self._clock.seconds()
        self._began = now if self._began is None else self._began
        self._seconds += 0.0 if self._since is None else now - self._since
        self._since = now if campaign.is_starved else None
        if self._seconds < max(_LEAST_SECONDS, _SHARE * (now - self._began)):
            return ""
        self._has_spoken = True
        most = campaign.lookahead.most
        more = max(2 * most, campaign.limits.busy_lookahead(len(campaign.devices)).most)
        return (
            f"devices and workers wait for one another, as no more than {plural(most, 'candidate')}"
            f" may be out: `--lookahead {more}` keeps them busy, and searches in another order"
        )
