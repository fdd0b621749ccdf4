"""Networks that mix their first axis are one sample; those that do not have a batch."""

from __future__ import annotations

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
from driver.network.frontend.batch_layout import along, file_shape, held_shape
from driver.network.graph.ir import Reshape

from .importing import agrees_with_onnx


def i64(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("shape", "batch", "held"),
    [
        ((4, 3, 2), 4, (4, 3, 2)),
        ((4,), 4, (4, 1)),
        ((1, 3), 1, (1, 3)),
        ((3, 1), 1, (1, 3, 1)),
        ((1,), 1, (1, 1)),
        ((), 1, (1, 1)),
    ],
)
def test_how_a_tensor_is_held(shape: tuple[int, ...], batch: int, held: tuple[int, ...]) -> None:
    assert held_shape(shape, batch) == held
    assert file_shape(held, shape, batch) == shape


def test_a_tensor_without_the_batch_cannot_be_held() -> None:
    with pytest.raises(ValueError, match="changes the batch axis"):
        held_shape((3, 4), 2)
    with pytest.raises(ValueError, match="works along the batch axis"):
        along((2, 4), (0, 1), 2)


def test_axes_of_one_sample_are_counted_behind_the_batch() -> None:
    assert along((2, 4), (1,), 2).axes == (1,)
    assert along((3, 4), (0,), 1).axes == (1,)
    form = along((1, 4), (0, 1), 1)
    assert (form.shape, form.axes) == ((1, 1, 4), (1, 2))
    assert [type(op) for op in form.before] == [Reshape]


MIXING: dict[str, tuple[onnx.NodeProto, dict[str, NDArray[Any]]]] = {
    "transpose": (node("Transpose", ["r"], "y", perm=[2, 0, 1]), {}),
    "reshape": (node("Reshape", ["r", "s"], "y"), {"s": i64(6, -1)}),
    "flatten": (node("Flatten", ["r"], "y", axis=2), {}),
    "slice": (node("Slice", ["r", "one", "two", "zero"], "y"), {}),
    "softmax": (node("Softmax", ["r"], "y", axis=0), {}),
    "sum": (node("ReduceSum", ["r", "zero"], "y", keepdims=0), {}),
    "join": (node("Concat", ["r", "x", "c"], "y", axis=0), {"c": np.ones((1, 3, 4), np.float32)}),
    "tile": (node("Tile", ["r", "s"], "y"), {"s": i64(2, 1, 2)}),
    "row": (node("Gather", ["r", "i"], "y", axis=0), {"i": np.array(1)}),
    "elements": (
        node("GatherElements", ["r", "i"], "y", axis=1),
        {"i": i64(*[2, 0] * 8).reshape(2, 2, 4)},
    ),
    "constants": (
        node("Mul", ["r", "c"], "y"),
        {"c": np.arange(2, dtype=np.float32).reshape(2, 1, 1)},
    ),
}


@pytest.mark.parametrize("case", MIXING)
def test_a_network_that_mixes_its_first_axis_is_one_sample(case: str, tmp_path: Path) -> None:
    made, weights = MIXING[case]
    more = {"zero": i64(0), "one": i64(1), "two": i64(2)}
    nodes = [node("Tanh", ["x"], "r"), made]
    graph = agrees_with_onnx(model(nodes, {**weights, **more}, x=(2, 3, 4)), tmp_path)
    assert graph.inputs[0].given_shape == (1, 2, 3, 4)


def test_channels_stay_channels_behind_a_mixed_axis(tmp_path: Path) -> None:
    nodes = [
        node("Transpose", ["x"], "t", perm=[2, 1, 0]),
        node("BatchNormalization", ["t", "s", "b", "b", "s"], "y"),
    ]
    weights = {"s": np.array([1, 2, 3], np.float32), "b": np.array([3, 0, -1], np.float32)}
    agrees_with_onnx(model(nodes, weights, x=(4, 3, 3)), tmp_path)


def test_a_join_along_any_axis(tmp_path: Path) -> None:
    nodes = [node("Tanh", ["x"], "r"), node("Concat", ["r", "c", "x"], "y", axis=2)]
    agrees_with_onnx(model(nodes, {"c": np.ones((1, 3, 2), np.float32)}, x=(1, 3, 4)), tmp_path)


def test_a_network_that_does_not_has_a_batch(tmp_path: Path) -> None:
    nodes = [node("Tanh", ["x"], "r"), node("Softmax", ["r"], "y")]
    graph = agrees_with_onnx(model(nodes, x=(2, 3, 4)), tmp_path)
    assert graph.inputs[0].given_shape == (2, 3, 4)
    assert graph.batch == 2


@pytest.mark.parametrize("shape", [(), (5,), (1,)])
def test_inputs_of_few_axes(shape: tuple[int, ...], tmp_path: Path) -> None:
    agrees_with_onnx(model([node("Sigmoid", ["x"], "y")], x=shape), tmp_path)


def test_inputs_that_begin_with_different_extents(tmp_path: Path) -> None:
    made = model([node("Add", ["x", "z"], "y")], x=(2, 1, 3))
    made.graph.input.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [4, 3]))
    graph = agrees_with_onnx(made, tmp_path)
    assert graph.shapes["y"] == (1, 2, 4, 3)


def test_refusals_are_those_of_the_likelier_reading(tmp_path: Path) -> None:
    nodes = [node("Transpose", ["x"], "t", perm=[1, 0, 2]), node("Det", ["t"], "y")]
    with pytest.raises(ModelError) as caught:
        import_model(saved(model(nodes, x=(2, 3, 4)), tmp_path))
    assert "moves the batch axis" in caught.value.what
    assert "y_n (Det): operator is not supported" in caught.value.what
