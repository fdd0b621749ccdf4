"""Which devices timed by the clock may share a search: those whose known kernel takes as long.

cpu0  5.0 us ─┬─► as fast as one another: their times can be compared
cpu1  5.1 us ─┘
cpu2  8.0 us ───► left out, and it is said: a kernel measured there would look 1.6 times as slow
"""

from __future__ import annotations

from collections.abc import Iterable

from tilefarm.lease import DeviceInfo
from tilefarm.measurement import TIME_TOLERANCE


def tolerance(one: DeviceInfo, other: DeviceInfo) -> float:
    """How far their known kernels' times may be apart, relative to the shorter."""
    return max(TIME_TOLERANCE, one.known_spread, other.known_spread)


def comparable(one: DeviceInfo, other: DeviceInfo) -> bool:
    """Whether their times can be compared; those that nobody has told are believed to be."""
    shorter, longer = sorted((one.known_seconds, other.known_seconds))
    return shorter <= 0 or longer / shorter - 1 <= tolerance(one, other)


def reference_among(devices: Iterable[DeviceInfo]) -> DeviceInfo | None:
    """Whom a search's devices are to be compared with: the one that most can be, of several such
    the fastest. None if none of them says how long its known kernel takes.
    """
    told = [device for device in devices if device.known_seconds > 0]
    agreeing = {each.name: sum(comparable(each, other) for other in told) for each in told}
    return min(told, key=lambda d: (-agreeing[d.name], d.known_seconds, d.name), default=None)


def why_left_out(device: DeviceInfo, reference: DeviceInfo | None) -> str:
    """Why a search by this reference cannot have the device, in words; empty if it can."""
    if reference is None or comparable(device, reference):
        return ""
    change = device.known_seconds / reference.known_seconds - 1
    own, its = (f"{each.known_seconds * 1e6:.2f} us" for each in (device, reference))
    return (
        f"its known kernel takes {abs(change):.1%} {'more' if change > 0 else 'less'} time ({own})"
        f" than that of {reference.name} ({its}), and {tolerance(device, reference):.0%} would be"
        " noise: times of the two cannot be compared"
    )
