"""Sample inputs are the same every time and use the range of the results."""

from __future__ import annotations

import numpy as np
import pytest
from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec, Workload

from driver.network.integer.reference import run_workload
from driver.network.integer.samples import sample_inputs


def layer(blocks: int, kernel: int) -> Workload:
    lanes = (2, 1, 16)
    return Workload(
        "conv2d",
        (
            TensorSpec("data", (1, blocks, 6, 6, 1, 16), DType.INT8),
            TensorSpec("weight", (2, blocks, kernel, kernel, 16, 16), DType.INT8),
            TensorSpec("bias", (2, 1, 16, 16), DType.INT8),
            TensorSpec("unit", (1, 16), DType.INT8),
            TensorSpec("shift", lanes, DType.INT32),
        ),
        (TensorSpec("out", (1, 2, 7 - kernel, 7 - kernel, 1, 16), DType.INT8),),
        (
            ("stride", (1, 1)),
            ("pad", (0, 0, 0, 0)),
            ("dilation", (1, 1)),
            ("lo", -128),
            ("hi", 127),
        ),
    )


@pytest.mark.parametrize(("blocks", "kernel"), [(1, 1), (1, 3), (4, 3), (32, 1), (16, 5)])
def test_results_of_a_layer_are_not_saturated(blocks: int, kernel: int) -> None:
    w = layer(blocks, kernel)
    out = run_workload(w, sample_inputs(w, seed=0))["out"].astype(int)
    assert ((out > -128) & (out < 127)).mean() > 0.6
    assert out.std() > 25


def test_samples_depend_on_the_seed_and_the_workload_alone() -> None:
    one, again = (sample_inputs(layer(2, 3), seed=4) for _ in range(2))
    other = sample_inputs(layer(2, 3), seed=5)
    assert all((one[name] == again[name]).all() for name in one)
    assert (one["data"] != other["data"]).any()
    assert one["data"].min() == -128
    assert one["data"].max() == 127


def test_parameters_have_their_types_and_are_equal_over_the_batch() -> None:
    w = layer(1, 1)
    for spec in w.inputs:
        values = sample_inputs(w, seed=0)[spec.name]
        assert (values.shape, values.dtype) == (spec.shape, np.dtype(spec.dtype.value))
    shift = sample_inputs(w, seed=0)["shift"]
    assert len(np.unique(shift)) > 1
    assert shift.min() >= 0
