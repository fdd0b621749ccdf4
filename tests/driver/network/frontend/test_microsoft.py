"""Operators of ONNX Runtime's own domain: the float operator behind each, between its grids."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved
from numpy.typing import NDArray
from onnx import helper
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.graph.float_run import run_float
from driver.network.integer.reference import run_integer
from driver.network.quantize.quantizer import quantize

RNG = np.random.default_rng(2)
X = RNG.standard_normal((4, 8)).astype(np.float32)
G, OUT = ["g.scale", "g.zero"], ["o.scale", "o.zero"]
M = RNG.integers(-127, 128, (8, 3)).astype(np.int8)
WEIGHTS: dict[str, Any] = {
    "g.scale": np.float32(0.03),
    "g.zero": np.uint8(120),
    "o.scale": np.float32(0.02),
    "o.zero": np.uint8(100),
    "k": RNG.integers(0, 256, (1, 8)).astype(np.uint8),
    "m": M,
    "m.scale": np.linspace(0.004, 0.008, 3).astype(np.float32),
    "m.zero": np.zeros(3, np.int8),
    "b": np.array([0.5, -0.25, 1], np.float32),
    "eight": np.linspace(-1, 1, 8).astype(np.float32),
}
LO, HI = -100 * 0.02, 155 * 0.02
K = (WEIGHTS["k"].astype(int) - 120) * np.float32(0.03)
REALS = M * WEIGHTS["m.scale"]
EIGHT = WEIGHTS["eight"]
WEIGHTS |= {"m.real": REALS, "rows": REALS.T.copy()}


def gelu(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2)


def sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(1 / (1 + np.exp(-x)))


def normal(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray((x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True))


def scaled(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x / np.sqrt((x * x).mean(axis=1, keepdims=True)))


def softmax(x: NDArray[Any]) -> NDArray[Any]:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def microsoft(operator: str, inputs: list[str], *outputs: str, **attrs: Any) -> onnx.NodeProto:
    return node(operator, inputs, *outputs, domain="com.microsoft", **attrs)


def imported(nodes: list[onnx.NodeProto], folder: Path, shape: tuple[int, ...] = (1, 8)) -> Any:
    made = model(nodes, WEIGHTS, x=shape)
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return import_model(saved(made, folder))


def between(middle: onnx.NodeProto) -> list[onnx.NodeProto]:
    """QuantizeLinear of x to q, the node from q to p, DequantizeLinear of p to y."""
    ends = (
        microsoft("QuantizeLinear", ["x", *G], "q"),
        microsoft("DequantizeLinear", ["p", *OUT], "y"),
    )
    return [ends[0], middle, ends[1]]


QUANTIZED = [
    (("QLinearAdd", ["q", *G, "k", *G, *OUT], {}), X + K),
    (("QLinearMul", ["q", *G, "q", *G, *OUT], {}), X * X),
    (("QLinearMul", ["k", *G, "q", *G, *OUT], {}), X * K),
    (("QLinearSigmoid", ["q", *G, *OUT], {}), sigmoid(X)),
    (("QLinearLeakyRelu", ["q", *G, *OUT], {"alpha": 0.2}), np.where(X < 0, X * 0.2, X)),
    (("QLinearSoftmax", ["q", *G, *OUT], {"axis": -1, "opset": 13}), softmax(X)),
    (("QLinearConcat", [*OUT, "q", *G, "q", *G], {"axis": 1}), np.concatenate([X, X], axis=1)),
]


@pytest.mark.parametrize(("middle", "exact"), QUANTIZED, ids=[m[0] for m, _ in QUANTIZED])
def test_an_operator_on_quantized_values(middle: Any, exact: NDArray[Any], tmp_path: Path) -> None:
    operator, inputs, attrs = middle
    graph = imported(between(microsoft(operator, inputs, "p", **attrs)), tmp_path)
    wanted = np.clip(exact, LO, HI)
    assert run_float(graph, {"x": X})["y"] == pytest.approx(wanted, abs=1e-5)
    assert np.abs(run_integer(quantize(graph, X), {"x": X})["y"] - wanted).max() < 0.12


IMAGE = RNG.standard_normal((2, 3, 4, 4)).astype(np.float32)
POOLED = [
    (("QLinearAveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}), (3, 5)),
    (("QLinearReduceMean", {"axes": [2, 3], "keepdims": 1}), (2, 3, 4, 5)),
]


@pytest.mark.parametrize(("operator", "axes"), POOLED, ids=[o[0] for o, _ in POOLED])
def test_a_mean_of_quantized_values(operator: Any, axes: tuple[int, ...], tmp_path: Path) -> None:
    name, attrs = operator
    graph = imported(
        between(microsoft(name, ["q", *G, *OUT], "p", **attrs)), tmp_path, (1, 3, 4, 4)
    )
    exact = IMAGE.reshape(2, 3, 2, 2, 2, 2).mean(axis=axes)
    found = run_float(graph, {"x": IMAGE})["y"]
    assert found.reshape(exact.shape) == pytest.approx(exact, abs=1e-5)


B = WEIGHTS["b"]
LAYERS = [
    (microsoft("DynamicQuantizeMatMul", ["x", "m", "m.scale", "m.zero", "b"], "y"), X @ REALS + B),
    (microsoft("DynamicQuantizeMatMul", ["x", "m", "m.scale"], "y"), X @ REALS),
    (microsoft("Gelu", ["x"], "y"), gelu(X)),
    (microsoft("BiasGelu", ["x", "eight"], "y"), gelu(X + WEIGHTS["eight"])),
    (microsoft("QuickGelu", ["x"], "y", alpha=1.5), X * sigmoid(1.5 * X)),
    (microsoft("FusedMatMul", ["x", "m.real"], "y", alpha=-0.5), -0.5 * X @ REALS),
    (microsoft("FusedMatMul", ["x", "rows"], "y", transB=1), X @ REALS),
    (
        microsoft("SkipLayerNormalization", ["x", "x", "eight", "eight", "eight"], "y"),
        normal(2 * X + EIGHT) * EIGHT + EIGHT,
    ),
    (microsoft("SkipSimplifiedLayerNormalization", ["x", "x", "eight"], "y"), scaled(X) * EIGHT),
    (node("SimplifiedLayerNormalization", ["x", "eight"], "y", epsilon=0.0), scaled(X) * EIGHT),
    (
        microsoft("FastGelu", ["x"], "y"),
        X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3))) / 2,
    ),
]


@pytest.mark.parametrize(("layer", "exact"), LAYERS, ids=[n.op_type for n, _ in LAYERS])
def test_a_fused_operator_on_reals(
    layer: onnx.NodeProto, exact: NDArray[Any], tmp_path: Path
) -> None:
    assert run_float(imported([layer], tmp_path), {"x": X})["y"] == pytest.approx(exact, abs=1e-5)


def test_the_sum_that_a_norm_is_of_may_be_used(tmp_path: Path) -> None:
    normed = microsoft("SkipLayerNormalization", ["x", "eight", "eight"], "n", "", "", "s")
    graph = imported([normed, node("Add", ["n", "s"], "y")], tmp_path)
    wanted = normal(X + EIGHT) * EIGHT + X + EIGHT
    assert run_float(graph, {"x": X})["y"] == pytest.approx(wanted, abs=1e-5)


def test_axes_of_a_batch_that_a_fused_product_turns_are_refused(tmp_path: Path) -> None:
    turned = microsoft("FusedMatMul", ["x", "m.real"], "y", transBatchA=1)
    with pytest.raises(ModelError, match="turns axes of the batch"):
        imported([turned], tmp_path)


def test_a_fused_product_behind_a_dynamic_quantization(tmp_path: Path) -> None:
    inputs = ["q", "m", "q.scale", "m.scale", "q.zero", "m.zero", "b"]
    nodes = [
        node("DynamicQuantizeLinear", ["x"], "q", "q.scale", "q.zero"),
        microsoft("MatMulIntegerToFloat", inputs, "y"),
    ]
    found = run_float(imported(nodes, tmp_path), {"x": X})["y"]
    assert found == pytest.approx(X @ REALS + B, abs=1e-5)


@pytest.mark.parametrize(
    ("activation", "parameters", "exact"),
    [
        ("", [], lambda x: x),
        ("Relu", [], lambda x: np.maximum(x, 0)),
        ("Clip", [-0.5, 0.25], lambda x: np.clip(x, -0.5, 0.25)),
        ("LeakyRelu", [0.1], lambda x: np.where(x < 0, x * 0.1, x)),
        ("Sigmoid", [], sigmoid),
    ],
)
def test_a_fused_convolution(
    activation: str, parameters: list[float], exact: Any, tmp_path: Path
) -> None:
    attrs: dict[str, Any] = {"activation": activation} if activation else {}
    if parameters:
        attrs["activation_params"] = parameters
    weights = {"w": np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1), "c": WEIGHTS["b"]}
    nodes = [microsoft("FusedConv", ["x", "w", "c"], "y", **attrs)]
    made = model(nodes, weights, x=(1, 3, 4, 4))
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    graph = import_model(saved(made, tmp_path))
    wanted = exact(IMAGE + WEIGHTS["b"][:, None, None])
    assert run_float(graph, {"x": IMAGE})["y"] == pytest.approx(wanted, abs=1e-5)


REFUSED = [
    (["x", "w", "", "x"], {}, "adds a fourth input"),
    (["x", "w"], {"activation": "LeakyRelu"}, "activation 'LeakyRelu' with 0 parameters"),
    (["x", "w"], {"activation": "Ramp"}, "activation 'Ramp' with 0 parameters"),
]


@pytest.mark.parametrize(("inputs", "attrs", "said"), REFUSED, ids=[r[2] for r in REFUSED])
def test_what_a_fused_convolution_cannot_be(
    inputs: list[str], attrs: dict[str, Any], said: str, tmp_path: Path
) -> None:
    made = model(
        [microsoft("FusedConv", inputs, "y", **attrs)],
        {"w": np.ones((3, 3, 1, 1), np.float32)},
        x=(1, 3, 4, 4),
    )
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(ModelError) as caught:
        import_model(saved(made, tmp_path))
    assert said in str(caught.value)


def test_channels_last_is_refused(tmp_path: Path) -> None:
    pool = microsoft("QLinearGlobalAveragePool", ["q", *G, *OUT], "p", channels_last=1)
    with pytest.raises(ModelError, match="channels_last is not supported"):
        imported(between(pool), tmp_path, (1, 3, 4, 4))
