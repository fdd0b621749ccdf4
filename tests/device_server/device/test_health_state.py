"""A device's condition: what it tells the tracker, and what it takes from its answers."""

from __future__ import annotations

from device_server.device.canary import Drift, NotMade, Wrong
from device_server.device.health_state import HealthState


def test_a_well_device_has_no_trouble() -> None:
    well = HealthState()
    assert (well.trouble, well.resting, well.news) == ("", "", "")
    assert not well.hear(quarantined=False)


def test_a_quarantine_is_told_until_the_tracker_knows_it() -> None:
    device = HealthState()
    device.note(Wrong("one bit"))
    assert (device.trouble, device.resting, device.news) == ("one bit", "", "one bit")
    assert not device.hear(quarantined=False)
    assert not device.hear(quarantined=True)
    assert (device.trouble, device.news) == ("one bit", "")


def test_who_is_readmitted_hears_of_it_once_the_tracker_knew() -> None:
    device = HealthState()
    device.note(Wrong("one bit"))
    device.hear(quarantined=True)
    assert device.hear(quarantined=False)
    device.note(Wrong("one bit"))
    assert device.news == "one bit"
    assert not device.hear(quarantined=False)


def test_a_device_that_drifts_and_then_is_wrong_is_in_quarantine_only() -> None:
    device = HealthState()
    device.note(Drift("slow"))
    assert (device.resting, device.news) == ("slow", "")
    device.note(Wrong("one bit"))
    assert (device.resting, device.news) == ("", "one bit")


def test_a_readmitted_device_that_is_right_but_slow_rests() -> None:
    device = HealthState()
    device.note(Wrong("one bit"))
    device.note(Drift("slow"))
    assert (device.resting, device.quarantine) == ("slow", "")


def test_only_what_may_end_by_itself_is_a_rest() -> None:
    device = HealthState()
    assert not device.rests
    device.note(Drift("slow"))
    assert device.rests
    device.note(FULL)
    assert device.rests
    device.hung = "a run"
    assert not device.rests
    wrong = HealthState()
    wrong.note(Wrong("one bit"))
    wrong.note(FULL)
    assert not wrong.rests


FULL = NotMade("the runner failed: the disk is full", "free some space on its disk")
UNSURE = "cannot be checked: the runner failed: the disk is full; free some space on its disk"


def test_one_that_cannot_be_checked_rests_and_says_what_to_do() -> None:
    device = HealthState()
    device.note(FULL)
    assert (device.trouble, device.resting, device.passing, device.news) == (*[UNSURE] * 3, "")
    device.recover()
    assert device.trouble == ""


def test_whoever_is_checked_after_all_is_what_was_found() -> None:
    device = HealthState()
    device.note(FULL)
    device.note(Drift("slow"))
    assert device.resting == "slow"
    device.note(FULL)
    assert device.resting == UNSURE
    device.note(Wrong("one bit"))
    assert (device.trouble, device.resting, device.news) == ("one bit", "", "one bit")


def test_a_readmitted_device_that_cannot_be_checked_is_readmitted_once() -> None:
    device = HealthState()
    device.note(Wrong("one bit"))
    device.hear(quarantined=True)
    assert device.hear(quarantined=False)
    device.note(FULL)
    assert (device.trouble, device.resting, device.news) == ("one bit", UNSURE, "")
    assert not device.hear(quarantined=False)
    device.recover()
    assert device.trouble == ""


def test_what_hangs_rests_for_good() -> None:
    device = HealthState()
    device.hung = "hangs"
    device.note(Drift("slow"))
    device.recover()
    assert (device.resting, device.trouble) == ("hangs", "hangs")
