"""Results within a border, on simulators of both designs: all bits, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kit.built import needs_simulator
from kit.networks.bordered import BORDERED, bordered_network
from kit.networks.simulated import PAIRS, Simulators, program_of
from tilefarm.target import TARGETS, Target

from compile_worker.space import generate, lower_bound_cycles
from device_server.vta.library.library import VtaLibrary
from driver.benchmarks.workload_runner import WorkloadRunner
from driver.commands.validation.checked_steps import checked_steps
from driver.network.integer.reference import run_network
from driver.program.vta.layers import (
    BIASED,
    MOBILENET_DEPTHWISE,
    RESNET18,
    Convolution,
    predicted_best,
)

from .sampled_schedules import assert_bits_of_numpy

SIM, BOARD = TARGETS["sim"], TARGETS["sim-pynq-z1"]
NAMES = ("conv bordered", "conv bordered 1x1", "conv bordered depthwise")

pytestmark = needs_simulator


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "target", [SIM, BOARD, pytest.param(PAIRS, marks=pytest.mark.slow)], ids=lambda t: t.name
)
def test_random_schedules_give_the_bits_of_numpy(target: Target, name: str) -> None:
    assert_bits_of_numpy(name, target)


@pytest.mark.parametrize(
    "target", [SIM, pytest.param(BOARD, marks=pytest.mark.slow)], ids=lambda t: t.name
)
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
        measured = WorkloadRunner(VtaLibrary(), work, target, 0).cycles(made.trace(point))
        assert isinstance(measured, int)
        predicted = made.completed(point)["predicted_quarter_cycles"] / 4
        cycles.append(measured)
        errors.append(predicted / measured - 1)
    assert cycles[1] <= 1.02 * cycles[0]
    assert abs(errors[1] - errors[0]) < 0.02


@pytest.mark.parametrize("fill_first", [True, False])
def test_every_step_of_a_network_makes_what_the_reference_makes(fill_first: bool) -> None:
    network = bordered_network(fill_first=fill_first)
    made = generate(BORDERED, SIM)
    traces = {BORDERED: made.trace(dict(made.space.default))}
    inputs = {"x": np.random.default_rng(0).uniform(-130, 130, (3, 32, 4, 3)).astype(np.float32)}
    checks = list(checked_steps(network, traces, inputs))
    assert [check.failure or check.offence for check in checks] == [None] * len(network.steps)


@pytest.mark.parametrize("fill_first", [True, False])
def test_a_program_of_the_network_gives_its_bits(fill_first: bool, tmp_path: Path) -> None:
    network = bordered_network(fill_first=fill_first)
    image = np.random.default_rng(0).uniform(-130, 130, (1, 32, 4, 3)).astype(np.float32)
    with Simulators(tmp_path) as simulators:
        found = simulators.answer(program_of(network), {"x": image})
    np.testing.assert_array_equal(found["y"], run_network(network, {"x": image})["y"])
