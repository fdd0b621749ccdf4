"""How often a device sends a heartbeat: each at an interval of its own.

Devices that came together, as all do when their tracker starts anew, would else call together for
ever, and whoever asks for a lease in such a moment waits until all of them are answered. One call
that is lost costs no device its life; more of them would cost the tracker of a large farm its time.
"""

from __future__ import annotations

from typing import Final

from tilefarm.digest import Digest

_MOST_PER_TTL: Final = 4
_FEWEST_PER_TTL: Final = 3
_PLACES: Final = 1 << 32


def heartbeat_seconds(device: str, ttl_seconds: float) -> float:
    """A device's interval, by its name: between a fourth and a third of its time to live."""
    shortest, longest = ttl_seconds / _MOST_PER_TTL, ttl_seconds / _FEWEST_PER_TTL
    place = int(Digest.of(device.encode()).hex[:8], 16) / _PLACES
    return shortest + place * (longest - shortest)
