"""Which registrations a tracker takes up at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tilefarm.digest import Digest
from tilefarm.errors import SettingsError
from tilefarm.lease import DeviceInfo
from tilefarm.rpc.tracker_calls import Acquire, Register

from device_server.tracker.admission import (
    FENCE_LEAP,
    HIGHEST_FENCE,
    require_modest,
    require_possible,
)


def registration(name: str = "sim0", fence: int = 0) -> Register:
    device = DeviceInfo(
        name=name, address="a:1", target=Digest.of(b""), runtime="", sandbox="", epoch="e"
    )
    return Register(device=device, fence=fence)


@pytest.mark.parametrize("name", ["", "a b", "../x", "x" * 65])
def test_a_device_needs_a_name_that_is_one(name: str) -> None:
    with pytest.raises(SettingsError, match="no name of a device") as refused:
        require_possible(registration(name))
    assert "letters" in refused.value.hint


def test_no_device_can_use_the_fences_up() -> None:
    given = HIGHEST_FENCE - 1
    require_possible(registration(fence=HIGHEST_FENCE), given)
    with pytest.raises(SettingsError, match="sim0 says it has seen the fence 4611686018427387905"):
        require_possible(registration(fence=HIGHEST_FENCE + 1), given)


@pytest.mark.parametrize("given", [0, 1 << 41])
def test_no_device_makes_a_tracker_leap_far(given: int) -> None:
    require_possible(registration(fence=given + FENCE_LEAP), given)
    with pytest.raises(SettingsError, match="is the highest that it can have seen"):
        require_possible(registration(fence=given + FENCE_LEAP + 1), given)


def test_what_a_tracker_has_given_a_device_may_have_seen() -> None:
    require_possible(registration(fence=HIGHEST_FENCE + 7), HIGHEST_FENCE + 7)


def test_words_of_a_wish_are_not_too_many_to_be_kept() -> None:
    wish = Acquire(request_id="r" * 1000, target=Digest.of(b""), labels=(("a", "b"),), job="j")
    require_modest(wish)
    for words in (
        {"request_id": "r" * 1001},
        {"owner": "o" * 2000},
        {"job": "j" * 2000},
        {"labels": (("k", "v"), ("k" * 600, "v" * 600))},
    ):
        with pytest.raises(SettingsError, match=r"of a wish has \d+ characters, more than 1000"):
            require_modest(replace(wish, **words))
