"""Layers with weights of 16 bits on simulators of both designs, and with other blocks: all bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from kit.built import needs_simulator
from kit.kernels.nests import conv2d, dense, inputs_of, with_epilogue
from kit.kernels.numpy_operators import run as in_numpy
from kit.networks.simulated import PAIRS
from numpy.typing import NDArray
from tilefarm.target import TARGETS, Target
from tilefarm.workload import Workload

from compile_worker.ir.interpret import interpret
from compile_worker.lowering import lower
from compile_worker.schedule import replay
from compile_worker.space import generate
from compile_worker.te import nest_of
from driver.benchmarks.tuning import Tuned, TuningTask, tune_workload
from driver.benchmarks.workloads import workloads
from driver.network.integer.reference import run_workload
from driver.network.integer.samples import sample_inputs

from .sampled_schedules import assert_bits_of_numpy

SIM = TARGETS["sim"]
WIDE = (
    *("conv wide", "conv wide 1x1", "dense wide", "dense wide data"),
    *("conv wide activations", "conv wide depthwise", "conv all wide"),
    *("conv wide depthwise weights", "conv all wide depthwise", "grouped wide"),
)

QUICK = {"conv wide", "conv wide activations", "conv all wide depthwise"}
"""Also tried on other designs in the fast suite; the others take half a minute."""


@needs_simulator
@pytest.mark.parametrize(
    ("target", "name"),
    [
        pytest.param(target, name, id=f"{target.name}-{name}", marks=marks)
        for target in (SIM, TARGETS["sim-pynq-z1"], PAIRS)
        for name in WIDE
        for marks in [() if target is SIM or name in QUICK else pytest.mark.slow]
    ],
)
def test_random_schedules_give_the_bits_of_numpy(target: Target, name: str) -> None:
    assert_bits_of_numpy(name, target)


@needs_simulator
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n == "conv wide" else pytest.mark.slow) for n in WIDE],
)
def test_a_search_of_few_trials_finds_a_good_schedule(name: str) -> None:
    found = tune_workload(TuningTask(workload=workloads(SIM)[name], target=SIM, trials=8, seed=0))
    assert isinstance(found, Tuned)
    assert found.failed == 0
    assert found.bound <= found.measured.cycles < 1.5 * found.bound


ENDS = {
    "most": (127, 127, 127),
    "least": (-128, 0, -128),
    "mixed": (-128, -128, 127),
    "opposed": (127, -128, -128),
}


@pytest.mark.parametrize(
    ("high", "low", "data"),
    [
        pytest.param(
            *values, id=name, marks=() if name in ("most", "opposed") else pytest.mark.slow
        )
        for name, values in ENDS.items()
    ],
)
def test_the_ends_of_what_16_bits_hold(high: int, low: int, data: int) -> None:
    """The sums are up to 2^30: 144 products of 2^22, and a bias in units of 256."""
    several = [conv2d(1, 2, 4, 4, planes=2), dense(9, 2, planes=2)]
    several += [conv2d(2, 2, 4, 4, groups=2, planes=2), conv2d(4, 4, 4, 4, groups=2, planes=2)]
    several += [conv2d(1, 2, 4, 4, data_planes=2, out_planes=2), dense(9, 2, data_planes=2)]
    for layer in several:
        work = with_epilogue(layer, bias=2, shift="lanes")
        arrays = inputs_of(work)
        wide, narrow = ("weight", "data") if work.planes > 1 else ("data", "weight")
        arrays[wide][:, 0], arrays[wide][:, 1] = high, low
        arrays[narrow][:] = data
        arrays["shift"][:] = 23 - 8 * (work.out_planes - 1)
        wanted = in_numpy(work, arrays)
        assert len(np.unique(wanted)) > 1
        _is_right(work, arrays, wanted)


def test_samples_use_the_range_of_results_whatever_the_shift() -> None:
    for name in WIDE:
        for target in (SIM, TARGETS["sim-pynq-z1"]):
            work = workloads(target)[name]
            arrays = sample_inputs(work, 0, target.limits.max_shift)
            assert arrays["shift"].max() <= target.limits.max_shift
            out = run_workload(work, arrays)["out"].astype(int)
            values = out[:, 0] * 256 + out[:, 1] if work.out_planes > 1 else out
            assert len(np.unique(values)) > 80
            assert (np.abs(values) < work.attr_int("hi")).mean() > 0.5


def _is_right(work: Workload, arrays: Mapping[str, NDArray[Any]], wanted: NDArray[Any]) -> None:
    np.testing.assert_array_equal(run_workload(work, arrays)["out"], wanted)
    made, nest = generate(work, SIM), nest_of(work, SIM)
    func = lower(replay(made.trace(dict(made.space.default)), nest, SIM), SIM)
    given = {p.name: arrays[p.name].reshape(p.shape) for p in func.params if p.name in arrays}
    np.testing.assert_array_equal(interpret(func, given)["out"].reshape(wanted.shape), wanted)
