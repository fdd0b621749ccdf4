"""Float networks with fake quantization: integers say what they say, near the float network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from kit.examples import examples
from kit.networks.random_networks import Builder, conv, dense, networks, samples_for, window

from driver.network.graph.float_run import run_float
from driver.network.graph.grid import Grid
from driver.network.graph.ir import (
    Add,
    Clip,
    Concat,
    FakeQuantize,
    Graph,
    MaxPool2d,
    Reshape,
    ScaleSums,
    Softmax,
    Unary,
)
from driver.network.integer.qir import QConcat, QMaxPool2d, QReshape, QuantGraph, Real
from driver.network.integer.qlinear import (
    DequantizeLinear,
    QLinearBinary,
    QLinearConv2d,
    QLinearDense,
    QLinearLookup,
    QuantizeLinear,
)
from driver.network.integer.reference import run_integer
from driver.network.quantize.fake_quantization import with_fake_quantization
from driver.network.quantize.methods import MIN_MAX, CalibrationMethod
from driver.network.quantize.onnx_arithmetic import in_onnx_arithmetic

RNG = np.random.default_rng(11)


def kinds(graph: QuantGraph) -> list[type]:
    return [type(node.op) for node in graph.nodes]


@settings(max_examples=examples(25), deadline=None)
@given(networks())
def test_integers_are_the_rounded_floats(case: tuple[Graph, int]) -> None:
    graph, seed = case
    data = samples_for(graph, seed)
    rounded = with_fake_quantization(graph, data)
    exact, near = run_float(graph, data)["out0"], run_float(rounded, data)["out0"]
    found = run_integer(in_onnx_arithmetic(rounded), data)["out0"]
    spread = exact.std() + 1e-6
    # Where all that varies is a few steps of the result's grid, a share of it says nothing.
    step = (max(0.0, exact.max()) - min(0.0, exact.min())) / 255
    assert np.sqrt(np.mean((near - exact) ** 2)) < max(step, 0.2 * spread)
    # float32 sums of reals may round to another integer than exact ones do, though seldom
    assert np.sqrt(np.mean((found - near) ** 2)) / spread < 0.02


def small(clipped: float = 6.0) -> tuple[Graph, dict[str, np.ndarray]]:
    """Convolution, clip, its sum with another, a pool, both joined, and a softmax."""
    made = Builder((1, 3, 8, 8))
    first = made.put(replace(conv(RNG, 3, 8, window(pad=1)), lo=0.0, hi=clipped), "x")
    second = made.put(conv(RNG, 3, 8, window(1)), "x")
    total = made.put(Add(lo=0.0), first, second)
    half = made.put(Unary(function="sigmoid"), total)
    joined = made.put(Concat(), total, half)
    pooled = made.put(MaxPool2d(window=window(8)), joined)
    flat = made.put(Reshape(shape=(16,)), pooled)
    logits = made.put(dense(RNG, 16, 5), flat)
    graph = made.graph(made.put(Softmax(), logits))
    return graph, {"x": RNG.standard_normal((20, 3, 8, 8)).astype(np.float32)}


def test_every_kind_of_operator_has_its_form() -> None:
    graph, data = small()
    quantized = in_onnx_arithmetic(with_fake_quantization(graph, data))
    wanted = [QuantizeLinear, QLinearConv2d, QLinearConv2d, QLinearBinary, QLinearLookup, QConcat]
    assert kinds(quantized) == [
        *wanted,
        QMaxPool2d,
        QReshape,
        QLinearDense,
        DequantizeLinear,
        Real,
    ]
    first = quantized.nodes[1].op
    assert isinstance(first, QLinearConv2d)
    assert (first.to.zero, first.to.lo) == (0, 0)  # behind a ReLU there is nothing below 0
    assert np.abs(first.weight.reshape(8, -1)).max(axis=1).tolist() == [127] * 8
    joined = next(each for each in quantized.nodes if isinstance(each.op, QConcat))
    scales = {quantized.tensors[name].scale for name in (*joined.inputs, joined.output)}
    assert len(scales) == 1
    exact = run_float(graph, data)["out0"]
    assert np.abs(run_integer(quantized, data)["out0"] - exact).max() < 0.03


def test_what_the_user_keeps_stays_in_float() -> None:
    graph, data = small()
    (name,) = (node.name for node in graph.nodes if node.op is graph.nodes[1].op)
    quantized = in_onnx_arithmetic(with_fake_quantization(graph, data, keep_float=[name]))
    assert kinds(quantized).count(Real) == 2
    assert kinds(quantized).count(QLinearConv2d) == 1


def test_methods_narrow_ranges() -> None:
    graph, data = small()
    data["x"][0, 0, 0, 0] = 500
    usual, narrow = (
        next(node.op for node in with_fake_quantization(graph, data, method=method).nodes)
        for method in (MIN_MAX, CalibrationMethod(kind="percentile", percent=99.0))
    )
    assert isinstance(usual, FakeQuantize)
    assert isinstance(narrow, FakeQuantize)
    assert usual.grid is not None
    assert narrow.grid is not None
    assert narrow.grid.scale < usual.grid.scale / 50


def test_dead_channels_and_large_biases_have_steps_that_hold_them() -> None:
    made = Builder((1, 2))
    layer = dense(RNG, 2, 3)
    layer.weight[1:] = 0
    layer.bias[:] = [0.5, 3e4, 0]
    graph = made.graph(made.put(replace(layer, lo=-1e5), "x"))
    data = {"x": RNG.standard_normal((8, 2)).astype(np.float32) * np.float32(1e-6)}
    exact = run_float(graph, data)["out0"]
    found = run_integer(in_onnx_arithmetic(with_fake_quantization(graph, data)), data)["out0"]
    assert np.abs(found - exact).max() < 3e4 / 255


@pytest.mark.parametrize(
    ("of_data", "of_weights"), [(1, 1e-42), (1e-44, 1), (1e30, 1e-45), (1e-30, 1e-30)]
)
def test_what_float32_has_no_digits_for_is_zero(of_data: float, of_weights: float) -> None:
    """Steps of 0 would make NaN, which is another integer on every machine."""
    made = Builder((1, 2))
    layer = dense(RNG, 2, 3)
    layer.weight[:] = np.sign(layer.weight) * np.float32(of_weights)
    layer.bias[:] = 0
    graph = made.graph(made.put(replace(layer, lo=-np.inf, hi=np.inf), "x"))
    data = {"x": RNG.standard_normal((8, 2)).astype(np.float32) * np.float32(of_data)}
    rounded = with_fake_quantization(graph, data)
    assert all(each.op.scale.min() > 0 for each in rounded.nodes if isinstance(each.op, ScaleSums))
    assert not run_integer(in_onnx_arithmetic(rounded), data)["out0"].any()


def test_inputs_of_integers_are_on_their_own_grid() -> None:
    made = Builder((1, 2))
    graph = made.graph(made.put(Clip(lo=0.0, hi=1.0), made.put(dense(RNG, 2, 3), "x")))
    grid = Grid(0.25, 100, "uint8")
    graph = replace(graph, inputs=(replace(graph.inputs[0], grid=grid),))
    data = {"x": grid.reals(RNG.integers(0, 256, (9, 2)))}
    quantized = in_onnx_arithmetic(with_fake_quantization(graph, data))
    first = quantized.nodes[0].op
    assert isinstance(first, QuantizeLinear)
    assert first.grid == grid
    assert kinds(quantized).count(QuantizeLinear) == 1


@pytest.mark.parametrize("values", [(0.0, 0.0), (0.0, 3.0), (-2.0, -1.0), (-1e-30, 1e30)])
def test_zero_is_on_every_grid(values: tuple[float, float]) -> None:
    made = Builder((1, 2))
    graph = made.graph(made.put(Unary(function="sigmoid"), made.put(dense(RNG, 2, 3), "x")))
    data = {"x": np.array([[values[0], values[1]], [1e-3, 0]], np.float32)}
    for node in with_fake_quantization(graph, data).nodes:
        if isinstance(node.op, FakeQuantize) and node.op.grid is not None:
            assert node.op.grid.lo <= 0 <= node.op.grid.hi
            assert 0 < node.op.grid.scale < np.inf
