"""What a device may say of itself when it registers."""

from __future__ import annotations

from typing import Final

from tilefarm.errors import SettingsError
from tilefarm.rpc.calls import Register
from tilefarm.trust.access import is_name

HIGHEST_FENCE: Final = 1 << 62
"""So that no device can use the numbers up: fences travel as uint64, a state file has int64."""


def require_possible(call: Register) -> None:
    """Nothing if a device can have this name, and have seen this fence.

    Raises:
        SettingsError: it cannot.
    """
    name = call.device.name
    if not is_name(name):
        raise SettingsError(
            f"{name[:64]!r} is no name of a device", "letters, digits and . _ -, at most 64 of them"
        )
    if call.fence > HIGHEST_FENCE:
        raise SettingsError(
            f"the device {name} says it has seen the fence {call.fence}; no tracker gives one above"
            f" {HIGHEST_FENCE}",
            "start its server anew",
        )
