"""What is told of a space after a search."""

from __future__ import annotations

import numpy as np
import pytest
from kit.search.stand_ins import toy_task
from tilefarm.measurement import Status, Trial
from tilefarm.space import ESTIMATE
from tilefarm.target import TARGETS

from driver.campaign.measuring import Task
from driver.campaign.tasks import task_of
from driver.program.vta.layers import RESNET18
from driver.tune.space_rows import deciding, space_row
from tuner.sampler import Sampler


def _trial(task: Task, point: dict[str, int], cycles: int | None) -> Trial:
    return Trial(
        workload=task.digest,
        trace=task.trace(point).digest,
        point=task.choice(point),
        status=Status.RUN_CRASH if cycles is None else Status.OK,
        cycles=cycles,
    )


def test_predictions_are_those_of_the_space() -> None:
    sim = TARGETS["sim"]
    task = task_of(RESNET18["C11"].workload(sim), sim, count=1, macs=1, seed=0)
    points = [dict(p) for p in Sampler(task.space).sample(3, np.random.default_rng(1))]
    trials = [_trial(task, points[0], 1000), _trial(task, points[1], None)]
    row = space_row(task, [*trials, _trial(task, points[2], 3000)])
    assert row.predictions == (
        (1, points[0][ESTIMATE] / 4, 1000.0),
        (3, points[2][ESTIMATE] / 4, 3000.0),
    )
    assert (row.measured, row.failed) == (3, 1)
    assert (row.all_points, row.valid_points, row.is_exact) == (1_327_104, 14_167, True)


def test_a_small_space_is_counted() -> None:
    row = space_row(toy_task(1, 12), [])
    assert (row.all_points, row.valid_points, row.is_exact) == (6.0, 6.0, True)
    assert not row.predictions
    assert not row.deciding


def test_the_variable_that_costs_follow_decides() -> None:
    task = toy_task(1, 12)

    def trial(a: int, b: int, cycles: int | None) -> Trial:
        return Trial(
            workload=task.digest,
            trace=task.digest,
            point=(("a", a), ("b", b)),
            status=Status.OK if cycles else Status.RUN_CRASH,
            cycles=cycles,
        )

    trials = [trial(a, b, 100 * a) for a in (1, 2, 3, 4) for b in (1, 2, 3)]
    ((name, share),) = deciding(("a", "b"), [*trials, trial(1, 9, None)])
    assert name == "a"
    assert share == pytest.approx(1.0)
    assert deciding(("a", "b"), trials[:11]) == ()
    assert deciding(("a", "b"), [trial(a, 1, 7) for a in range(20)]) == ()
