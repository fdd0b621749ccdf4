"""Devices that nobody leases, by target, those that have rested longest first."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Final

from tilefarm.digest import Digest

from device_server.tracker.entries import Device

MOST_STALE: Final = 1024
"""Places of devices that were leased or have ended, beside as many as there are true ones."""


class IdleDevices:
    """Finds a device without looking at those that are leased."""

    def __init__(self) -> None:
        self._rested: dict[Digest, list[tuple[int, str, int, Device]]] = {}
        self._numbers = itertools.count()
        self._count = 0
        self._sweep_at = MOST_STALE

    def __len__(self) -> int:
        """Places, true ones and others."""
        return self._count

    def add(self, device: Device) -> None:
        """One that has just come, or come back from a lease."""
        line = self._rested.setdefault(device.info.target, [])
        heapq.heappush(line, (device.fence, device.info.name, next(self._numbers), device))
        self._count += 1
        if self._count > self._sweep_at:
            self._sweep()

    def first(self, target: Digest, fits: Callable[[Device], bool]) -> Device | None:
        """The device of a target that fits and was leased longest ago; it stays until leased."""
        line = self._rested.get(target, [])
        passed: list[tuple[int, str, int, Device]] = []
        found: Device | None = None
        while line and found is None:
            place = heapq.heappop(line)
            if not _is_idle(place):
                self._count -= 1
                continue
            passed.append(place)
            if fits(place[3]):
                found = place[3]
        for place in passed:
            heapq.heappush(line, place)
        return found

    def _sweep(self) -> None:
        """Let go of places that are true no more: for a target that nobody wants none is found."""
        for target, line in list(self._rested.items()):
            line[:] = filter(_is_idle, line)
            heapq.heapify(line)
            if not line:
                del self._rested[target]
        self._count = sum(map(len, self._rested.values()))
        self._sweep_at = 2 * self._count + MOST_STALE


def _is_idle(place: tuple[int, str, int, Device]) -> bool:
    """Whether a place is still true: it may have been leased, have ended, or come back since."""
    fence, _, _, device = place
    return not device.gone and not device.lease_id and device.fence == fence
