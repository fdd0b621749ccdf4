"""What a tracker takes up: what devices say of themselves, and clients of what they wish for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tilefarm.errors import SettingsError
from tilefarm.rpc.tracker_calls import Acquire, Register
from tilefarm.trust.access import is_name

HIGHEST_FENCE: Final = 1 << 62
"""So that no device can use the numbers up: fences travel as uint64, a state file has int64."""

FENCE_LEAP: Final = 1 << 48
"""Of fences, from what a tracker has given to what a device says it has seen. They begin at the
milliseconds of a tracker's clock, which may stand at 1970, and grow by one a lease."""

LONGEST_WORDS: Final = 1000
"""Characters of one word of a wish; they are kept for as long as its lease lives, and longer."""

MOST_LABELS: Final = 64
"""Of a device, and of a wish."""

LONGEST_REASON: Final = 300
"""Characters: why a device rests, is quarantined, was drained or lost."""

LONGEST_PORTRAIT: Final = 1500
"""Bytes of all that a device says of itself; so a list of all devices is one message."""

LONGEST_SECRET: Final = 64
"""Bytes; devices have 32."""


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
    if len(wish.labels) > MOST_LABELS:
        raise SettingsError(
            f"a wish has {len(wish.labels)} labels, more than {MOST_LABELS}", "ask for fewer"
        )


def require_possible(call: Register, given: int = 0) -> None:
    """Nothing if a device can have this name, have seen this fence, and is short about itself.

    Args:
        given: the highest fence that the tracker has given. A device may always have seen that one,
            or all others would be refused once one has made the tracker leap to the highest.

    Raises:
        SettingsError: it cannot.
    """
    name = call.device.name
    if not is_name(name):
        raise SettingsError(
            f"{name[:64]!r} is no name of a device", "letters, digits and . _ -, at most 64 of them"
        )
    most = max(given, min(given + FENCE_LEAP, HIGHEST_FENCE))
    if call.fence > most:
        raise SettingsError(
            f"the device {name} says it has seen the fence {call.fence}; {most} is the highest that"
            " it can have seen",
            "start its server anew",
        )
    device = call.device
    labels = [word for label in device.labels for word in label]
    words = (device.address, device.runtime, device.sandbox, device.epoch, device.self_test)
    said = _nbytes([*words, *labels])
    if said > LONGEST_PORTRAIT or len(device.labels) > MOST_LABELS:
        raise SettingsError(
            f"the device {name} says {said} bytes of itself, with {len(device.labels)} labels; a"
            f" tracker keeps {LONGEST_PORTRAIT} bytes with {MOST_LABELS} labels",
            "fewer and shorter --label",
        )
    if len(call.secret) > LONGEST_SECRET:
        raise SettingsError(
            f"the device {name} has a secret of {len(call.secret)} bytes, more than"
            f" {LONGEST_SECRET}",
            "remove the file `secret` from its folder",
        )


def _nbytes(words: Iterable[str]) -> int:
    return sum(len(word.encode()) for word in words)
