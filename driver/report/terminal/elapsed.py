"""How long something lasts already, in the one unit that says enough."""

from __future__ import annotations

from typing import Final

_DAY_SECONDS: Final = 86400.0


def ago(seconds: float) -> str:
    """Seconds, minutes, hours or days, whole ones."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * _DAY_SECONDS:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / _DAY_SECONDS:.0f} d"
