"""What is said when the lookahead keeps devices and workers idle."""

from __future__ import annotations

from dataclasses import replace

from kit.manual_clock import ManualClock
from kit.search.stand_ins import stand_in_lease

from driver.campaign.campaign import Campaign, WorkLimits
from driver.campaign.events import Built, Proposed
from driver.campaign.starvation import Starvation
from driver.campaign.step import step
from driver.farm.device_messages import DeviceUp
from tuner.lookahead import Lookahead


def with_one_out(devices: int) -> Campaign:
    """Workers and all devices but one wait for the end of the only candidate that may be out."""
    campaign = Campaign(limits=WorkLimits(workers=4), lookahead=Lookahead(1))
    ups = [DeviceUp(stand_in_lease(f"sim{n}")) for n in range(devices)]
    return step(step(campaign, *ups, Proposed((1,)))[0], Built(1, 0.1))[0]


def said(campaign: Campaign, *seconds: float) -> list[str]:
    """What is said of a state at these times."""
    clock = ManualClock()
    starvation = Starvation(clock)
    notes = [starvation.look(campaign)]
    for each in seconds:
        clock.advance(each)
        notes.append(starvation.look(campaign))
    return notes


def test_a_farm_that_waits_for_one_candidate_is_told_what_helps_once() -> None:
    campaign = with_one_out(devices=3)
    assert campaign.is_starved
    silent, still, note, never_again = said(campaign, 4.0, 2.0, 100.0)
    assert (silent, still, never_again) == ("", "", "")
    assert "no more than 1 candidate may be out" in note
    assert f"`--lookahead {campaign.limits.busy_lookahead(3).most}`" in note


def test_moments_between_two_answers_are_not_worth_a_word() -> None:
    clock = ManualClock()
    starvation = Starvation(clock)
    starved = with_one_out(devices=3)
    busy = replace(starved, lookahead=Lookahead(8))
    for _ in range(100):
        for campaign, seconds in ((starved, 0.2), (busy, 0.8)):
            assert starvation.look(campaign) == ""
            clock.advance(seconds)


def test_whoever_has_something_to_do_or_nothing_to_ask_for_does_not_starve() -> None:
    assert not with_one_out(devices=1).is_starved, "its device is busy"
    starved = with_one_out(devices=2)
    assert starved.is_starved
    assert not replace(starved, lookahead=Lookahead(8)).is_starved, "more may be asked for"
    assert not replace(starved, dry=True).is_starved, "there is nothing more"
    assert not replace(starved, stopping=True).is_starved
    assert said(Campaign(), 100.0, 100.0) == ["", "", ""], "there is no device"
