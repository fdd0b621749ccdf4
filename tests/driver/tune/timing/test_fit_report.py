"""A fit is refused where nothing shows that it predicts better; the reason has the numbers."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from kit.search.stand_ins import toy_workload
from tilefarm.measurement import DeviceClock
from tilefarm.target import TARGETS, BusTiming

from driver.tune.timing.fit_report import lines, objection
from driver.tune.timing.measured import Measured, MeasuredWorkload
from driver.tune.timing.timing_fit import Errors, LeftOut, Parameters, TimingFit

BEFORE: Final = Parameters(timing=BusTiming(), clock_mhz=0)
AFTER: Final = Parameters(timing=BusTiming(dram_delay_cycles=64), clock_mhz=0)
COSTS: Final = np.geomspace(1e3, 1e4, 8)


def measured(workloads: int = 2, trials: int = 8) -> Measured:
    return Measured(
        target=TARGETS["sim"],
        clock=DeviceClock.CYCLES,
        workloads=tuple(
            MeasuredWorkload(
                workload=toy_workload(lanes + 1), points=({},) * trials, costs=COSTS[:trials]
            )
            for lanes in range(workloads)
        ),
        sources=("night",),
        devices=("board0",),
        left_out=(("of layers that run on the processor", 3),),
    )


def fitted(
    before: float, left_out: float | Errors, *, workloads: int = 2, trials: int = 8
) -> TimingFit:
    """A fit by which every time is so far off, upwards, before it and left out."""
    was = np.full(trials, before)
    is_now = np.broadcast_to(left_out, trials)
    alone = LeftOut(parameters=AFTER, errors=is_now)
    return TimingFit(
        before=BEFORE,
        after=AFTER,
        errors_before=(was,) * workloads,
        errors_after=(is_now,) * workloads,
        left_out=(alone,) * (workloads if workloads > 1 else 0),
    )


def test_a_fit_that_predicts_better_is_taken() -> None:
    assert objection(measured(), fitted(0.3, 0.1)) == ""


@pytest.mark.parametrize("left_out", [0.3, 0.299])
def test_a_fit_that_does_not_is_refused(left_out: float) -> None:
    why = objection(measured(), fitted(0.3, left_out))
    assert why.startswith("workloads that are left out are 3")
    assert why.endswith("% off, and 35.0 % before the fit")


def test_a_fit_that_spoils_the_order_is_refused() -> None:
    """What is predicted is nearer to the times, but the same for all and a bit the wrong way."""
    errors = np.log(COSTS) - np.log(COSTS).mean() + np.linspace(0, 0.01, len(COSTS))
    why = objection(measured(), fitted(2.0, 0.3 * errors + 0.7 * np.roll(errors, 4)))
    assert why.startswith("schedules of workloads that are left out are ordered worse than before")


def test_times_that_no_parameters_explain() -> None:
    why = objection(measured(), fitted(0.9, 0.5))
    assert why.endswith("still 64.9 % off: no parameters explain these times")


def test_too_little_was_measured() -> None:
    few = objection(measured(trials=5), fitted(0.3, 0.1, trials=5))
    assert few == "10 trials, and 12 are the least"
    one = objection(measured(1), fitted(0.3, 0.1, workloads=1))
    assert one == "8 trials, and 12 are the least"


def test_lines_say_what_was_not_used() -> None:
    said = list(lines(measured(), fitted(0.3, 0.1)))
    assert said[:2] == [
        "sim: 16 trials of 2 workloads in cycles, by board0",
        "3 trials left out: of layers that run on the processor",
    ]
    row = "mean 16 35.0 (35.0) 10.5 (10.5) 10.5 (10.5) 1.00 1.00 1.00"
    assert said[-1].split() == row.split()
