"""The pace that each device had at the first time that is kept: later ones are told at it.

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


class ClockBaselines:
    """What the known kernel took on each device when its first time was kept; thread-safe.

    Args:
        known: by name, in seconds: of the searches that this one goes on with.
    """

    def __init__(self, known: Mapping[str, float] | None = None) -> None:
        self._seconds = dict(known or {})
        self._lock = threading.Lock()

    def note(self, device: DeviceInfo) -> bool:
        """A time of the device is kept; whether it is the first, and from now on has its pace."""
        with self._lock:
            is_first = device.known_seconds > 0 and device.name not in self._seconds
            if is_first:
                self._seconds[device.name] = device.known_seconds
        return is_first

    def at_first(self, device: DeviceInfo) -> DeviceInfo:
        """The device as it was at its first time; as it is if it has none."""
        with self._lock:
            seconds = self._seconds.get(device.name, device.known_seconds)
        return replace(device, known_seconds=seconds)

    def reference(self, like: DeviceInfo) -> DeviceInfo | None:
        """A device that has times, to compare `like` with; None if none has."""
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
