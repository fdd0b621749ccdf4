"""Models in the arithmetic of their files: ONNX's definitions, and ONNX Runtime bit for bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved
from kit.networks.onnx_runtime import runtime_answers
from kit.networks.qdq import layer_weights, pair, two_convolutions, two_qlinear_convolutions
from numpy.typing import NDArray
from onnx import helper
from tilefarm.errors import ModelError

from driver.network.frontend.onnx import import_model
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import FakeQuantize, ScaleSums
from driver.network.integer.qir import QMaxPool2d, QuantGraph, Real
from driver.network.integer.qlinear import (
    DequantizeLinear,
    DynamicLayer,
    QLinearAvgPool2d,
    QLinearBinary,
    QLinearConv2d,
    QLinearDense,
    QLinearLookup,
    QLinearMatMul,
    QuantizeLinear,
)
from driver.network.integer.reference import run_integer
from driver.network.quantize.onnx_arithmetic import in_onnx_arithmetic

Array = NDArray[Any]
X = (np.random.default_rng(8).standard_normal((6, 3, 8, 8)) * 2).astype(np.float32)


def in_its_own_arithmetic(made: onnx.ModelProto, folder: Path) -> QuantGraph:
    return in_onnx_arithmetic(import_model(saved(made, folder), keeps_integers=True))


def answers(graph: QuantGraph, x: Array) -> Array:
    """For inputs [samples, ...] in the file's shape, one after the other."""
    (given,) = graph.inputs
    made = [
        run_integer(graph, {given.name: each.reshape(given.given_shape).transpose(given.axes)})["y"]
        for each in x
    ]
    return np.stack(made)


def kinds(graph: QuantGraph) -> list[type]:
    return [type(each.op) for each in graph.nodes]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("per_channel", [True, False])
def test_pairs_and_integers_are_one_network(per_channel: bool, dtype: type, tmp_path: Path) -> None:
    weights = layer_weights(per_channel=per_channel, dtype=dtype)
    pairs = in_its_own_arithmetic(two_convolutions(weights), tmp_path)
    integers = in_its_own_arithmetic(two_qlinear_convolutions(weights), tmp_path)
    wanted = [QuantizeLinear, QLinearConv2d, QLinearConv2d, DequantizeLinear]
    assert kinds(pairs) == kinds(integers) == wanted
    assert (
        run_integer(pairs, {"x": X})["y"].tobytes()
        == run_integer(integers, {"x": X})["y"].tobytes()
    )
    first = pairs.nodes[1].op
    assert isinstance(first, QLinearConv2d)
    assert first.weight.dtype == np.int8  # with zero points of 128, uint8 is int8 as well
    assert (first.bias == weights["b"]).all()
    scale = weights["x.scale"] * weights["w.scale"] / weights["h.scale"]
    assert (first.to.scale == scale).all()
    assert (first.x_zero, first.to.zero) == (120, -128)


def test_the_float_network_has_the_same_reals(tmp_path: Path) -> None:
    graph = import_model(saved(two_convolutions(layer_weights()), tmp_path), keeps_integers=True)
    kinds = [type(each.op) for each in graph.nodes]
    assert kinds.count(FakeQuantize) == 3
    assert kinds.count(ScaleSums) == 2
    floats = run_float(graph, {"x": X})["y"]
    integers = run_integer(in_onnx_arithmetic(graph), {"x": X})["y"]
    assert np.mean(floats != integers) < 1e-3


Grids = Mapping[str, Array]
G, H, OUT = (["g.scale", "g.zero"], ["h.scale", "h.zero"], ["y.scale", "y.zero"])


def grids(dtype: type) -> dict[str, Array]:
    """Grids of the input, twice, and of the result; their scales have no common factor."""
    shift = -128 if dtype is np.int8 else 0
    scales = {"g": (0.0313, 120), "h": (0.0471, 131), "y": (0.0527, 77)}
    return {
        key: value
        for name, (scale, zero) in scales.items()
        for key, value in {
            f"{name}.scale": np.array(scale, np.float32),
            f"{name}.zero": np.array(zero + shift, dtype),
        }.items()
    }


def between(middle: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Nodes from q, on the grid g, to r, on the grid y."""
    return [
        node("QuantizeLinear", ["x", *G], "q"),
        *middle,
        node("DequantizeLinear", ["r", *OUT], "y"),
    ]


def around(operator: str, *more: str, **attrs: Any) -> list[onnx.NodeProto]:
    """A float operator on d, between pairs."""
    return [
        node("DequantizeLinear", ["q", *G], "d"),
        node("QuantizeLinear", ["x", *H], "q2"),
        node("DequantizeLinear", ["q2", *H], "e"),
        node(operator, ["d", *more], "f", **attrs),
        node("QuantizeLinear", ["f", *OUT], "r"),
    ]


def microsoft(operator: str, inputs: Sequence[str], **attrs: Any) -> list[onnx.NodeProto]:
    made = node(operator, inputs, "r", **attrs)
    made.domain = "com.microsoft"
    return [made]


RNG = np.random.default_rng(3)
DENSE: dict[str, Any] = {
    "m": RNG.integers(-128, 128, (24, 10)).astype(np.int8),
    "m.scale": RNG.uniform(0.001, 0.01, 10).astype(np.float32),
    "m.zero": np.zeros(10, np.int8),
    "v.zero": np.int8(0),
    "n": RNG.integers(-128, 128, (10, 24)).astype(np.int8),
    "n.scale": np.float32(0.0041),
    "c": RNG.integers(-900, 900, 10).astype(np.int32),
}
IMAGE, MATRIX, ROWS = (1, 6, 9, 9), (3, 24), (1, 5, 24)
CASES: dict[str, tuple[tuple[int, ...], list[onnx.NodeProto], type]] = {
    "columns with scales": (
        MATRIX,
        [node("QLinearMatMul", ["q", *G, "m", "m.scale", "m.zero", *OUT], "r")],
        QLinearDense,
    ),
    "rows": (
        ROWS,
        [node("QLinearMatMul", ["q", *G, "m", "m.scale", "m.zero", *OUT], "r")],
        QLinearConv2d,
    ),
    "a product of activations": (
        ROWS,
        [
            node("Transpose", ["q"], "t", perm=[0, 2, 1]),
            node("QLinearMatMul", ["q", *G, "t", *G, *OUT], "r"),
        ],
        QLinearMatMul,
    ),
    "QGemm": (
        MATRIX,
        microsoft("QGemm", ["q", *G, "n", "n.scale", "v.zero", "c", *OUT], transB=1, alpha=1.7),
        QLinearDense,
    ),
    "QLinearMul": (IMAGE, microsoft("QLinearMul", ["q", *G, "q", *G, *OUT]), QLinearBinary),
    "QLinearConcat": (
        IMAGE,
        [
            node("QuantizeLinear", ["x", *H], "q2"),
            *microsoft("QLinearConcat", [*OUT, "q", *G, "q2", *H], axis=1),
        ],
        QLinearLookup,
    ),
    "QLinearGlobalAveragePool": (
        IMAGE,
        microsoft("QLinearGlobalAveragePool", ["q", *G, *OUT]),
        QLinearAvgPool2d,
    ),
    "QLinearSigmoid": (IMAGE, microsoft("QLinearSigmoid", ["q", *G, *OUT]), QLinearLookup),
    "Add": (IMAGE, around("Add", "e"), QLinearBinary),
    "Sub": (IMAGE, around("Sub", "e"), QLinearBinary),
    "Mul": (IMAGE, around("Mul", "e"), QLinearBinary),
    "LeakyRelu": (IMAGE, around("LeakyRelu", alpha=0.1), QLinearLookup),
    "HardSwish": (IMAGE, around("HardSwish"), QLinearLookup),
    "Softmax": (MATRIX, around("Softmax", axis=1), Real),
    "Transpose": (IMAGE, around("Transpose", perm=[0, 2, 3, 1]), QLinearLookup),
    "MaxPool": (IMAGE, around("MaxPool", kernel_shape=[3, 3], pads=[1, 0, 1, 1]), QMaxPool2d),
    "Resize": (IMAGE, around("Resize", "", "twice", mode="nearest"), QLinearLookup),
}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("name", CASES)
def test_operators_are_those_of_onnx_runtime(name: str, dtype: type, tmp_path: Path) -> None:
    shape, middle, kind = CASES[name]
    weights: dict[str, Any] = {**grids(dtype), **DENSE, "twice": np.array([1, 1, 2, 2], np.float32)}
    made = with_microsoft(model(between(middle), weights, x=shape))
    graph = in_its_own_arithmetic(made, tmp_path)
    assert kind in kinds(graph)
    x = (np.random.default_rng(1).standard_normal((3, *shape)) * 2).astype(np.float32)
    wanted = runtime_answers(saved(made, tmp_path), x)["y"]
    assert (answers(graph, x).reshape(wanted.shape) == wanted).all()


@pytest.mark.parametrize("dtypes", [(np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8)])
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("per_channel", [True, False])
def test_convolutions_are_those_of_onnx_runtime(
    dtypes: tuple[type, type], groups: int, per_channel: bool, tmp_path: Path
) -> None:
    rng = np.random.default_rng(groups)
    data, of_weights = dtypes
    ends = np.iinfo(of_weights)
    scales = 12 if per_channel else ()
    weights: dict[str, Any] = {
        **grids(data),
        "w": rng.integers(ends.min, ends.max + 1, (12, 6 // groups, 3, 3)).astype(of_weights),
        "w.scale": rng.uniform(0.001, 0.01, scales).astype(np.float32),
        "w.zero": np.full(scales, 131 if of_weights is np.uint8 else 0, of_weights),
        "b": rng.integers(-9000, 9000, 12).astype(np.int32),
    }
    windows = {"pads": [1, 2, 0, 1], "strides": [2, 1], "dilations": [1, 2], "group": groups}
    inputs = ["q", *G, "w", "w.scale", "w.zero", *OUT, "b"]
    made = model(between([node("QLinearConv", inputs, "r", **windows)]), weights, x=IMAGE)
    graph = in_its_own_arithmetic(made, tmp_path)
    assert kinds(graph) == [QuantizeLinear, QLinearConv2d, DequantizeLinear]
    x = (rng.standard_normal((3, *IMAGE)) * 2).astype(np.float32)
    wanted = runtime_answers(saved(made, tmp_path), x)["y"]
    assert (answers(graph, x) == wanted).all()


DYNAMIC = [node("DynamicQuantizeLinear", ["x"], "q", "s", "z")]


def scaled(source: str, scale: str) -> list[onnx.NodeProto]:
    return [
        node("Cast", [source], "r.f", to=onnx.TensorProto.FLOAT),
        node("Mul", ["s", scale], "s.w"),
        node("Mul", ["r.f", "s.w"], "y"),
    ]


@pytest.mark.parametrize("shape", [(1, 24), MATRIX, ROWS])
@pytest.mark.parametrize("scale", ["m.scale", "n.scale"])
def test_integer_products_of_dynamic_scales(
    scale: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    nodes = [*DYNAMIC, node("MatMulInteger", ["q", "m", "z"], "r"), *scaled("r", scale)]
    made = model(nodes, DENSE, x=shape)
    graph = in_its_own_arithmetic(made, tmp_path)
    assert kinds(graph).count(DynamicLayer) == 1
    x = (np.random.default_rng(1).standard_normal((3, *shape)) * 2).astype(np.float32)
    wanted = runtime_answers(saved(made, tmp_path), x)["y"]
    assert (answers(graph, x).reshape(wanted.shape) == wanted).all()


def test_integer_products_of_two_activations(tmp_path: Path) -> None:
    nodes = [
        node("QuantizeLinear", ["x", *G], "q"),
        node("Transpose", ["q"], "t", perm=[0, 2, 1]),
        node("MatMulInteger", ["q", "t", "g.zero", "g.zero"], "r"),
        node("Cast", ["r"], "y", to=onnx.TensorProto.FLOAT),
    ]
    graph = in_its_own_arithmetic(model(nodes, grids(np.uint8), x=ROWS), tmp_path)
    assert kinds(graph).count(QLinearMatMul) == 1
    x = (np.random.default_rng(1).standard_normal((3, *ROWS)) * 2).astype(np.float32)
    (grid,) = (each.op.grid for each in graph.nodes if isinstance(each.op, QuantizeLinear))
    steps = grid.integers(x).astype(int) - grid.zero
    assert (
        answers(graph, x).reshape(3, -1) == (steps @ steps.swapaxes(-1, -2)).reshape(3, -1)
    ).all()


def test_integer_convolutions(tmp_path: Path) -> None:
    weights: dict[str, Any] = {**grids(np.uint8), "w": layer_weights()["w"], "w.zero": np.int8(3)}
    weights["w.scale"] = np.float32(0.0037)
    layer = ["w", "z", "w.zero"]
    dynamic = [*DYNAMIC, node("ConvInteger", ["q", *layer], "r"), *scaled("r", "w.scale")]
    static = [
        node("QuantizeLinear", ["x", *G], "q"),
        node("ConvInteger", ["q", "w", "g.zero", "w.zero"], "r"),
        node("Cast", ["r"], "y", to=onnx.TensorProto.FLOAT),
    ]
    for nodes, kind in ((dynamic, DynamicLayer), (static, QLinearConv2d)):
        made = model(nodes, weights, x=(1, 3, 8, 8))
        graph = in_its_own_arithmetic(made, tmp_path)
        assert kind in kinds(graph)
        wanted = runtime_answers(saved(made, tmp_path), X[:, None])["y"]
        assert (answers(graph, X[:, None]) == wanted).all()


def test_one_range_for_several_images_is_refused(tmp_path: Path) -> None:
    weights: dict[str, Any] = {"w": layer_weights()["w"], "w.scale": np.float32(0.0037)}
    nodes = [*DYNAMIC, node("ConvInteger", ["q", "w", "z"], "r"), *scaled("r", "w.scale")]
    made = model(nodes, weights, x=(4, 3, 8, 8))
    with pytest.raises(ModelError, match="quantizes all 4 samples by one range; export it for one"):
        in_its_own_arithmetic(made, tmp_path)
    assert import_model(saved(made, tmp_path)).batch == 4  # where scales are calibrated


def test_a_bias_in_float32_and_one_behind_moves(tmp_path: Path) -> None:
    """QDQ models whose biases are floats: added to the scaled sums, before they are rounded."""
    weights: dict[str, Any] = {
        **grids(np.uint8),
        **DENSE,
        "bias": RNG.standard_normal(10).astype(np.float32),
    }
    nodes = [
        *pair("x", "g", "d"),
        node("DequantizeLinear", ["m", "m.scale", "m.zero"], "m.r", axis=1),
        node("MatMul", ["d", "m.r"], "s"),
        node("Add", ["s", "bias"], "t"),
        node("Relu", ["t"], "u"),
        *pair("u", "y", "y"),
    ]
    graph = in_its_own_arithmetic(model(nodes, weights, x=ROWS), tmp_path)
    (layer,) = (each.op for each in graph.nodes if isinstance(each.op, QLinearConv2d))
    assert layer.to.addend is not None
    assert (layer.to.lo, layer.to.hi) == (77, 255)
    assert not any(isinstance(each.op, Real) for each in graph.nodes)
    x = (np.random.default_rng(1).standard_normal((3, *ROWS)) * 2).astype(np.float32)
    q = np.clip(np.rint(x / np.float32(0.0313)) + 120, 0, 255) - 120
    reals = (q @ weights["m"].astype(np.float64)) * 0.0313 * weights["m.scale"] + weights["bias"]
    exact = np.clip(reals, 0, (255 - 77) * 0.0527)
    assert answers(graph, x) == pytest.approx(exact, abs=0.0527 / 2 * 1.01)


def with_microsoft(made: onnx.ModelProto) -> onnx.ModelProto:
    """The model, declaring the domain of ONNX Runtime's own operators."""
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made
