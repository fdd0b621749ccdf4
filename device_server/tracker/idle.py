"""Devices that nobody leases, by target, those that have rested longest first."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from tilefarm.digest import Digest

from device_server.tracker.entries import Device


class IdleDevices:
    """Finds a device without looking at those that are leased."""

    def __init__(self) -> None:
        self._rested: dict[Digest, list[tuple[int, str, int, Device]]] = {}
        self._numbers = itertools.count()

    def add(self, device: Device) -> None:
        """One that has just come, or come back from a lease."""
        line = self._rested.setdefault(device.info.target, [])
        heapq.heappush(line, (device.fence, device.info.name, next(self._numbers), device))

    def first(self, target: Digest, fits: Callable[[Device], bool]) -> Device | None:
        """The device of a target that fits and was leased longest ago; it stays until leased."""
        line = self._rested.get(target, [])
        passed: list[tuple[int, str, int, Device]] = []
        found: Device | None = None
        while line and found is None:
            place = heapq.heappop(line)
            if not _is_idle(place):
                continue
            passed.append(place)
            if fits(place[3]):
                found = place[3]
        for place in passed:
            heapq.heappush(line, place)
        return found


def _is_idle(place: tuple[int, str, int, Device]) -> bool:
    """Whether a place is still true: it may have been leased, have ended, or come back since."""
    fence, _, _, device = place
    return not device.gone and not device.lease_id and device.fence == fence
