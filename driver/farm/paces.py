"""The pace that each device of a search had at first: times that it takes later are told at it.

cpu0  known kernel 10 us   a candidate takes 40 us ─► 40 us
      … it gets hot, rests, and goes on
cpu0  known kernel 15 us   a candidate takes 60 us ─► 40 us, as it would have taken at first

A processor has no pace of its own, and one search may last for nights. Without this, what it times
on a hot day would look worse than what it timed before, whatever it is. A kernel that waits for
memory gets slower by less than the known kernel, so this is no exact time; those that may be the
best are timed again in the end, in turn and at one pace.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

from tilefarm.lease import DeviceInfo
from tilefarm.measurement import Measurement

from driver.farm.comparable import comparable


class Paces:
    """What the known kernel took on each device when the search first had it; thread-safe.

    Args:
        known: by name, in seconds: of the searches that this one goes on with.
    """

    def __init__(self, known: Mapping[str, float] | None = None) -> None:
        self._seconds = dict(known or {})
        self._lock = threading.Lock()

    def note(self, device: DeviceInfo) -> None:
        """The search has the device, at the pace that it has now unless it had it before."""
        if device.known_seconds:
            with self._lock:
                self._seconds.setdefault(device.name, device.known_seconds)

    def at_first(self, device: DeviceInfo) -> DeviceInfo:
        """The device as it was when the search first had it; as it is if it never had it."""
        with self._lock:
            seconds = self._seconds.get(device.name, device.known_seconds)
        return replace(device, known_seconds=seconds)

    def reference(self, like: DeviceInfo) -> DeviceInfo | None:
        """A device that the search has had, to compare `like` with; None if it had none."""
        with self._lock:
            name = next(iter(self._seconds), None)
        return None if name is None else self.at_first(replace(like, name=name))

    def told(self, outcome: Measurement, device: DeviceInfo) -> Measurement:
        """What the device has measured, its times as they would have been at its first pace."""
        first = self.at_first(device)
        if outcome.wall_time is None or comparable(first, device):
            return outcome
        times = outcome.wall_time.scaled(first.known_seconds / device.known_seconds)
        return replace(outcome, wall_time=times)

    def remark(self, device: DeviceInfo) -> str:
        """That times of the device are told at another pace than its own; empty if not."""
        first = self.at_first(device)
        if comparable(first, device):
            return ""
        then, now = (f"{each.known_seconds * 1e6:.2f} us" for each in (first, device))
        return (
            f"{device.name} has another pace than at first: its known kernel takes {now}, not"
            f" {then}; its times are told as they would have been then"
        )
