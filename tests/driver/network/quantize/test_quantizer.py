"""The integer network stays near the float one, and odd networks still quantize."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from kit.examples import examples
from kit.networks.random_networks import Builder, conv, dense, networks, samples_for, window
from tilefarm.errors import DataError, ModelError

from driver.network.graph import float_run
from driver.network.graph.columns import correlate_groups, correlate_phases
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import (
    Add,
    Clip,
    Concat,
    Conv2d,
    Dense,
    Graph,
    MaxPool2d,
    Reshape,
    Softmax,
)
from driver.network.integer.qir import (
    QAdd,
    QAffine,
    QAvgPool2d,
    QConv2d,
    QConvTranspose2d,
    QDense,
    QLookup,
    QProduct,
    QuantGraph,
    QuantOperator,
)
from driver.network.integer.reference import run_integer
from driver.network.quantize.calibrate import calibrate
from driver.network.quantize.options import Quantization
from driver.network.quantize.quantizer import quantize, quantize_with
from driver.network.rewrites.fold import fold

RNG = np.random.default_rng(11)


def names_of(graph: QuantGraph) -> list[str]:
    return [type(node.op).__name__ for node in graph.nodes]


def noise(graph: Graph, quantized: QuantGraph, data: dict[str, np.ndarray]) -> float:
    """Root mean square error over the spread of the float result."""
    exact, got = run_float(graph, data)["out0"], run_integer(quantized, data)["out0"]
    return float(np.sqrt(np.mean((exact - got) ** 2)) / (exact.std() + 1e-6))


@settings(max_examples=examples(25), deadline=None)
@given(networks())
def test_every_operator_is_as_near_as_its_integers_allow(case: tuple[Graph, int]) -> None:
    """Each node on the integers it really gets, against the float node on the same numbers."""
    graph = fold(case[0])
    data = samples_for(graph, case[1], count=8)
    quantized = quantize_with(graph, calibrate(graph, data))
    values = run_integer(quantized, data, keep=True)
    made = {node.output: node for node in quantized.nodes}
    for node in graph.nodes:
        integer = made[node.output]
        scale = quantized.tensors[node.output].scale
        if scale is None:
            continue
        reals = [real(quantized, values, name) for name in integer.inputs]
        exact = np.clip(float_run.apply(node.op, *reals) / scale, -128, 127)
        error = np.abs(values[node.output] - exact)
        assert (error <= allowed(integer.op, values[integer.inputs[0]]) + 0.01).all()


def real(graph: QuantGraph, values: dict[str, np.ndarray], name: str) -> np.ndarray:
    """The real numbers that an int8 or float32 tensor stands for."""
    scale = graph.tensors[name].scale
    return values[name] if scale is None else values[name].astype(np.float32) * np.float32(scale)


def allowed(op: QuantOperator, x: np.ndarray) -> np.ndarray:
    """The error in units of the result: its own rounding, and half a unit in every weight."""
    reach = np.abs(x.astype(np.float32))
    match op:
        case QConv2d():
            halves = np.full(op.weight.shape, 0.5, np.float32)
            inside = correlate_groups(reach, halves, op.window, op.groups) + 0.5
            return np.asarray(0.5 + inside / np.exp2(op.shift)[:, None, None])
        case QConvTranspose2d():
            halves = np.full(op.weight.shape, 0.5, np.float32)
            inside = correlate_phases(reach, halves, op.pad) + 0.5
            return np.asarray(0.5 + inside / np.exp2(op.shift)[:, None, None])
        case QDense():
            return np.asarray(0.5 + (0.5 * reach.sum(axis=1)[:, None] + 0.5) / np.exp2(op.shift))
        case QAffine():
            step = np.exp2(op.shift).reshape(-1, *(1,) * (x.ndim - 2))
            return np.asarray(0.5 + (0.5 * reach + 0.5) / step)
        case QAdd():
            return np.full(x.shape, 0.5 + 128 / 2**op.shift)
        case QProduct(shift=shift):
            return np.asarray(0.5 + 0.5 * reach / 2**shift)
        case QAvgPool2d() | QLookup():
            return np.array(0.5)
    return np.array(0.0)


def test_a_whole_small_network_is_close() -> None:
    b = Builder((1, 3, 8, 8))
    stem = b.put(Clip(lo=0.0, hi=math.inf), b.put(conv(RNG, 3, 16, window(3, pad=1)), "x"))
    branch = b.put(conv(RNG, 16, 16, window(3, pad=1)), stem)
    joined = b.put(Add(lo=0.0), branch, stem)
    pooled = b.put(MaxPool2d(window=window(2, stride=2)), joined)
    flat = b.put(Reshape(shape=(256,)), pooled)
    graph = fold(b.graph(b.put(dense(RNG, 256, 10), flat)))
    data = samples_for(graph, 1, count=64)
    quantized = quantize(graph, data)
    assert names_of(quantized) == [
        "Quantize",
        "QConv2d",
        "QConv2d",
        "QAdd",
        "QMaxPool2d",
        "QReshape",
        "QDense",
        "Dequantize",
    ]
    assert noise(graph, quantized, data) < 0.03


def test_relu_bounds_are_fused() -> None:
    b = Builder((1, 2, 4, 4))
    graph = fold(b.graph(b.put(Clip(lo=0.0, hi=6.0), b.put(conv(RNG, 2, 4, window(1)), "x"))))
    data = {"x": samples_for(graph, 0)["x"] * 50}
    (layer,) = [
        n.op
        for n in quantize(graph, data, Quantization(activations="symmetric")).nodes
        if isinstance(n.op, QConv2d)
    ]
    assert (layer.lo, layer.hi) == (0, 127)


def test_an_operand_is_quantized_once() -> None:
    b = Builder((1, 2, 4, 4))
    graph = b.graph(b.put(Add(), "x", "x"))
    quantized = quantize(graph, samples_for(graph, 0))
    assert names_of(quantized) == ["Quantize", "QAdd", "Dequantize"]
    (add,) = [n.op for n in quantized.nodes if isinstance(n.op, QAdd)]
    assert add.mul_a == add.mul_b


def test_softmax_may_stand_in_the_middle_and_on_images() -> None:
    b = Builder((2, 5, 1, 1))
    middle = b.put(Softmax(), "x")
    flat = b.put(Reshape(shape=(5,)), middle)
    graph = b.graph(middle, b.put(dense(RNG, 5, 3), flat))
    data = samples_for(graph, 4, count=10)
    quantized = quantize(graph, data)
    got, exact = run_integer(quantized, data), run_float(graph, data)
    assert got["out0"].shape == (10, 5, 1, 1)
    np.testing.assert_allclose(got["out0"], exact["out0"], atol=0.02)
    np.testing.assert_allclose(got["out1"], exact["out1"], atol=0.05)


def test_a_clip_alone_becomes_an_affine() -> None:
    b = Builder((1, 3, 2, 2))
    graph = b.graph(b.put(Clip(lo=-0.5, hi=0.5), "x"))
    quantized = quantize(graph, samples_for(graph, 0))
    assert any(isinstance(node.op, QAffine) for node in quantized.nodes)
    data = samples_for(graph, 0)
    np.testing.assert_allclose(
        run_integer(quantized, data)["out0"], run_float(graph, data)["out0"], atol=0.02
    )


@pytest.mark.parametrize("factor", [1e-38, 1e-20, 1e20])
def test_extreme_calibration_still_gives_a_network(factor: float) -> None:
    b = Builder((1, 2, 3, 3))
    joined = b.put(Add(), b.put(conv(RNG, 2, 2, window(1)), "x"), "x")
    graph = b.graph(b.put(MaxPool2d(window=window(2)), joined))
    data = {"x": (samples_for(graph, 0)["x"] * np.float32(factor)).astype(np.float32)}
    outputs = run_integer(quantize(graph, data), data)
    assert np.isfinite(outputs["out0"]).all()


def test_cancelling_branches_do_not_break_the_scales() -> None:
    """The sum is far smaller than its operands, so its own range would ask for gains above 127."""
    b = Builder((1, 1, 4, 4))
    w = np.ones((1, 1, 1, 1), np.float32)
    zero = np.zeros(1, np.float32)
    up = b.put(Conv2d(weight=w * 1000, bias=zero, window=window(1)), "x")
    down = b.put(Conv2d(weight=w * -999.9, bias=zero, window=window(1)), "x")
    graph = b.graph(b.put(Add(), up, down))
    data = samples_for(graph, 0)
    got = run_integer(quantize(graph, data), data)["out0"]
    assert np.abs(got - run_float(graph, data)["out0"]).max() < 1000 * 4 / 127


def test_weights_that_cancel_do_not_leave_int8() -> None:
    """The result is ten thousand times smaller than the weights would let it be."""
    b = Builder((1, 2))
    weight = np.array([[100.0, -99.99]], np.float32)
    graph = b.graph(b.put(Dense(weight=weight, bias=np.zeros(1, np.float32)), "x"))
    data = {"x": np.repeat(np.linspace(-1, 1, 21, dtype=np.float32)[:, None], 2, axis=1)}
    quantized = quantize(graph, data)
    (layer,) = [n.op for n in quantized.nodes if isinstance(n.op, QDense)]
    assert layer.weight.tolist() == [[127, -127]]
    assert np.abs(run_integer(quantized, data)["out0"]).max() < 0.1


def test_ranges_cover_every_tensor() -> None:
    b = Builder((1, 2))
    graph = b.graph(b.put(dense(RNG, 2, 3), "x"))
    data = np.array([[1.0, -3.0], [2.0, 0.5]], np.float32)
    ranges = calibrate(graph, data)
    assert ranges["x"] == 3.0
    assert ranges["t0"] == float(np.abs(run_float(graph, {"x": data})["out0"]).max())


def test_data_that_overflow_float32_are_refused() -> None:
    b = Builder((1, 1))
    weight = np.full((1, 1), 1e30, np.float32)
    graph = b.graph(b.put(Dense(weight=weight, bias=np.zeros(1, np.float32)), "x"))
    with pytest.raises(DataError, match="'t0' of net beyond float32"):
        quantize(graph, np.full((2, 1), 1e30, np.float32))


def test_data_of_zeros_alone_are_refused() -> None:
    """Scales for them would turn every other input into -128 or 127."""
    b = Builder((1, 2))
    graph = b.graph(b.put(dense(RNG, 2, 3), "x"))
    with pytest.raises(DataError, match="all 4 samples of input 'x' are zero") as caught:
        quantize(graph, np.zeros((4, 2), np.float32))
    assert "data like those that the network will see" in str(caught.value)


def concatenation(small: float, *, is_read: bool) -> tuple[QuantGraph, tuple[str, ...]]:
    """Operands that reach `small` and 10; what pools the small one may have another reader."""
    b = Builder((1, 16, 4, 4))
    first, large = (b.put(conv(RNG, 16, 16, window(1)), "x") for _ in range(2))
    pooled = b.put(MaxPool2d(window=window(3, pad=1)), first)
    joined = b.put(Concat(), pooled, "x", large)
    outputs = [b.put(conv(RNG, 48, 3, window(1)), joined)]
    outputs += [b.put(conv(RNG, 16, 3, window(1)), pooled)] if is_read else []
    graph = b.graph(*outputs)
    ranges = dict.fromkeys(graph.shapes, 10.0) | dict.fromkeys((first, pooled), small)
    return quantize_with(graph, ranges), (first, pooled, large, joined)


@pytest.mark.parametrize(("small", "is_read"), [(1.0, False), (3.0, True)])
def test_what_is_concatenated_has_one_scale(small: float, is_read: bool) -> None:
    """All operands are made at the larger scale."""
    quantized, names = concatenation(small, is_read=is_read)
    scales = {quantized.tensors[name].scale or 0.0 for name in names}
    assert max(scales) / min(scales) < 1 + 1e-6
    assert "QRescale" not in names_of(quantized)


def test_what_others_read_keeps_its_levels_beside_a_far_wider_operand() -> None:
    quantized, (first, pooled, _, joined) = concatenation(1.0, is_read=True)
    scales = [quantized.tensors[name].scale or 0.0 for name in (first, pooled, joined)]
    assert scales[0] == scales[1] < scales[2] / 8
    assert "QRescale" in names_of(quantized)


def test_an_operand_of_another_scale_is_rescaled() -> None:
    b = Builder((1, 3, 4, 4))
    doubled = b.put(Add(), "x", "x")
    graph = b.graph(b.put(Concat(), "x", doubled))
    data = samples_for(graph, 0)
    quantized = quantize(graph, data)
    assert names_of(quantized).count("QRescale") == 1
    assert noise(graph, quantized, data) < 0.02


def test_no_samples_are_refused() -> None:
    b = Builder((1, 2))
    graph = b.graph(b.put(dense(RNG, 2, 3), "x"))
    with pytest.raises(DataError, match="no samples"):
        quantize(graph, np.zeros((0, 2), np.float32))


def test_many_samples_run_in_parts_and_in_order() -> None:
    b = Builder((1, 2))
    graph = b.graph(b.put(dense(RNG, 2, 3), "x"))
    data = samples_for(graph, 0, count=150)
    quantized = quantize(graph, data)
    for outputs in (run_float(graph, data), run_integer(quantized, data)):
        assert outputs["out0"].shape == (150, 3)
    alone = run_integer(quantized, {"x": data["x"][149:]})["out0"]
    assert (run_integer(quantized, data)["out0"][149:] == alone).all()


def test_layers_too_wide_for_the_accumulator_are_all_listed() -> None:
    b = Builder((1, 140_000))
    wide = Dense(weight=np.ones((1, 140_000), np.float32), bias=np.zeros(1, np.float32))
    graph = b.graph(b.put(wide, "x"), b.put(wide, "x"))
    data = np.zeros((1, 140_000), np.float32)
    data[0, :2] = 1, -0.999  # the calibrated result is small, so the gains are as large as can be
    with pytest.raises(ModelError) as caught:
        quantize(graph, data)
    assert caught.value.what == (
        "n0 (Dense): its worst sum does not fit into the 32-bit accumulator; "
        "n1 (Dense): its worst sum does not fit into the 32-bit accumulator"
    )
