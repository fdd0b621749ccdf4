"""Steps that were planted are found where they are, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pytest
from kit.reports.measured_nights import Measured
from kit.reports.row_nights import SECONDS, RowNights
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from tilefarm.digest import Digest

from driver.jobs.nightly.judging.change_points import change_points, steps
from driver.jobs.nightly.records import Pass

Noise = Callable[[Generator, int], NDArray[np.float64]]

NOISES: Final[dict[str, Noise]] = {
    "normal": lambda chance, n: chance.normal(0, 0.01, n),
    "heavy tails": lambda chance, n: 0.007 * chance.standard_t(3, n),
    "disturbed nights": lambda chance, n: (
        chance.normal(0, 0.005, n) + 0.1 * (chance.random(n) < 0.05)
    ),
    "two states": lambda chance, n: chance.normal(0, 0.005, n) + 0.04 * (chance.random(n) < 0.2),
}


@pytest.mark.parametrize("kind", NOISES)
def test_a_step_is_found_where_it_is(kind: str) -> None:
    found = []
    for seed in range(10):
        values = NOISES[kind](default_rng(seed), 200)
        values[120:] += 0.03
        found.append(change_points(list(values)))
    assert all(len(each) <= 1 for each in found)
    assert sum(any(abs(at - 120) <= 4 for at in each) for each in found) >= 9


@pytest.mark.parametrize("kind", NOISES)
def test_noise_has_no_steps(kind: str) -> None:
    for seed in range(20):
        assert change_points(list(NOISES[kind](default_rng(seed), 365))) == []


def test_up_and_down_again_are_two_steps() -> None:
    values = 0.002 * default_rng(0).standard_normal(90)
    values[30:60] += 0.05
    assert change_points(list(values)) == [30, 60]
    assert change_points(list(-values)) == [30, 60]


def test_a_few_nights_say_nothing_and_a_constant_has_no_steps() -> None:
    assert change_points([]) == change_points([0.0] * 9) == change_points([0.5] * 500) == []
    assert change_points([0.0] * 20 + [0.001] * 20) == [], "nothing that anybody would look for"
    assert change_points([0.0] * 20 + [0.03] * 20) == [20]


def test_every_change_of_cycles_is_a_step() -> None:
    row = RowNights()
    row.those([1000, 1000, 1001, 1001, 990])
    assert steps(row.samples) == ("n0003", "n0005")
    assert steps([]) == ()


def test_an_adoption_is_no_step_of_the_code() -> None:
    row = RowNights(clock=SECONDS)
    row.those([1.0] * 19)
    row.night(1.0, found=("B", 0.5))
    row.those([0.5] * 20, schedules="B")
    assert steps(row.samples) == ()
    row.those([0.55] * 20, schedules="B")
    assert steps(row.samples) == ("n0041",)
    other = Measured(machine="board1", clock=SECONDS, part=Pass.KNOWN).sample("z", Digest.of(b"B"))
    assert steps([*row.samples, other]) == (), "what another machine took is no level of this one"
