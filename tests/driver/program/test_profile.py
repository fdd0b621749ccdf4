"""A profile's numbers: shares, ratios at the right clock, and nothing made of what was not told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kit.reports.profiles import a_program, counted_profile, timed_profile
from tilefarm.digest import Digest
from tilefarm.errors import InfraError, ModelError
from tilefarm.measurement import CallTime, Counters, Measurement

from driver.program.profile import profile_of, require_entries
from driver.report.profile import Profile


def ratios(profile: Profile) -> list[float | None]:
    return [layer.ratio for layer in profile.layers]


def test_cycles_are_compared_with_predicted_cycles() -> None:
    profile = counted_profile()
    assert not profile.by_clock
    assert ratios(profile) == [None, 1.0, 2.0]
    assert [layer.cost for layer in profile.layers] == [None, 1000.0, 3000.0]
    assert [layer.share for layer in profile.layers] == [None, 0.25, 0.75]
    assert (profile.layers_cost, profile.network_cost) == (4000.0, 3200.0)


def test_seconds_are_compared_at_the_board_s_clock() -> None:
    profile = timed_profile(clock_mhz=50)
    assert profile.by_clock
    assert profile.mhz == 50
    assert ratios(profile) == [None, pytest.approx(0.5), pytest.approx(1.0)]
    assert sum(layer.share or 0 for layer in profile.layers) == pytest.approx(1)


def test_without_a_known_clock_they_are_compared_with_one_another() -> None:
    profile = timed_profile()
    assert profile.mhz == pytest.approx(2500 / 40)
    _, first, second = ratios(profile)
    assert first == pytest.approx(2500 / 4000)
    assert second == pytest.approx(2 * 2500 / 4000)


@pytest.mark.parametrize("counted", [True, False])
def test_without_predictions_there_is_nothing_to_compare_with(counted: bool) -> None:
    program = a_program()
    bare = replace(program, calls=tuple(replace(c, predicted_cycles=None) for c in program.calls))
    known = counted_profile() if counted else timed_profile()
    measured = Measurement(
        artifact=Digest.of(b""),
        device="d",
        counters=Counters(cycles=9) if counted else None,
        wall_time=known.network.wall_time,
        profile=tuple(layer.took for layer in known.layers),
    )
    profile = profile_of(bare, measured)
    assert ratios(profile) == [None, None, None]
    assert profile.mhz is None


def test_a_network_of_the_processor_alone_has_no_cycles() -> None:
    program = a_program()
    measured = Measurement(
        artifact=Digest.of(b""),
        device="d",
        counters=Counters(cycles=0),
        profile=(CallTime(cycles=0),) * len(program.calls),
    )
    profile = profile_of(program, measured)
    assert profile.network_cost is None
    assert [layer.share for layer in profile.layers] == [None] * 3


def test_a_device_of_an_older_version_is_told() -> None:
    measured = Measurement(artifact=Digest.of(b""), device="old0", counters=Counters(cycles=9))
    with pytest.raises(InfraError, match="old0 is of an older version: it does not time layers"):
        profile_of(a_program(), measured)


def test_a_program_of_an_older_version_is_told() -> None:
    with pytest.raises(ModelError) as refused:
        require_entries(replace(a_program(), calls=()))
    assert "older version: it has no entries for its layers" in refused.value.what
    assert "assembles it anew" in refused.value.hint
