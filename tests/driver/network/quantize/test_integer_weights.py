"""Weights that were whole numbers before: found, and kept where that costs less than it saves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks.random_networks import Builder, window

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Clip, Conv2d, FloatArray, Graph
from driver.network.integer.qir import QConv2d, QuantGraph
from driver.network.integer.reference import run_integer
from driver.network.quantize.integer_weights import exact_out_scales, read_by_layers, unit_of
from driver.network.quantize.quantizer import quantize, quantize_with

RNG = np.random.default_rng(3)
X = {"x": RNG.uniform(-1, 1, (4, 16, 6, 6)).astype(np.float32)}


@given(st.floats(1e-5, 10), st.integers(-127, 0), st.integers(1, 127))
def test_the_unit_of_whole_numbers(unit: float, lowest: int, highest: int) -> None:
    drawn = np.random.default_rng(0).integers(lowest, highest + 1, 200)
    whole = np.append(drawn, [lowest, highest, highest - 1])
    found = unit_of(np.asarray(whole * unit, np.float32))
    step = np.gcd.reduce(np.abs(whole))
    assert found == pytest.approx(unit * step, rel=1e-5)


def test_other_weights_have_no_unit() -> None:
    assert unit_of(RNG.standard_normal((8, 16, 3, 3)).astype(np.float32)) is None
    assert unit_of(np.array([0.0, 1.0, np.sqrt(2)], np.float32)) is None
    assert unit_of(np.zeros(5, np.float32)) is None


def test_the_exact_scale_is_the_next_power() -> None:
    weight = np.array([[3, -127, 64]], np.float32) * np.float32(0.01)
    assert exact_out_scales(weight, 0.5, 0.03) == pytest.approx((0.04,))
    assert exact_out_scales(weight, 0.5, 0.001) == (), "finer than a shift of 0"


def two_layers(first: FloatArray) -> Graph:
    builder = Builder((1, 16, 6, 6))
    zeros = np.zeros(16, np.float32)
    second = RNG.standard_normal((16, 16, 1, 1)).astype(np.float32)
    hidden = builder.put(Conv2d(weight=first, bias=zeros, window=window(3, pad=1)), "x")
    hidden = builder.put(Clip(lo=-1.5, hi=1.5), hidden)
    graph = builder.graph(builder.put(Conv2d(weight=second, bias=zeros, window=window(1)), hidden))
    conv, clip, last = (node.output for node in graph.nodes)
    return replace(graph, ranges={"x": 1.0, conv: 1.5, clip: 1.5, last: 16.0})


def test_weights_of_one_unit_are_kept_and_the_results_are_nearer() -> None:
    """Most weights are small: rounding them again is what costs."""
    whole = np.rint(RNG.laplace(0, 9, (16, 16, 3, 3))).clip(-127, 127)
    graph = two_layers(np.asarray(whole * 0.003, np.float32))
    assert read_by_layers(graph) >= {"x", graph.nodes[0].output}
    assert graph.outputs[0].tensor not in read_by_layers(graph)
    exact = run_float(graph, X)["out0"]
    kept = quantize(graph, None)
    again = quantize_with(replace(graph, ranges={}), graph.ranges)
    assert weights_of(kept) == pytest.approx(whole * 0.003, abs=1e-5)
    assert np.abs(weights_of(again) - whole * 0.003).max() > 1e-3
    errors = [np.square(run_integer(q, X)["out0"] - exact).mean() for q in (kept, again)]
    assert errors[0] < 0.95 * errors[1]


def weights_of(graph: QuantGraph) -> FloatArray:
    """The reals that the weights of the first layer stand for."""
    node = next(node for node in graph.nodes if isinstance(node.op, QConv2d))
    assert isinstance(node.op, QConv2d)
    scales = [graph.tensors[name].scale for name in (node.output, node.inputs[0])]
    assert scales[0] is not None
    assert scales[1] is not None
    gain = scales[0] / scales[1] * np.exp2(-node.op.shift.astype(np.float64))
    return np.asarray(node.op.weight * gain[:, None, None, None], np.float32)
