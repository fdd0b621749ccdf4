"""Operators that move elements, through the importer, against ONNX's reference evaluator."""

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
from tilefarm.target import TARGETS

from driver.network import import_model
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Conv2d, Graph
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize

RNG = np.random.default_rng(7)
SHAPE = (1, 4, 6, 4)


def i64(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def f32(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def check(made: onnx.ModelProto, folder: Path) -> Graph:
    """The import agrees with the evaluator, and the kernels with the integer network."""
    graph = import_model(saved(made, folder))
    (given,) = graph.inputs
    x = RNG.standard_normal(given.given_shape).astype(np.float32)
    wanted: Any = ReferenceEvaluator(made).run(None, {"x": x})
    inputs = {"x": x.transpose(given.axes)}
    (got,) = run_float(graph, inputs).values()
    np.testing.assert_allclose(got, wanted[0], rtol=1e-4, atol=1e-5)
    quantized = quantize(graph, inputs)
    (integers,) = run_integer(quantized, inputs).values()
    (kernels,) = run_network(partition_network(quantized, TARGETS["sim"]), inputs).values()
    assert kernels.tobytes() == integers.tobytes()
    assert len({each.name for each in graph.nodes}) == len(graph.nodes)
    return graph


EMPTY = np.zeros(0, np.float32)
CASES: dict[str, tuple[onnx.NodeProto, dict[str, NDArray[Any]]]] = {
    "transpose": (node("Transpose", ["r"], "y", perm=[0, 2, 3, 1]), {}),
    "transpose_of_all": (node("Transpose", ["r"], "y", perm=[0, 3, 2, 1]), {}),
    "pad": (node("Pad", ["r", "p"], "y"), {"p": i64(0, 1, 2, 0, 0, 0, 1, 3)}),
    "pad_edge": (node("Pad", ["r", "p"], "y", mode="edge"), {"p": i64(0, 0, 2, 1, 0, 0, 0, 1)}),
    "pad_axes": (
        node("Pad", ["r", "p", "", "a"], "y", mode="reflect"),
        {"p": i64(1, 2, 2, 1), "a": i64(2, -1)},
    ),
    "slice": (
        node("Slice", ["r", "b", "e", "a", "s"], "y"),
        {"b": i64(5, 1, 0), "e": i64(-100, 4, 9), "a": i64(2, 3, 1), "s": i64(-2, 1, 3)},
    ),
    "split": (node("Split", ["r"], "y", "z", axis=3), {}),
    "depth_to_space": (node("DepthToSpace", ["r"], "y", blocksize=2), {}),
    "depth_to_space_crd": (node("DepthToSpace", ["r"], "y", blocksize=2, mode="CRD"), {}),
    "space_to_depth": (node("SpaceToDepth", ["r"], "y", blocksize=2), {}),
    "gather": (node("Gather", ["r", "i"], "y", axis=2), {"i": i64(3, -1, 0, 3)}),
    "expand": (node("Expand", ["m", "e"], "y"), {"e": i64(1, 4, 3, 5)}),
    "resize_scales": (
        node("Resize", ["r", "", "s"], "y", coordinate_transformation_mode="asymmetric"),
        {"s": f32(1, 1, 2, 3)},
    ),
    "resize_sizes": (
        node("Resize", ["r", "", "", "s"], "y", nearest_mode="floor"),
        {"s": i64(1, 4, 9, 7)},
    ),
    "resize_axes": (
        node("Resize", ["r", "", "s"], "y", axes=[3, 2], nearest_mode="ceil"),
        {"s": f32(0.5, 1.5)},
    ),
    "resize_linear": (node("Resize", ["r", "", "s"], "y", mode="linear"), {"s": f32(1, 1, 2, 1.5)}),
    "resize_cubic": (
        node("Resize", ["r", "", "", "s"], "y", mode="cubic", antialias=1),
        {"s": i64(1, 4, 3, 4)},
    ),
    "resize_in_proportion": (
        node("Resize", ["r", "", "", "s"], "y", keep_aspect_ratio_policy="not_larger", axes=[2, 3]),
        {"s": i64(9, 7)},
    ),
    "squeeze_and_excite": (node("Mul", ["r", "m"], "y"), {}),
    "columns": (node("Sub", ["c", "r"], "y"), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_move(case: str, tmp_path: Path) -> None:
    moved, weights = CASES[case]
    nodes = [
        node("Tanh", ["x"], "r"),
        node("GlobalAveragePool", ["r"], "m"),
        node("ReduceMean", ["r"], "unused", axes=[2, 3]),
        node("Slice", ["r", "first", "second", "axis"], "c"),
        moved,
    ]
    needed = {*moved.input, "r"}
    kept = [each for each in nodes if each is moved or each.output[0] in needed]
    more = {"first": i64(0), "second": i64(1), "axis": i64(3)} if "c" in needed else {}
    check(model(kept, {**weights, **more}, x=SHAPE, opset=18), tmp_path)


def test_negative_pads_cut(tmp_path: Path) -> None:
    nodes = [node("Pad", ["x", "p"], "y")]
    weights = {"p": i64(0, 0, -1, 2, 0, -2, 0, -1)}
    graph = import_model(saved(model(nodes, weights, x=SHAPE), tmp_path))
    x = RNG.standard_normal(SHAPE).astype(np.float32)
    (got,) = run_float(graph, {"x": x}).values()
    wanted = np.pad(x[:, :2, 1:, :3], ((0, 0), (0, 0), (0, 0), (2, 0)))
    assert got.tobytes() == wanted.tobytes()


def test_upsampling_of_old_models(tmp_path: Path) -> None:
    nodes = [node("Tanh", ["x"], "r"), node("Upsample", ["r", "s"], "y")]
    check(model(nodes, {"s": f32(1, 1, 2, 2)}, x=SHAPE, opset=9), tmp_path)


def test_zeros_around_an_image_become_padding_of_the_convolution(tmp_path: Path) -> None:
    nodes = [
        node("Tanh", ["x"], "r"),
        node("Pad", ["r", "p"], "q"),
        node("Conv", ["q", "w"], "y", strides=[2, 2], pads=[1, 0, 0, 0]),
    ]
    weights: dict[str, NDArray[Any]] = {
        "p": i64(0, 0, 0, 1, 0, 0, 1, 2),
        "w": RNG.standard_normal((5, 4, 3, 3)).astype(np.float32),
    }
    graph = check(model(nodes, weights, x=SHAPE), tmp_path)
    conv = graph.nodes[-1].op
    assert isinstance(conv, Conv2d)
    assert len(graph.nodes) == 2
    assert conv.window.pad == (1, 1, 1, 2)


def test_zeros_that_somebody_else_reads_stay(tmp_path: Path) -> None:
    nodes = [
        node("Pad", ["x", "p"], "q"),
        node("Conv", ["q", "w"], "c"),
        node("Add", ["q", "c"], "y"),
    ]
    weights: dict[str, NDArray[Any]] = {
        "p": i64(0, 0, 1, 1, 0, 0, 1, 1),
        "w": np.ones((4, 4, 1, 1), np.float32),
    }
    assert len(check(model(nodes, weights, x=SHAPE), tmp_path).nodes) == 3


def test_channels_shuffled_by_reshapes_are_one_gather(tmp_path: Path) -> None:
    nodes = [
        node("Tanh", ["x"], "r"),
        node("Reshape", ["r", "split"], "s"),
        node("Transpose", ["s"], "t", perm=[0, 2, 1, 3, 4]),
        node("Reshape", ["t", "back"], "u"),
        node("Relu", ["u"], "y"),
    ]
    weights: dict[str, NDArray[Any]] = {"split": i64(1, 2, 2, 6, 4), "back": i64(*SHAPE)}
    graph = check(model(nodes, weights, x=SHAPE), tmp_path)
    assert [type(n.op).__name__ for n in graph.nodes] == ["Unary", "Clip", "Gather"]


def test_moves_that_undo_each_other_are_nothing(tmp_path: Path) -> None:
    nodes = [
        node("Tanh", ["x"], "r"),
        node("Transpose", ["r"], "t", perm=[0, 2, 3, 1]),
        node("Transpose", ["t"], "y", perm=[0, 3, 1, 2]),
    ]
    assert len(check(model(nodes, x=SHAPE), tmp_path).nodes) == 1


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (node("Pad", ["x", "p", "huge"], "y"), "pads with 1e+30; at most 1e+06 is supported"),
        (node("Pad", ["x", "p"], "y", mode="mirror"), "mode 'mirror' is unknown"),
        (node("Pad", ["x", "s"], "y"), "pads [2, 2] do not fit 4 axes"),
        (node("Resize", ["x", "", "z4"], "y", mode="area"), "mode 'area' is unknown"),
        (node("Resize", ["x", "", "f"], "y"), "scales or sizes do not fit"),
        (node("Resize", ["x", "", "z"], "y"), "are not scales"),
        (node("DepthToSpace", ["x"], "y", blocksize=3), "blocksize 3 does not divide"),
        (node("SpaceToDepth", ["x"], "y", blocksize=4), "blocksize 4 does not divide"),
        (node("Gather", ["x", "f"], "y", axis=1), "takes float32 indices of axis 1"),
        (node("Tile", ["x", "s"], "y"), "repeats [2, 2] do not fit [1, 4, 6, 4]"),
        (node("Gather", ["x", "big"], "y", axis=1), "an index is outside axis 1"),
        (node("Expand", ["x", "s"], "y"), "does not fit [2, 2]"),
        (node("Slice", ["x", "s", "s", "s"], "y"), "output 'y' is not computed from the input"),
    ],
)
def test_what_is_refused(made: onnx.NodeProto, said: str, tmp_path: Path) -> None:
    weights: dict[str, NDArray[Any]] = {
        "p": i64(0, 0, 1, 0, 0, 0, 0, 0),
        "huge": f32(1e30),
        "s": i64(2, 2),
        "f": f32(2, 2),
        "z4": f32(1, 1, 2, 2),
        "z": f32(1, 1, 0, np.inf),
        "big": i64(4),
    }
    nodes = [node("Relu", ["x"], "r"), made] if "r" in made.input else [made]
    with pytest.raises(ModelError) as caught:
        import_model(saved(model(nodes, weights, x=SHAPE), tmp_path))
    assert said in caught.value.what


def test_the_nearest_pixel_as_tensorflow_counts_them(tmp_path: Path) -> None:
    """Its half is not taken away again; only the sets of operators before 13 have it."""
    kind = "tf_half_pixel_for_nn"
    call = node("Resize", ["x", "none", "double"], "y", coordinate_transformation_mode=kind)
    given = {"none": np.zeros(0, np.float32), "double": np.array([1, 1, 1, 2], np.float32)}
    graph = import_model(saved(model([call], given, x=(1, 1, 1, 4), opset=11), tmp_path))
    row = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
    assert run_float(graph, {"x": row})["y"].ravel().tolist() == [0, 1, 1, 2, 2, 3, 3, 3]
    call.attribute.append(onnx.helper.make_attribute("mode", "linear"))
    made = model([call], given, x=(1, 1, 1, 4), opset=11)
    with pytest.raises(ModelError, match="is for mode 'nearest'"):
        import_model(saved(made, tmp_path))


@pytest.mark.parametrize(
    ("scale", "pixels", "shown"),
    [(1.6, 6, {4: 2, 7: 4, 8: 5}), (1.3, 10, {12: 9}), (0.7, 10, {6: 8})],
)
def test_scales_are_taken_in_float32(
    scale: float, pixels: int, shown: dict[int, int], tmp_path: Path
) -> None:
    """As frameworks do: 8 / 1.6 is 5, and 10 pixels are 13 at 1.3 and 7 at 0.7."""
    modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    given = {"scales": np.array([1, 1, 1, scale], np.float32)}
    call = node("Resize", ["x", "", "scales"], "y", **modes)
    graph = import_model(saved(model([call], given, x=(1, 1, 1, pixels)), tmp_path))
    row = np.arange(pixels, dtype=np.float32).reshape(1, 1, 1, -1)
    found = run_float(graph, {"x": row})["y"].ravel()
    assert len(found) == int(pixels * scale + 0.01)
    assert {at: found[at] for at in shown} == shown
