"""Operators on quantized values are the same network as pairs around float operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.networks.onnx_models import model, node, saved
from kit.networks.qdq import layer_weights, two_convolutions, two_qlinear_convolutions
from onnx import helper
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.graph.float_run import apply, run_float
from driver.network.graph.ir import Add, AvgPool2d, Clip, Conv2d, Dense
from driver.network.integer.reference import run_integer
from driver.network.quantize.quantizer import quantize

X = (np.random.default_rng(8).standard_normal((6, 3, 8, 8)) * 0.8).astype(np.float32)
GRIDS: dict[str, Any] = {
    "g.scale": np.array(0.02, np.float32),
    "g.zero": np.array(120, np.uint8),
    "o.scale": np.array(0.05, np.float32),
    "o.zero": np.array(0, np.uint8),
}
G, OUT = ["g.scale", "g.zero"], ["o.scale", "o.zero"]


@pytest.mark.parametrize("per_channel", [True, False])
def test_qlinear_conv_is_the_pairs_around_conv(per_channel: bool, tmp_path: Path) -> None:
    weights = layer_weights(per_channel=per_channel)
    pairs = import_model(saved(two_convolutions(weights), tmp_path, "pairs.onnx"))
    integers = import_model(saved(two_qlinear_convolutions(weights), tmp_path, "integers.onnx"))
    assert sorted(pairs.ranges.values()) == sorted(integers.ranges.values())
    expected = run_integer(quantize(pairs, None), {"x": X})["y"]
    assert run_integer(quantize(integers, None), {"x": X})["y"].tobytes() == expected.tobytes()


def test_a_bias_must_be_of_integers_and_scales_those_made(tmp_path: Path) -> None:
    weights = layer_weights() | {"b": np.zeros(20, np.float32), "v.scale": np.array(0, np.float32)}
    with pytest.raises(ModelError) as caught:
        import_model(saved(two_qlinear_convolutions(weights), tmp_path))
    assert "r_n (QLinearConv): bias 'b' is float32, not int32" in str(caught.value)


BAD: list[tuple[dict[str, Any], str]] = [
    (
        {"x.scale": np.float32(0), "v.scale": np.float32(-1), "y.scale": np.float32(np.nan)},
        "scale 'v.scale' is -1; it must be positive; scale 'y.scale' contains NaN",
    ),
    ({"w.scale": np.full(20, np.inf, np.float32)}, "scale 'w.scale' contains an infinity"),
    (
        {"w.zero": np.full(20, 300, np.int16)},
        "r_n (QLinearConv): its zero point 300 is outside int8, -128 to 127",
    ),
    (
        {"w.zero": np.zeros(20, np.uint8)},
        "its zero point is uint8, and its values are int8; give both one type",
    ),
    (
        {"w.scale": np.zeros(20, np.float32), "h.scale": np.float32(0)},
        "r_n (QLinearConv): scale 'w.scale' is 0; it must be positive; scale 'h.scale' is 0",
    ),
]


@pytest.mark.parametrize("keeps_integers", [False, True])
@pytest.mark.parametrize(("change", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_scales_and_zero_points_are_one_error(
    change: dict[str, Any], said: str, keeps_integers: bool, tmp_path: Path
) -> None:
    made = two_qlinear_convolutions(layer_weights() | change)
    with pytest.raises(ModelError) as caught:
        import_model(saved(made, tmp_path), keeps_integers=keeps_integers)
    assert said in str(caught.value)


@pytest.mark.parametrize("index", [1, 4, 6])
def test_missing_scales_are_named(index: int, tmp_path: Path) -> None:
    made = two_qlinear_convolutions(layer_weights())
    made.graph.node[1].input[index] = ""
    with pytest.raises(ModelError, match=r"r_n \(QLinearConv\): .*(missing|input)"):
        import_model(saved(made, tmp_path), keeps_integers=True)


def test_what_is_read_on_another_grid_than_it_was_made_on(tmp_path: Path) -> None:
    """The second convolution reads the integers of the first with the scale of its own result."""
    made = two_qlinear_convolutions(layer_weights())
    made.graph.node[2].input[1] = "y.scale"
    usual = import_model(saved(two_qlinear_convolutions(layer_weights()), tmp_path, "usual.onnx"))
    other = import_model(saved(made, tmp_path))
    hidden = usual.nodes[0].output
    seen: dict[str, Any] = {}
    run_float(usual, {"x": X}, observe=lambda name, values: seen.update({name: values}))
    second = usual.nodes[-1].op
    assert isinstance(second, Conv2d)
    wanted = apply(second, (seen[hidden] * np.float32(0.05 / 0.03)))
    assert run_float(other, {"x": X})["y"] == pytest.approx(wanted, abs=1e-4)


def test_dense_layers_of_integers(tmp_path: Path) -> None:
    """QLinearMatMul with a scale for each column, and QGemm of ONNX Runtime."""
    rng = np.random.default_rng(3)
    first = rng.integers(-127, 128, (192, 4)).astype(np.int8)
    second = rng.integers(-127, 128, (2, 4)).astype(np.int8)
    bias = np.array([300, -200], np.int32)
    weights: dict[str, Any] = GRIDS | {
        "a": first,
        "a.scale": np.linspace(0.0005, 0.002, 4).astype(np.float32),
        "a.zero": np.zeros(4, np.int8),
        "b": second,
        "b.scale": np.float32(0.01),
        "b.zero": np.int8(0),
        "c": bias,
    }
    nodes = [
        node("QuantizeLinear", ["x", *G], "q"),
        node("Flatten", ["q"], "f"),
        node("QLinearMatMul", ["f", *G, "a", "a.scale", "a.zero", *OUT], "m"),
        node("QGemm", ["m", *OUT, "b", "b.scale", "b.zero", "c", *G], "n", transB=1),
        node("DequantizeLinear", ["n", *G], "y"),
    ]
    nodes[3].domain = "com.microsoft"
    graph = import_model(saved(with_microsoft(model(nodes, weights, x=(1, 3, 8, 8))), tmp_path))
    assert [type(n.op) for n in graph.nodes[-2:]] == [Dense, Dense]
    hidden = np.clip(X.reshape(6, -1) @ (first * weights["a.scale"]), 0, 255 * 0.05)
    exact = np.clip(hidden @ (second.T * 0.01) + bias * 0.05 * 0.01, -120 * 0.02, 135 * 0.02)
    assert run_float(graph, {"x": X})["y"] == pytest.approx(exact, abs=1e-4)
    assert np.abs(run_integer(quantize(graph, None), {"x": X})["y"] - exact).max() < 0.12


def test_sums_and_means_of_integers(tmp_path: Path) -> None:
    nodes = [
        node("QuantizeLinear", ["x", *G], "q"),
        node("QLinearAdd", ["q", *G, "q", *G, *OUT], "a"),
        node("QLinearGlobalAveragePool", ["a", *OUT, *OUT], "m"),
        node("DequantizeLinear", ["m", *OUT], "y"),
    ]
    for each in nodes[1:3]:
        each.domain = "com.microsoft"
    graph = import_model(saved(with_microsoft(model(nodes, GRIDS, x=(1, 3, 8, 8))), tmp_path))
    assert [type(n.op) for n in graph.nodes if not isinstance(n.op, Clip)] == [Add, AvgPool2d]
    exact = np.maximum(2 * X, 0).mean(axis=(2, 3), keepdims=True)
    assert np.abs(run_integer(quantize(graph, None), {"x": X})["y"] - exact).max() < 0.1


def with_microsoft(made: Any) -> Any:
    """The model, declaring the domain of ONNX Runtime's own operators."""
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made
