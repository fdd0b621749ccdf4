"""From trials to the rows that people read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kit.kernels.nests import conv2d
from kit.search.stand_ins import toy_task, toy_trace
from kit.search.toy_spaces import timed
from tilefarm.measurement import Status, Trial

from driver.report.summary import WorkloadRow
from driver.tune.summarise import default_trial, shape_text, trial_rows, workload_row
from tuner.run_off import winner

TASK = toy_task()


def trial(inner: int, cycles: int | None, ended: float = 5.0) -> Trial:
    point = {"inner": inner, "outer": 12 // inner, "extent": 12}
    return Trial(
        workload=TASK.workload.digest,
        trace=toy_trace(point).digest,
        point=tuple(sorted(point.items())),
        status=Status.OK if cycles else Status.RUN_TIMEOUT,
        cycles=cycles,
        spans=(("run", ended - 1, ended),),
    )


TRIALS = [trial(1, 1000), trial(2, None), trial(4, 250), trial(3, 250), trial(6, None)]


def test_the_best_is_the_first_of_the_fastest_good_ones() -> None:
    assert winner(TRIALS, None) == TRIALS[2]
    assert winner([trial(2, None)], None) is None
    assert winner([], None) is None


def test_the_default_is_found_by_its_point() -> None:
    assert default_trial(TASK, TRIALS) == TRIALS[0]
    assert default_trial(TASK, TRIALS[1:]) is None


def test_the_default_is_found_by_what_was_chosen_alone() -> None:
    chosen = [replace(each, point=TASK.choice(dict(each.point))) for each in TRIALS]
    assert default_trial(TASK, chosen) == chosen[0]
    rows = trial_rows({TASK.name: TASK}, chosen, 0.0)
    assert rows == trial_rows({TASK.name: TASK}, TRIALS, 0.0)


def test_a_workload_in_one_row() -> None:
    row = workload_row(TASK, TRIALS)
    assert (row.default.cycles, row.best.cycles, row.trials) == (1000, 250, 5)
    assert row.failures == (("run_timeout", 2),)
    assert row.best_point == (("inner", 4),)
    assert row.speedup == 4
    assert row.utilisation == TASK.ideal_cycles / 250


def test_seconds_take_the_place_of_cycles() -> None:
    """A tenth of a microsecond for each; zeros are no time."""
    trials = [
        replace(each, cycles=None, wall_time=timed(1e-7 * each.cycles)) if each.cycles else each
        for each in TRIALS
    ]
    assert winner([*trials, replace(trials[0], wall_time=None, cycles=0)], None) == trials[2]
    row = workload_row(TASK, trials)
    assert (row.default.seconds, row.best.seconds) == pytest.approx((1e-4, 2.5e-5))
    assert (row.default.cycles, row.best.cycles, row.utilisation) == (None, None, None)
    assert row.speedup == pytest.approx(4)
    assert trial_rows({TASK.name: TASK}, trials, 0.0)[0].cost == pytest.approx(1e-4)


def test_a_workload_without_a_good_trial_has_no_ratio() -> None:
    row: WorkloadRow = workload_row(TASK, [trial(2, None)])
    assert (row.speedup, row.utilisation, row.best.cycles) == (None, None, None)


def test_trials_of_earlier_sessions_have_no_time() -> None:
    rows = trial_rows({TASK.name: TASK}, [trial(1, 9, ended=5.0), trial(2, 8, ended=15.0)], 10.0)
    assert [(row.number, row.ended_seconds) for row in rows] == [(1, None), (2, 5.0)]
    assert [row.is_default for row in rows] == [True, False]


def test_trials_of_workloads_that_are_gone_are_left_out() -> None:
    assert trial_rows({}, TRIALS, 0.0) == ()


def test_shapes_in_words() -> None:
    assert shape_text(TASK.workload) == "1x1x1x16 -> 1x1x1x16"
    assert shape_text(replace(TASK.workload, inputs=())) == "1x1x1x16"


def test_a_window_is_told_however_many_planes_weights_have() -> None:
    for planes in (1, 2):
        work = conv2d(2, 1, 5, 7, stride=(2, 1), planes=planes)
        assert shape_text(work) == "1x2x5x7x1x16 -> 1x1x3x7x1x16, 3x3 stride 2x1"


BOUNDED = replace(TASK, least_cycles=100)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (trial(1, 99), "said 99 cycles, and no schedule"),
        (trial(1, 1), "said 1 cycle, and no schedule"),
        (replace(trial(1, 7), cycles=None, wall_time=timed(9e-9)), "said 9e-09 s, and no schedule"),
    ],
)
def test_a_record_of_what_cannot_be_is_no_result(told: Trial, why: str) -> None:
    """Versions that held nothing against a device have kept such ones, as the best there are."""
    believed = BOUNDED.believed(replace(told, device="sim0"))
    assert (believed.status, believed.cost) == (Status.IMPLAUSIBLE, None)
    assert believed.why.startswith(f"device sim0 {why}")
    (row,) = trial_rows({TASK.name: BOUNDED}, [told], 0.0)
    assert (row.status, row.cycles, row.kernel_seconds) == ("implausible", None, None)


@pytest.mark.parametrize(
    "told",
    [
        trial(1, 100),
        trial(1, None),
        replace(trial(1, 7), cycles=None, wall_time=timed(1.1e-8)),
    ],
)
def test_any_other_record_is_what_it_was(told: Trial) -> None:
    assert BOUNDED.believed(told) is told
