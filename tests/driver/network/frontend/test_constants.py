"""Nodes on constants are computed at import: shapes, indices and masks, as ONNX has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.graph.float_run import run_float

X = np.linspace(-1, 1, 48, dtype=np.float32).reshape(1, 3, 4, 4)
WEIGHTS: dict[str, NDArray[Any]] = {
    "row": np.array([3, -1, 2, 0], np.float32),
    "square": np.arange(16, dtype=np.float32).reshape(4, 4),
    "flags": np.array([True, False, False, True]),
    "zero": np.array(0, np.int64),
    "one": np.array([1], np.int64),
    "four": np.array(4, np.int64),
    "none": np.zeros((1, 1, 0, 4), np.float32),
    "step": np.array(1, np.int64),
    "two": np.array([2], np.int64),
    "ends": np.array([-1, 4], np.float32),
    "shape": np.array([4, 4], np.int64),
    "places": np.array([[1], [3]], np.int64),
    "new": np.array([7, 8], np.float32),
    "unequal": np.array([3, 1], np.int64),
    "around": np.array([1, 0, 0, 2], np.int64),
    "ends_of_one": np.array([1, 0], np.int64),
    "wide": np.array([4, 7], np.int64),
    "corner": np.array([[3, 0]] * 4, np.int64),
    "far": np.array([1 << 20, 1 << 20], np.int64),
}
CASES = {
    "equal": node("Equal", ["row", "row"], "c"),
    "less": node("Less", ["row", "new1"], "c"),
    "greater_or_equal": node("GreaterOrEqual", ["row", "new1"], "c"),
    "not": node("Not", ["flags"], "c"),
    "where": node("Where", ["flags", "row", "new1"], "c"),
    "range": node("Range", ["zero", "four", "step"], "c"),
    "expand": node("Expand", ["row", "shape"], "c"),
    "tile": node("Tile", ["new", "two"], "c"),
    "max": node("Max", ["row", "new1"], "c"),
    "mod": node("Mod", ["row", "row3"], "c", fmod=1),
    "power": node("Pow", ["square", "two"], "c"),
    "clip": node("Clip", ["row", "new1"], "c"),
    "sum_of_rows": node("ReduceSum", ["square", "one"], "c", keepdims=0),
    "largest": node("ReduceMax", ["square"], "c", axes=[0]),
    "cumulated": node("CumSum", ["row", "zero"], "c", reverse=1, exclusive=1),
    "first_part": node("Split", ["row", "unequal"], "c", "rest"),
    "last_part": node("Split", ["square"], "other", "c", axis=1),
    "triangle": node("Trilu", ["square"], "c", upper=0),
    "scatter": node("ScatterND", ["row", "places", "new"], "c"),
    "scatter_sums": node("ScatterND", ["row", "places", "new"], "c", reduction="add"),
    "one_hot": node("OneHot", ["places", "four", "ends"], "c", axis=0),
    "size": node("Size", ["x"], "c"),
    "softmax": node("Softmax", ["square"], "c", axis=0),
    "padded": node("Pad", ["square", "around"], "c"),
    "padded_integers": node("Pad", ["shape", "ends_of_one"], "c"),
    "resized": node("Resize", ["square", "", "", "wide"], "c", mode="linear"),
    "elements": node("GatherElements", ["square", "corner"], "c", axis=1),
    "normalized": node("LayerNormalization", ["square", "row"], "c"),
    "cast_like": node("CastLike", ["flags", "row"], "c"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_node_on_constants(case: str, tmp_path: Path) -> None:
    nodes = [
        node("Slice", ["new", "zero1", "one"], "new1"),
        node("Sub", ["row", "new1"], "row3"),
        CASES[case],
        node("Cast", ["c"], "f", to=onnx.TensorProto.FLOAT),
        node("ReduceSum", ["f"], "total", keepdims=0),
        node("Mul", ["x", "total"], "y"),
    ]
    weights = {**WEIGHTS, "zero1": np.array([0], np.int64)}
    made = model(nodes, weights, opset=17)
    graph = import_model(saved(made, tmp_path))
    wanted: Any = ReferenceEvaluator(made).run(None, {"x": X})
    np.testing.assert_allclose(run_float(graph, {"x": X})["y"], wanted[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (node("Expand", ["row", "far"], "c"), "cannot be computed at import"),
        (node("Tile", ["square", "far"], "c"), "makes a constant of shape [4194304, 4194304]"),
        (node("Det", ["square"], "c"), "operator is not supported"),
        (node("GatherElements", ["square", "corner"], "c", axis=1 << 62), "cannot be computed"),
        (node("Softmax", ["shape"], "c"), "has only constant inputs, of integers"),
        (node("Resize", ["square", "", "", "far"], "c"), "too large"),
        (node("Conv", ["none", "none"], "c"), "has only constant inputs and cannot be computed"),
        (node("CastLike", ["x", "zero"], "c"), "casts an activation to int64"),
    ],
)
def test_what_is_refused(made: onnx.NodeProto, said: str, tmp_path: Path) -> None:
    nodes = [made, node("Add", ["x", "c"], "y")]
    with pytest.raises(ModelError) as caught:
        import_model(saved(model(nodes, WEIGHTS, opset=18), tmp_path))
    assert said in caught.value.what


def test_half_and_double_precision_are_taken_as_float32(tmp_path: Path) -> None:
    made = model([node("Mul", ["x", "row"], "y")], {"row": WEIGHTS["row"].astype(np.float16)})
    made.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    graph = import_model(saved(made, tmp_path))
    assert np.array_equal(run_float(graph, {"x": X})["y"], X * WEIGHTS["row"])


def test_bfloat16_is_taken_as_the_float32_that_it_is_a_half_of(tmp_path: Path) -> None:
    nodes = [
        node("Cast", ["row"], "short", to=onnx.TensorProto.BFLOAT16),
        node("Mul", ["x", "short"], "z"),
        node("Add", ["z", "w"], "s"),
        node("Cast", ["s"], "y", to=onnx.TensorProto.BFLOAT16),
    ]
    made = model(nodes, {"row": np.array([1, 2, 3, 1 + 2**-12], np.float32)})
    half = onnx.helper.make_tensor("w", onnx.TensorProto.BFLOAT16, [1], [0.5])
    made.graph.initializer.append(half)
    made.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.BFLOAT16
    graph = import_model(saved(made, tmp_path))
    wanted = X * np.array([1, 2, 3, 1], np.float32) + np.float32(0.5)
    assert np.array_equal(run_float(graph, {"x": X})["y"], wanted)
