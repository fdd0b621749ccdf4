"""What a tracker takes up: what devices say of themselves, and clients of what they wish for."""

from __future__ import annotations

from typing import Final

from tilefarm.errors import SettingsError
from tilefarm.rpc.tracker_calls import Acquire, Register
from tilefarm.trust.access import is_name

HIGHEST_FENCE: Final = 1 << 62
"""So that no device can use the numbers up: fences travel as uint64, a state file has int64."""

LONGEST_WORDS: Final = 1000
"""Of a wish; they are kept for as long as its lease lives, and longer."""


def require_modest(wish: Acquire) -> None:
    """Nothing if a wish is in words that may be kept.

    Raises:
        SettingsError: it is not.
    """
    words = {"request_id": wish.request_id, "owner": wish.owner, "job": wish.job}
    words |= {"a label": max(("".join(label) for label in wish.labels), key=len, default="")}
    for name, text in words.items():
        if len(text) > LONGEST_WORDS:
            raise SettingsError(
                f"{name} of a wish has {len(text)} characters, more than {LONGEST_WORDS}",
                "give a shorter one",
            )


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
