"""In which order nights were, though clocks go back and files of several hosts are merged.

Each night names the one before it, as commits do; where that leaves a choice, the clock decides.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

from driver.jobs.nightly.records import Night


def night_name(seconds: float) -> str:
    """When it began, in UTC: 2026-11-26T21:00:00Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def in_order(nights: Iterable[Night]) -> list[Night]:
    """The oldest first. Whatever order they come in, they leave in this one."""
    left = {night.name: night for night in nights}
    followers = defaultdict[str, list[Night]](list)
    for night in left.values():
        if night.after in left and night.after != night.name:
            followers[night.after].append(night)
    waiting = {night.name for each in followers.values() for night in each}
    ready = [_by_clock(night) for night in left.values() if night.name not in waiting]
    heapq.heapify(ready)
    ordered: list[Night] = []
    while left:
        # Hosts whose clocks disagreed may name each other: the clock breaks such a circle.
        _, name = heapq.heappop(ready) if ready else min(map(_by_clock, left.values()))
        if name in left:
            ordered.append(left.pop(name))
            for follower in followers[name]:
                heapq.heappush(ready, _by_clock(follower))
    return ordered


def clock_went_back(night: Night, before: Night | None) -> str:
    """What is to be said of a clock by which a night began before the last one; "" if none did."""
    if before is None or night.began >= before.began:
        return ""
    return (
        f"the clock went back: night {night.name} begins after night {before.name}"
        "; it is ordered after it all the same"
    )


def _by_clock(night: Night) -> tuple[float, str]:
    return night.began, night.name
