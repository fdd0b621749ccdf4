"""Quantized ONNX models: what they say about ranges is kept, what contradicts itself is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import answers, model, node, saved
from kit.networks.qdq import layer_weights, pair, two_convolutions
from onnx import helper
from tilefarm.errors import DataError, ModelError
from tilefarm.target import TARGETS

from driver.network import import_model
from driver.network.graph.float_run import run_float
from driver.network.graph.grid import Grid
from driver.network.graph.ir import Conv2d
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.options import Quantization
from driver.network.quantize.quantizer import quantize

FLOAT8 = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.FLOAT8E4M3FN)
X = (np.random.default_rng(8).standard_normal((6, 3, 8, 8)) * 0.8).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("per_channel", [True, False])
def test_integers_are_near_what_onnx_says(
    per_channel: bool, dtype: type[np.generic], tmp_path: Path
) -> None:
    made = two_convolutions(layer_weights(per_channel=per_channel, dtype=dtype))
    graph = import_model(saved(made, tmp_path))
    assert [type(n.op) for n in graph.nodes] == [Conv2d, Conv2d]
    exact, floats = answers(made, X), run_float(graph, {"x": X})["y"]
    quantized = quantize(graph, None)
    integers = run_integer(quantized, {"x": X})["y"]
    assert np.sqrt(np.mean((floats - exact) ** 2)) < 0.04 * exact.std()
    assert np.sqrt(np.mean((integers - exact) ** 2)) < 0.05 * exact.std()
    one = {"x": X[:1]}
    network = partition_network(quantized, TARGETS["sim"])
    assert run_network(network, one)["y"].tobytes() == integers[:1].tobytes()


def test_a_grid_that_begins_at_zero_is_a_relu(tmp_path: Path) -> None:
    graph = import_model(saved(two_convolutions(layer_weights()), tmp_path))
    first, second = (n.op for n in graph.nodes)
    assert isinstance(first, Conv2d)
    assert isinstance(second, Conv2d)
    assert [first.lo, first.hi] == pytest.approx([0.0, 255 * 0.03])
    assert [second.lo, second.hi] == pytest.approx([-131 * 0.05, 124 * 0.05])


def test_an_input_is_rounded_to_the_very_integers_of_the_model(tmp_path: Path) -> None:
    """Its own step and zero point; what is beyond the ends becomes an end."""
    graph = import_model(saved(two_convolutions(layer_weights()), tmp_path))
    grid = Grid(float(np.float32(0.02)), 120, "uint8")
    assert graph.inputs[0].rounding == grid
    x = np.concatenate([X, 9 * X])
    stored = run_integer(quantize(graph, None), {"x": x}, keep=True)["x.centered"]
    assert (stored == grid.integers(x).astype(int) - 128).all()
    assert {int(stored.min()), int(stored.max())} == {-128, 127}


def test_an_input_that_is_rounded_in_two_ways_keeps_its_reals(tmp_path: Path) -> None:
    nodes = [
        *pair("x", "x", "x.r"),
        *pair("x", "h", "h.r"),
        node("Conv", ["x.r", "k"], "c"),
        node("Conv", ["h.r", "k"], "d"),
        node("Add", ["c", "d"], "s"),
        *pair("s", "y", "y"),
    ]
    weights = layer_weights() | {"k": np.ones((2, 3, 1, 1), np.float32)}
    graph = import_model(saved(model(nodes, weights, x=(1, 3, 8, 8)), tmp_path))
    assert graph.inputs[0].rounding is None


def test_given_ranges_become_the_scales(tmp_path: Path) -> None:
    graph = import_model(saved(two_convolutions(layer_weights()), tmp_path))
    quantized = quantize(graph, None, Quantization(activations="symmetric"))
    scales = [t.scale for t in quantized.tensors.values() if t.scale is not None]
    assert scales == pytest.approx([0.02 * 135 / 127, 0.03 * 255 / 127, 0.05 * 131 / 128])
    assert graph.ranges == pytest.approx(
        {"x": 0.02 * 135, "h.r.q": 0.03 * 255, "y.q": 0.05 * 131 * 127 / 128}
    )


def test_what_no_pair_says_comes_from_data(tmp_path: Path) -> None:
    nodes = [*pair("x", "x", "x.r"), node("Conv", ["x.r", "k"], "y")]
    weights = layer_weights() | {"k": np.ones((2, 3, 1, 1), np.float32)}
    graph = import_model(saved(model(nodes, weights, x=(1, 3, 8, 8)), tmp_path))
    with pytest.raises(DataError, match=r"needs --calibrate DATA\.npz: it .* 1 tensor: y"):
        quantize(graph, None)
    assert quantize(graph, X).tensors["y"].scale == pytest.approx(
        float(np.abs(run_float(graph, {"x": X})["y"]).max()) / 127
    )


def test_pairs_around_what_only_moves_values(tmp_path: Path) -> None:
    """Integers may be pooled and reshaped between the two nodes of a pair."""
    grid = ["h.scale", "h.zero"]
    nodes = [
        *pair("x", "x", "x.r"),
        node("Conv", ["x.r", "k"], "c"),
        node("QuantizeLinear", ["c", *grid], "q"),
        node("MaxPool", ["q"], "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["p"], "f"),
        node("DequantizeLinear", ["f", *grid], "y"),
    ]
    weights = layer_weights() | {"k": np.ones((2, 3, 1, 1), np.float32)}
    graph = import_model(saved(model(nodes, weights, x=(1, 3, 8, 8)), tmp_path))
    integers = run_integer(quantize(graph, None), {"x": X})["y"]
    floats = run_float(graph, {"x": X})["y"]
    assert floats.min() >= 0
    assert np.abs(integers - floats).max() < 0.1


def test_a_relu_that_only_the_grid_says_is_kept_behind_a_pool(tmp_path: Path) -> None:
    nodes = [
        *pair("x", "x", "x.r"),
        node("Conv", ["x.r", "k"], "c"),
        *pair("c", "y", "c.r"),
        node("MaxPool", ["c.r"], "p", kernel_shape=[1, 1]),
        *pair("p", "h", "h.r"),
        node("HardSwish", ["h.r"], "s"),
        *pair("s", "h", "y"),
    ]
    weights = layer_weights() | {"k": np.ones((2, 3, 1, 1), np.float32)}
    graph = import_model(saved(model(nodes, weights, x=(1, 3, 8, 8), opset=19), tmp_path))
    assert run_float(graph, {"x": X})["y"].min() == 0
    assert run_integer(quantize(graph, None), {"x": X})["y"].min() == 0


BAD: list[tuple[dict[str, Any], str]] = [
    ({"h.scale": np.float32(0)}, "h.r.q_n (QuantizeLinear): scale 'h.scale' is 0"),
    ({"h.scale": np.float32(-1)}, "h.r.q_n (QuantizeLinear): scale 'h.scale' is -1"),
    ({"h.scale": np.float32(np.nan)}, "h.r.q_n (QuantizeLinear): scale 'h.scale' contains NaN"),
    ({"h.scale": np.float32(np.inf)}, "scale 'h.scale' contains an infinity"),
    ({"w.scale": np.full(20, np.inf, np.float32)}, "scale 'w.scale' is not finite"),
    ({"h.scale": np.ones(3, np.float32)}, "[3] do not fit axis 1 of [1, 20, 8, 8]"),
    ({"h.zero": np.zeros(2, np.int8)}, "h.r.q_n (QuantizeLinear): 2 zero points for 1 scales"),
    ({"h.zero": np.int32(0)}, "quantizes to int32; only integers of up to 16 bits are supported"),
    ({"h.zero": np.float32(0)}, "quantizes to float32; only integers of up to 16 bits"),
    ({"h.zero": np.zeros((), FLOAT8)}, "quantizes to float8_e4m3fn; only"),
    ({"w.scale": np.zeros(20, np.float32)}, "scale 'w.scale' is 0; it must be positive"),
    ({"w.scale": np.ones(7, np.float32), "w.zero": np.int8(0)}, "[7] do not fit axis 0"),
    ({"w.zero": np.zeros(2, np.int8)}, "2 zero points for 20 scales"),
    ({"w": np.zeros((20, 3, 3, 3), np.float32)}, "its values are float32; only integers"),
    ({"w": np.zeros((20, 3, 3, 3), FLOAT8)}, "its values are float8_e4m3fn; only"),
    ({"w.zero": np.float32(0)}, "its zero point is float32, not an integer of up to 32 bits"),
]


@pytest.mark.parametrize("scale", ["h.scale", "w.scale"])
def test_a_missing_scale_is_named(scale: str, tmp_path: Path) -> None:
    weights = {name: values for name, values in layer_weights().items() if name != scale}
    with pytest.raises(ModelError) as caught:
        import_model(saved(two_convolutions(weights), tmp_path))
    assert f"'{scale}'" in caught.value.what
    assert caught.value.hint


@pytest.mark.parametrize(("change", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_constants_are_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        import_model(saved(two_convolutions(layer_weights() | change), tmp_path))
    assert said in str(caught.value)


def test_every_reason_is_listed(tmp_path: Path) -> None:
    grid = ["x.scale", "x.zero"]
    nodes = [
        node("QuantizeLinear", ["x", *grid], "q"),
        node("DequantizeLinear", ["q", "h.scale", "x.zero"], "mismatch"),
        node("Relu", ["q"], "relu"),
        node("DequantizeLinear", ["x", *grid], "alone"),
        node("DequantizeLinear", ["w", "w.scale", "w.zero"], "w.r", axis=0, block_size=2),
        node("Concat", ["mismatch", "relu", "alone"], "y", axis=1),
        node("Conv", ["x", "w.r"], "z"),
        node("Add", ["y", "z"], "end"),
    ]
    made = model(nodes, layer_weights(), x=(1, 3, 8, 8), out="end", opset=21)
    with pytest.raises(ModelError) as caught:
        import_model(saved(made, tmp_path))
    for said in (
        "relu_n (Relu): reads quantized values; put DequantizeLinear before it",
        "alone_n (DequantizeLinear): no QuantizeLinear stands before its input 0",
        "w.r_n (DequantizeLinear): cannot be computed at import: scales or zero points [20] do not"
        " fit axis 0 of [20, 3, 3, 3] in blocks of 2",
    ):
        assert said in str(caught.value)


def test_scales_for_each_channel_or_block_of_an_activation(tmp_path: Path) -> None:
    """They come back out where they went in; what is clipped between is each channel's own."""
    nodes = [
        node("QuantizeLinear", ["x", "c.scale", "c.zero"], "q", axis=1),
        node("DequantizeLinear", ["q", "c.scale", "c.zero"], "r", axis=1),
        node("QuantizeLinear", ["r", "b.scale"], "s", axis=2, block_size=4, output_dtype=3),
        node("DequantizeLinear", ["s", "b.scale"], "y", axis=2, block_size=4),
    ]
    scales = np.array([0.002, 0.05, 0.01], np.float32)
    blocks = np.full((1, 3, 2, 8), 0.1, np.float32) * np.array([[1], [2]], np.float32)
    weights: dict[str, Any] = {
        "c.scale": scales,
        "c.zero": np.array([0, 3, 250], np.uint8),
        "b.scale": blocks,
    }
    made = model(nodes, weights, x=(1, 3, 8, 8), opset=21)
    graph = import_model(saved(made, tmp_path))
    found = run_float(graph, {"x": X})["y"]
    lowest = (np.array([0, -3, -250]) * scales)[:, None, None]
    highest = (np.array([255, 252, 5]) * scales)[:, None, None]
    assert found == pytest.approx(np.clip(X, lowest, highest), abs=1e-5)


def test_a_pair_whose_ends_differ_means_other_reals(tmp_path: Path) -> None:
    nodes = [
        node("QuantizeLinear", ["x", "x.scale", "x.zero"], "q"),
        node("DequantizeLinear", ["q", "h.scale", "y.zero"], "y"),
    ]
    weights = layer_weights() | {"y.zero": np.array(100, np.uint8)}
    graph = import_model(saved(model(nodes, weights, x=(1, 3, 8, 8)), tmp_path))
    assert run_float(graph, {"x": X})["y"] == pytest.approx(X * 1.5 + 20 * 0.03, abs=1e-5)


@pytest.mark.parametrize("taken", ["INT16", "UINT4"])
def test_integers_at_both_ends(taken: str, tmp_path: Path) -> None:
    """The network has the reals in between; its ends say how they were integers."""
    number = onnx.TensorProto.DataType.Value(taken)
    dtype = helper.tensor_dtype_to_np_dtype(number)
    nodes = [
        node("DequantizeLinear", ["x", "x.scale", "i.zero"], "r"),
        node("Conv", ["r", "k"], "c"),
        node("QuantizeLinear", ["c", "h.scale", "h.zero"], "y"),
    ]
    weights = layer_weights() | {"k": np.ones((2, 3, 1, 1), np.float32)}
    made = model(nodes, weights | {"i.zero": np.array(5, dtype)}, x=(1, 3, 8, 8), opset=21)
    made.graph.input[0].type.tensor_type.elem_type = number
    graph = import_model(saved(made, tmp_path))
    (given,), (result,) = graph.inputs, graph.outputs
    assert given.grid == Grid(float(np.float32(0.02)), 5, taken.lower())
    assert result.grid == Grid(float(np.float32(0.03)), -128, "int8")
    assert [type(n.op) for n in graph.nodes] == [Conv2d]
    integers = np.arange(192).reshape(1, 3, 8, 8) % 16
    reals = run_float(graph, {"x": given.grid.reals(integers)})["y"]
    exact = np.clip(np.rint((integers - 5).sum(axis=1) * 0.02 / 0.03) - 128, -128, 127)
    assert (result.grid.integers(reals) == exact[:, None]).all()


@pytest.mark.parametrize("twice", [True, False])
def test_an_input_of_integers_that_is_read_in_several_ways(twice: bool, tmp_path: Path) -> None:
    nodes = [
        node("DequantizeLinear", ["x", "x.scale", "x.zero"], "one"),
        *([node("DequantizeLinear", ["x", "h.scale", "x.zero"], "two")] if twice else []),
        node("Sub", ["one", "two" if twice else "one"], "d"),
        node("MaxPool", ["x"], "p", kernel_shape=[1, 1]),
        node("Cast", ["p"], "f", to=1),
        node("Add", ["d", "f"], "y"),
    ]
    made = model(nodes, layer_weights(), x=(1, 3, 8, 8))
    made.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    graph = import_model(saved(made, tmp_path))
    assert graph.inputs[0].grid == Grid(1.0, 0, "uint8")
    assert graph.ranges["x"] == 255
    x = np.arange(192).reshape(1, 3, 8, 8).astype(np.float32)
    exact = (x - 120) * (0.02 - (0.03 if twice else 0.02)) + x
    assert run_float(graph, {"x": x})["y"] == pytest.approx(exact, abs=1e-4)
