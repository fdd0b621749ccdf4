"""Devices that are timed by the clock, as the tracker lists them."""

from __future__ import annotations

from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo
from tilefarm.measurement import DeviceClock


def clocked_device(name: str, microseconds: float, spread: float = 0.0) -> DeviceInfo:
    """A device whose known kernel takes so long."""
    return DeviceInfo(
        name=name,
        address="",
        target=Digest.of(b"t"),
        runtime="",
        sandbox="",
        epoch="",
        clock=DeviceClock.SECONDS,
        known_seconds=microseconds * 1e-6,
        known_spread=spread,
    )
