"""What earlier sessions of a folder have measured, and by which clock."""

from __future__ import annotations

import pytest
from kit.search.toy_spaces import conv_like_space, timed, trial_of
from tilefarm.errors import OutputError
from tilefarm.measurement import DeviceClock, Status, Trial

from driver.tune.continued import Continued
from tuner.session import TuningSession, WeightedSpace

COUNTED = trial_of({"x": 1}, cycles=7)
CLOCKED = trial_of({"x": 2}, wall_time=timed(1e-5))
FAILED = trial_of({"x": 3}, Status.RUN_CRASH)
ZERO = trial_of({"x": 4}, cycles=0)


def continued(*trials: Trial) -> Continued:
    session = TuningSession({"a": WeightedSpace(conv_like_space())}, trials=1)
    return Continued(session=session, search=1, known={"a": [*trials], "b": [FAILED]}, seeds={})


@pytest.mark.parametrize(
    ("trials", "clock"),
    [
        ((), None),
        ((FAILED, ZERO), None),
        ((FAILED, COUNTED, ZERO), DeviceClock.CYCLES),
        ((ZERO, CLOCKED), DeviceClock.SECONDS),
    ],
)
def test_records_know_their_clock(trials: tuple[Trial, ...], clock: DeviceClock | None) -> None:
    assert continued(*trials).clock is clock


def test_records_of_two_clocks_are_refused() -> None:
    with pytest.raises(OutputError, match="told in cycles and others in seconds") as raised:
        _ = continued(COUNTED, CLOCKED).clock
    assert "--out" in raised.value.hint
