"""Results within a border, on simulators of both designs: all bits, and what they cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kit.simulated import PAIRS, unbuilt
from tilefarm.target import TARGETS, Target

from compile_worker.space import generate, lower_bound_cycles
from device_server.library.library import VtaLibrary
from driver.bench.kinds import workloads
from driver.bench.measuring import Bench
from driver.bench.sandboxed import Sandbox
from driver.vta.layers import (
    BIASED,
    MOBILENET_DEPTHWISE,
    RESNET18,
    Convolution,
    predicted_best,
)
from tuner.sampler import Sampler

SIM, BOARD = TARGETS["sim"], TARGETS["sim-pynq-z1"]
NAMES = ("conv bordered", "conv bordered 1x1", "conv bordered depthwise")

pytestmark = pytest.mark.skipif(bool(unbuilt()), reason=unbuilt() or "built")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", [SIM, BOARD, PAIRS], ids=lambda t: t.name)
def test_random_schedules_give_the_bits_of_numpy(target: Target, name: str) -> None:
    work = workloads(target)[name]
    made = generate(work, target)
    points = Sampler(made.space).sample(4, np.random.default_rng(1))
    with Sandbox(work, target, seed=0) as sandbox:
        for point in [dict(made.space.default), *points]:
            verdict = sandbox.verdict(made.trace(point))
            assert verdict.is_right, (verdict, point)


@pytest.mark.parametrize("target", [SIM, BOARD], ids=lambda t: t.name)
@pytest.mark.parametrize(
    "layer", [RESNET18["C8"], MOBILENET_DEPTHWISE["D7"]], ids=["3x3", "depthwise"]
)
def test_a_border_costs_two_percent_at_most(target: Target, layer: Convolution) -> None:
    """Of the same schedule's cycles, and the estimate is as good as without."""
    plain, bordered = (layer.workload(target, e) for e in (BIASED, replace(BIASED, border=True)))
    assert lower_bound_cycles(bordered, target) == lower_bound_cycles(plain, target)
    point = predicted_best(generate(bordered, target), 0)
    cycles, errors = [], []
    for work in (plain, bordered):
        made = generate(work, target)
        measured = Bench(VtaLibrary(), work, target, 0).cycles(made.trace(point))
        assert isinstance(measured, int)
        predicted = made.completed(point)["predicted_quarter_cycles"] / 4
        cycles.append(measured)
        errors.append(predicted / measured - 1)
    assert cycles[1] <= 1.02 * cycles[0]
    assert abs(errors[1] - errors[0]) < 0.02
