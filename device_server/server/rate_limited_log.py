"""A log of limited rate: what callers cause is told, but never without end."""

from __future__ import annotations

from typing import Final

from tilefarm.clock import Clock
from tilefarm.watch.log import Level, Log
from tilefarm.watch.rate_limit import RateLimit

MOST_LINES_AT_ONCE: Final = 1000
"""Of one kind of event."""

LINES_PER_SECOND: Final = 500.0
"""Of one kind of event in the long run: more than a device has runs."""


def rate_limited(log: Log, clock: Clock) -> Log:
    """A log that passes lines over where one event happens too often, and says how many."""
    events: dict[str, RateLimit] = {}

    def some(event: str, *, level: Level = Level.INFO, **fields: object) -> None:
        if event not in events:
            events[event] = RateLimit(
                clock, at_once=MOST_LINES_AT_ONCE, per_second=LINES_PER_SECOND
            )
        passed_over = events[event].passed_over()
        if passed_over is None:
            return
        not_told = {"not_told": passed_over} if passed_over else {}
        log(event, level=level, **fields, **not_told)

    return some
