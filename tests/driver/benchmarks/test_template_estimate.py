"""What the old flow's programs are estimated to take, beside what they were measured to take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from kit.shared import shared_folder
from tilefarm.target import TARGETS

from driver.benchmarks.tuner.template_estimate import estimated_cycles
from driver.benchmarks.tvm_flow import OLD_FLOW, TemplatePoint, read_points
from driver.program.vta.layers import PLAIN, RESNET18
from driver.tune.autotvm.template import TemplateLayer

SIM = TARGETS["sim"]


def estimates(name: str, points: Sequence[TemplatePoint]) -> list[int]:
    layer = TemplateLayer.of(RESNET18[name].workload(SIM, PLAIN))
    assert layer is not None
    return [estimated_cycles(point, layer, SIM) for point in points]


@pytest.mark.parametrize("name", OLD_FLOW)
def test_the_best_of_a_layer_takes_what_is_estimated(name: str) -> None:
    best = OLD_FLOW[name].best
    (estimate,) = estimates(name, [best])
    assert estimate == pytest.approx(best.cycles, rel=0.07)


def test_all_points_are_in_the_order_of_what_they_take() -> None:
    shared = shared_folder()
    if shared is None:
        pytest.skip("the table of the template's points is not here")
    for name, points in read_points(shared / "peer" / "autotvm_space.csv").items():
        cycles = np.array([point.cycles for point in points])
        found = np.array(estimates(name, points))
        ranks = [np.argsort(np.argsort(each, kind="stable")) for each in (cycles, found)]
        assert np.asarray(np.corrcoef(ranks))[0, 1] > 0.99, name
        assert cycles[np.argmin(found)] <= 1.05 * cycles.min(), name


def test_one_thread_does_one_thing_after_the_other() -> None:
    two = TemplatePoint(7, 7, 1, 8, 2, 1, 0)
    one = TemplatePoint(7, 7, 1, 8, 1, 1, 0)
    beside, after = estimates("C10", [two, one])
    assert after > 1.5 * beside
