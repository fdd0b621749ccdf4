"""Whole models through the importer, against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Sequence
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
from driver.network.examples import DEMO_MODEL
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Affine, Clip, Conv2d, Dense, Graph

RNG = np.random.default_rng(0)
Arrays = dict[str, NDArray[Any]]


def f32(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


def i64(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def kinds(graph: Graph) -> list[str]:
    return [type(n.op).__name__ for n in graph.nodes]


def check(made: onnx.ModelProto, folder: Path) -> Graph:
    """Imports the model and compares one run with the reference evaluator."""
    graph = import_model(saved(made, folder))
    (given,) = graph.inputs
    x = f32(*given.given_shape)
    results: Any = ReferenceEvaluator(made).run(None, {given.name: x})
    (got,) = run_float(graph, {given.name: x.transpose(given.axes)}).values()
    np.testing.assert_allclose(got, results[0], rtol=2e-3, atol=1e-4)
    return graph


def test_a_convolution_with_all_that_folds_into_it(tmp_path: Path) -> None:
    weights: Arrays = {
        "mean": f32(3, 1, 1) * 0,
        "std": np.abs(f32(3, 1, 1)) + 0.5,
        "w": f32(5, 3, 3, 3),
        "s": f32(5),
        "b": f32(5),
        "m": f32(5),
        "v": np.abs(f32(5)),
        "lo": np.zeros((), np.float32),
        "hi": np.full((), 6, np.float32),
    }
    nodes = [
        node("Sub", ["x", "mean"], "a"),
        node("Div", ["a", "std"], "c"),
        node("Conv", ["c", "w"], "d", auto_pad="SAME_LOWER", strides=[2, 2]),
        node("BatchNormalization", ["d", "s", "b", "m", "v"], "e", epsilon=1e-3),
        node("Dropout", ["e"], "f"),
        node("Clip", ["f", "lo", "hi"], "g"),
        node("Identity", ["g"], "y"),
    ]
    graph = check(model(nodes, weights, x=(1, 3, 7, 6)), tmp_path)
    (only,) = graph.nodes
    assert isinstance(only.op, Conv2d)
    assert (only.op.lo, only.op.hi) == (0.0, 6.0)
    assert only.name == "d_n"
    assert graph.outputs[0].name == "y"


def test_the_flattening_that_pytorch_writes(tmp_path: Path) -> None:
    """x.view(x.size(0), -1): the shape is computed from the shape."""
    nodes = [
        node("Relu", ["x"], "r"),
        node("Shape", ["r"], "shape"),
        node("Constant", [], "zero", value_int=0),
        node("Gather", ["shape", "zero"], "n", axis=0),
        node("Constant", [], "axes", value_ints=[0]),
        node("Unsqueeze", ["n", "axes"], "n1"),
        node("Constant", [], "rest", value_ints=[-1]),
        node("Concat", ["n1", "rest"], "target", axis=0),
        node("Reshape", ["r", "target"], "flat"),
        node("Gemm", ["flat", "w", "b"], "y", transB=1, alpha=0.5, beta=2.0),
    ]
    graph = check(model(nodes, {"w": f32(7, 48), "b": f32(7)}), tmp_path)
    assert kinds(graph) == ["Clip", "Reshape", "Dense"]


def test_a_model_that_transposes_its_images_first(tmp_path: Path) -> None:
    nodes = [
        node("Transpose", ["x"], "t", perm=[0, 3, 1, 2]),
        node("Conv", ["t", "w"], "y"),
    ]
    graph = check(model(nodes, {"w": f32(2, 3, 1, 1)}, x=(1, 4, 5, 3)), tmp_path)
    (given,) = graph.inputs
    assert given.shape == (1, 3, 4, 5)
    assert given.given_shape == (1, 4, 5, 3)
    assert kinds(graph) == ["Conv2d"]


def test_an_input_with_a_second_reader_is_transposed_for_one_of_them(tmp_path: Path) -> None:
    nodes = [
        node("Identity", ["x"], "i"),
        node("Transpose", ["i"], "t", perm=[0, 3, 1, 2]),
        node("Relu", ["i"], "r"),
        node("Add", ["t", "r"], "y"),
    ]
    graph = check(model(nodes, x=(1, 4, 4, 4)), tmp_path)
    assert sorted(kinds(graph)) == ["Add", "Clip", "Gather"]


def test_a_transpose_of_unit_axes_is_a_reshape(tmp_path: Path) -> None:
    nodes = [
        node("GlobalAveragePool", ["x"], "g"),
        node("Transpose", ["g"], "t", perm=[0, 2, 3, 1]),
        node("Squeeze", ["t", "axes"], "s"),
        node("MatMul", ["s", "w"], "m"),
        node("Add", ["m", "b"], "y"),
    ]
    weights: Arrays = {"axes": i64(1, 2), "w": f32(3, 4), "b": f32(1, 4)}
    graph = check(model(nodes, weights), tmp_path)
    assert kinds(graph) == ["AvgPool2d", "Reshape", "Dense"]


def test_a_mean_over_height_and_width(tmp_path: Path) -> None:
    nodes = [node("ReduceMean", ["x"], "y", axes=[2, -1], keepdims=0)]
    graph = check(model(nodes, opset=13), tmp_path)
    assert kinds(graph) == ["AvgPool2d", "Reshape"]


@pytest.mark.parametrize("order", [["x", "c"], ["c", "x"]])
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul"])
def test_arithmetic_with_a_constant_on_either_side(
    operator: str, order: list[str], tmp_path: Path
) -> None:
    graph = check(model([node(operator, order, "y")], {"c": f32(1, 3, 1, 1)}), tmp_path)
    assert isinstance(graph.nodes[0].op, Affine)


@pytest.mark.parametrize(
    ("opset", "nodes", "weights"),
    [
        (8, [node("Clip", ["x"], "y", min=-0.5, max=0.25)], {}),
        (11, [node("Clip", ["x", "", "hi"], "y")], {"hi": np.full((), 0.25, np.float32)}),
        (8, [node("Unsqueeze", ["x"], "u", axes=[2]), node("Squeeze", ["u"], "y", axes=[2])], {}),
        (9, [node("Flatten", ["x"], "f"), node("Softmax", ["f"], "y")], {}),
        (21, [node("Flatten", ["x"], "f"), node("Softmax", ["f"], "y", axis=-1)], {}),
        (18, [node("ReduceMean", ["x", "axes"], "y")], {"axes": i64(2, 3)}),
    ],
)
def test_forms_of_older_and_newer_operator_sets(
    opset: int, nodes: Sequence[onnx.NodeProto], weights: Arrays, tmp_path: Path
) -> None:
    if opset != 8 or nodes[0].op_type != "Unsqueeze":
        check(model(nodes, weights, opset=opset), tmp_path)
    else:
        graph = import_model(saved(model([*nodes, node("Relu", ["y"], "z")], out="z"), tmp_path))
        assert isinstance(graph.nodes[0].op, Clip)


def test_weights_in_another_file(tmp_path: Path) -> None:
    weight = f32(2, 3, 1, 1)
    (tmp_path / "weights.bin").write_bytes(b"\0" * 8 + weight.tobytes())
    made = model([node("Conv", ["x", "w"], "y")], {"w": weight})
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "8"), ("length", "24")):
        tensor.external_data.add(key=key, value=value)
    graph = import_model(saved(made, tmp_path))
    assert isinstance(graph.nodes[0].op, Conv2d)
    assert (graph.nodes[0].op.weight == weight).all()


def test_nodes_in_any_order_and_nodes_that_nobody_needs(tmp_path: Path) -> None:
    nodes = [
        node("Add", ["a", "b"], "y"),
        node("Relu", ["x"], "b"),
        node("Lstm", ["x"], "unused"),
        node("Clip", ["x", "lo"], "a"),
    ]
    graph = import_model(saved(model(nodes, {"lo": np.full((), -1, np.float32)}), tmp_path))
    assert kinds(graph) == ["Clip", "Clip", "Add"]


def test_a_constant_reshaped_weight(tmp_path: Path) -> None:
    nodes = [
        node("Reshape", ["w", "shape"], "w2"),
        node("Flatten", ["x"], "f"),
        node("MatMul", ["f", "w2"], "y"),
    ]
    weights: Arrays = {"w": f32(3, 4, 4, 5), "shape": i64(48, 5)}
    graph = check(model(nodes, weights), tmp_path)
    assert isinstance(graph.nodes[-1].op, Dense)


def test_the_example_that_ships(tmp_path: Path) -> None:
    graph = check(onnx.load(DEMO_MODEL), tmp_path)
    assert kinds(graph).count("Conv2d") == 4
    assert graph.name == "model"


def test_channels_cut_and_joined_as_old_operator_sets_write_it(tmp_path: Path) -> None:
    nodes = [
        node("Conv", ["x", "w"], "c"),
        node("Split", ["c"], "first", "second", axis=1, split=[2, 4]),
        node("Slice", ["second"], "part", starts=[1, 0], ends=[-1, 1000], axes=[1, 2]),
        node("Concat", ["part", "first"], "y", axis=-3),
    ]
    graph = check(model(nodes, {"w": f32(6, 3, 1, 1)}, opset=9), tmp_path)
    assert kinds(graph) == ["Conv2d", "Slice", "Slice", "Concat"]


def test_a_part_that_is_all_channels_is_another_name(tmp_path: Path) -> None:
    nodes = [
        node("Slice", ["x", "start", "end"], "a"),
        node("Concat", ["a"], "b", axis=1),
        node("Relu", ["b"], "y"),
    ]
    graph = check(model(nodes, {"start": i64(0), "end": i64(9)}), tmp_path)
    assert kinds(graph) == ["Clip"]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (node("Split", ["x"], "y", "z", axis=1, split=[2, 2]), "parts [2, 2] do not divide 3"),
        (node("Split", ["x"], "y", "z", axis=2, split=[2, 1]), "parts [2, 1] do not divide 4"),
        (node("Slice", ["x"], "y", starts=[0], ends=[2, 3]), "are not of one length"),
        (node("Slice", ["x"], "y", ends=[2]), "attribute 'starts' is missing"),
        (
            node("ConvTranspose", ["x", "w"], "y", strides=[2, 2], output_padding=[-1, 0]),
            "output_padding [-1, 0] is not within",
        ),
        (
            node("ConvTranspose", ["x", "w"], "y", pads=[9, 0, 9, 0]),
            "output extent -13 of 4 rows",
        ),
        (node("ConvTranspose", ["x", "w"], "y", group=2), "does not fit input [1, 3, 4, 4]"),
        (node("Conv", ["x", "w"], "y", group=0), "group 0; at least 1"),
    ],
)
def test_cuts_and_phases_that_cannot_be_taken(
    made: onnx.NodeProto, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError) as caught:
        import_model(saved(model([made], {"w": f32(3, 2, 2, 2)}, opset=9), tmp_path))
    assert said in caught.value.what


def test_a_transposed_convolution_with_its_batch_norm(tmp_path: Path) -> None:
    nodes = [
        node("ConvTranspose", ["x", "w", "b"], "c", strides=[2, 1], pads=[1, 1, 1, 1]),
        node("Mul", ["c", "s"], "m"),
        node("Relu", ["m"], "y"),
    ]
    weights = {"w": f32(3, 5, 4, 3), "b": f32(5), "s": f32(1, 5, 1, 1)}
    assert kinds(check(model(nodes, weights), tmp_path)) == ["ConvTranspose2d"]
