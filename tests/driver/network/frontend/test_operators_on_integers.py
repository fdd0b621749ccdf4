"""What quantizers let operators do with integers themselves: pads, places, tables, rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import answers, model, model_on, node, saved
from onnx.reference import ReferenceEvaluator

from driver.network import import_model
from driver.network.graph.float_run import run_float
from driver.network.integer.reference import run_integer
from driver.network.quantize.onnx_arithmetic import in_onnx_arithmetic
from driver.network.quantize.quantizer import quantize

RNG = np.random.default_rng(6)
X = RNG.standard_normal((3, 3, 6, 6)).astype(np.float32)
W = RNG.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
GIVEN: dict[str, Any] = {
    "scale": np.float32(0.03),
    "zero": np.uint8(110),
    "other": np.uint8(140),
    "around": np.array([0, 0, 1, 0, 0, 0, 0, 2]),
    "double": np.array([1, 1, 2, 2], np.float32),
    "w": W,
    "w.scale": np.float32(0.01),
    "w.zero": np.int8(0),
    "wide": np.float32(0.1),
}
GRID = ["scale", "zero"]


def between_pairs(*middle: onnx.NodeProto) -> onnx.ModelProto:
    """A network that rounds `x` to `q`, and makes reals of `r`, which are those nodes' result."""
    first = node("QuantizeLinear", ["x", *GRID], "q")
    last = node("DequantizeLinear", ["r", *GRID], "y")
    return model([first, *middle, last], GIVEN, x=(1, 3, 6, 6), opset=21)


@pytest.mark.parametrize(
    ("middle", "tied"),
    [
        (node("Pad", ["q", "around", "zero"], "r"), False),
        (node("Pad", ["q", "around", "other"], "r"), False),
        (node("Pad", ["q", "around"], "r"), False),
        (node("Pad", ["q", "around"], "r", mode="reflect"), False),
        (node("Resize", ["q", "", "double"], "r"), False),
        (node("Resize", ["q", "", "double"], "r", mode="linear"), True),
    ],
    ids=["pad", "another", "absent", "mirror", "nearest", "linear"],
)
def test_integers_are_moved_and_made_between_others(
    middle: onnx.NodeProto, tied: bool, tmp_path: Path
) -> None:
    """To the bit, but for ties of what is made between others."""
    made = between_pairs(middle)
    wanted = answers(made, X)
    exact = in_onnx_arithmetic(import_model(saved(made, tmp_path), keeps_integers=True))
    far = np.abs(run_integer(exact, {"x": X})["y"] - wanted)
    assert far.max() < 0.0301
    assert (far > 1e-5).mean() < (0.05 if tied else 1e-9)
    graph = import_model(saved(made, tmp_path))
    assert run_float(graph, {"x": X})["y"] == pytest.approx(wanted, abs=0.05)
    assert run_integer(quantize(graph, X), {"x": X})["y"] == pytest.approx(wanted, abs=0.08)


def test_a_layer_reads_integers_that_no_pair_has_made(tmp_path: Path) -> None:
    layer = ["q", *GRID, "w", "w.scale", "w.zero", "wide", "zero", "b"]
    nodes = [
        node("Cast", ["x"], "q", to=onnx.TensorProto.UINT8),
        node("QLinearConv", layer, "c"),
        node("DequantizeLinear", ["c", "wide", "zero"], "y"),
    ]
    biased = GIVEN | {"b": np.arange(4, dtype=np.int32) * 900}
    made = model(nodes, biased, x=(1, 3, 6, 6), opset=21)
    exact = in_onnx_arithmetic(import_model(saved(made, tmp_path), keeps_integers=True))
    x = np.floor(np.abs(X) * 60 + 40).astype(np.float32)
    assert run_integer(exact, {"x": x})["y"] == pytest.approx(answers(made, x), abs=1e-4)


def test_the_largest_of_integers_is_that_of_reals(tmp_path: Path) -> None:
    nodes = [
        node("QuantizeLinear", ["x", *GRID], "q"),
        node("ArgMax", ["q"], "at", axis=1),
        node("Cast", ["at"], "y", to=onnx.TensorProto.FLOAT),
    ]
    made = model(nodes, GIVEN, x=(1, 3, 6, 6), opset=21)
    graph = import_model(saved(made, tmp_path), keeps_integers=True)
    assert (run_float(graph, {"x": X})["y"] == answers(made, X)).all()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_rows_of_a_table_of_integers_are_dequantized_behind_it(dtype: type, tmp_path: Path) -> None:
    """As embeddings are in a language model that was quantized."""
    table: Any = RNG.integers(0, 120, (9, 5)).astype(dtype)
    nodes = [
        node("Gather", ["table", "ids"], "rows"),
        node("DequantizeLinear", ["rows", "scale", "of"], "y"),
    ]
    ids = np.array([[3, 0, 8, 3]])
    given = {"table": table, "scale": np.float32(0.5), "of": dtype(7)}
    made = model_on({"ids": ids}, nodes, given)
    graph = import_model(saved(made, tmp_path))
    results: Any = ReferenceEvaluator(made).run(None, {"ids": ids})
    (wanted,) = results
    (named,) = graph.inputs
    got = run_float(graph, {"ids": ids.reshape(named.shape).astype(np.float32)})["y"]
    assert (got.reshape(wanted.shape) == wanted).all()


def lines(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    return model(nodes, GIVEN | {"w": W[:, :, 0]}, x=(1, 3, 12), opset=21)


def test_layers_of_integers_over_one_axis(tmp_path: Path) -> None:
    window: dict[str, Any] = {"pads": [1, 0], "strides": [2], "kernel_shape": [3]}
    layer = ["q", *GRID, "w", "w.scale", "w.zero", "wide", "zero"]
    static = lines(
        node("QuantizeLinear", ["x", *GRID], "q"),
        node("QLinearConv", layer, "c", **window),
        node("DequantizeLinear", ["c", "wide", "zero"], "y"),
    )
    dynamic = lines(
        node("DynamicQuantizeLinear", ["x"], "q", "s", "z"),
        node("ConvInteger", ["q", "w", "z", "w.zero"], "c", **window),
        node("Cast", ["c"], "r", to=onnx.TensorProto.FLOAT),
        node("Mul", ["r", "s"], "y"),
    )
    x = X.reshape(9, 3, 12)
    for made, near in ((static, 1e-5), (dynamic, 1e-2)):
        exact = in_onnx_arithmetic(import_model(saved(made, tmp_path), keeps_integers=True))
        (given,) = exact.inputs
        got = [
            run_integer(exact, {"x": each.reshape(given.given_shape).transpose(given.axes)})["y"]
            for each in x
        ]
        assert np.concatenate(got).reshape(9, 4, 6) == pytest.approx(answers(made, x), abs=near)
