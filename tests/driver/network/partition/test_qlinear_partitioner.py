"""Networks in ONNX's own arithmetic as kernel calls of a processor: the same bits as operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.errors import DataError, SettingsError
from tilefarm.target import Target, load_target

from compile_worker.isa import isa_of
from driver.network.frontend.onnx import import_model
from driver.network.graph.ir import Window
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.partition.qlinear_layers import QLinearLayer
from driver.network.partition.qlinear_weights import zero_within_int8
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import Quantization

from .processor_networks import (
    I8MM,
    QUADS,
    RNG,
    VNNI,
    graph_of,
    of_one_zero,
    operators,
    partitioned,
    weights,
)

TARGETS = ("cpu:x86-64-v3", "cpu:neoverse-n1")
"""Weights in pairs, and in quads."""


CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "image": ((1, 3, 9, 9), (20, 3, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "gray": ((1, 1, 9, 9), (16, 1, 3, 2), {}),
    "image with gaps": ((1, 3, 9, 9), (16, 3, 3, 3), {"dilations": [2, 2]}),
    "blocks": ((1, 20, 7, 6), (33, 20, 3, 3), {"pads": [1, 1, 1, 1]}),
    "depthwise": ((1, 20, 7, 6), (20, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 20}),
    "depthwise, two of each": ((1, 6, 7, 6), (12, 1, 3, 3), {"group": 6}),
    "full groups": ((1, 32, 5, 5), (64, 16, 1, 1), {"group": 2}),
    "small groups": ((1, 24, 5, 5), (24, 6, 3, 3), {"group": 4}),
    "several samples": ((3, 20, 5, 5), (17, 20, 3, 3), {}),
    "one image of several": ((2, 3, 8, 8), (17, 3, 3, 3), {}),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_a_convolution_is_one_kernel(case: str, target: str, tmp_path: Path) -> None:
    x, weight, attrs = CONVOLUTIONS[case]
    nodes = [
        node("Conv", ["x", "w", "b"], "c", **attrs),
        node("Relu", ["c"], "y"),
    ]
    graph = graph_of(tmp_path, nodes, x, w=weights(*weight), b=weights(weight[0]))
    names = operators(partitioned(graph, target))
    assert names == ["quantize_linear", kernel_of(case, weight, target), "dequantize_linear"]


def kernel_of(case: str, weight: tuple[int, ...], target: str) -> str:
    if case == "depthwise":
        return "qlinear_depthwise2d"
    filtered = "image" not in case and weight[-1] == 3 and case != "one image of several"
    in_pairs = isa_of(load_target(target).host).together == 2
    return "qlinear_winograd2d" if filtered and in_pairs else "qlinear_conv2d"


@pytest.mark.parametrize(
    ("case", "packed"),
    [
        ("image", (2, 1, 3, 2, 1, 16, 8)),
        ("blocks", (3, 2, 3, 3, 2, 16, 8)),
        ("depthwise", (2, 3, 1, 16, 4)),
        ("full groups", (4, 1, 1, 1, 2, 16, 8)),
    ],
)
def test_weights_are_packed_for_products_of_matrices(
    case: str, packed: tuple[int, ...], tmp_path: Path
) -> None:
    x, weight, attrs = CONVOLUTIONS[case]
    nodes = [node("Conv", ["x", "w"], "y", **attrs)]
    network = partitioned(graph_of(tmp_path, nodes, x, w=weights(*weight)), I8MM)
    (layer,) = (step.workload for step in network.steps if step.workload.tensor("weight"))
    assert layer.inputs[1].shape == packed


WIDE: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "image": ((20, 3, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "blocks": ((17, 20, 3, 3), {"pads": [1, 1, 1, 1]}),
    "depthwise": ((20, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 20}),
    "full groups": ((64, 16, 1, 1), {"group": 2}),
}


@pytest.mark.parametrize("target", [*TARGETS, "cpu with VNNI"])
@pytest.mark.parametrize("case", WIDE)
def test_weights_that_leave_int8_are_read_once_where_int16_is_multiplied(
    case: str, target: str, tmp_path: Path
) -> None:
    """Zero points and weights are at the ends of uint8: weights less zero points, +-255."""
    weight, attrs = WIDE[case]
    groups = attrs.get("group", 1)
    channels = weight[1] * groups
    zeros = np.resize(np.array([0, 255, 131], np.uint8), weight[0])
    values = {
        "w": RNG.choice(np.array([0, 1, 130, 255], np.uint8), weight),
        "w.zero": zeros,
        "w.scale": np.full(weight[0], 0.004, np.float32),
        "scale": np.array(0.02, np.float32),
        "zero": np.array(119, np.uint8),
    }
    grid = ["scale", "zero"]
    taken = ["q", *grid, "w", "w.scale", "w.zero", *grid]
    nodes = [
        node("QuantizeLinear", ["x", *grid], "q"),
        node("QLinearConv", taken, "c", **attrs),
        node("DequantizeLinear", ["c", *grid], "y"),
    ]
    path = saved(model(nodes, values, x=(1, channels, 7, 6)), tmp_path)
    aim = VNNI if target == VNNI.name else load_target(target)
    quantized = quantize_for(aim, import_model(path, keeps_integers=True), None, Quantization())
    network = partition_network(quantized, aim)
    data = {"x": RNG.normal(0, 2, (1, channels, 7, 6)).astype(np.float32)}
    wanted, found = run_integer(quantized, data), run_network(network, data)
    np.testing.assert_array_equal(found["y"], wanted["y"])
    names = operators(network)[1:-1]
    weights_of_step = network.steps[-2].workload.inputs[1]
    if case == "depthwise":
        in_pairs = isa_of(aim.host).together == 2
        assert names == ["qlinear_depthwise2d"]
        assert weights_of_step.dtype is (DType.INT16 if in_pairs else DType.INT8)
        assert weights_of_step.shape[3:] == ((16, 2) if in_pairs else (3, 16, 4))
    elif not isa_of(aim.host).pair:
        assert names[-2:] == ["concat", "qlinear_conv2d"]
    else:
        assert names == ["qlinear_conv2d"]
        assert weights_of_step.dtype is DType.INT16


@pytest.mark.parametrize("aim", QUADS, ids=lambda aim: aim.name)
@pytest.mark.parametrize("case", ["blocks", "full groups"])
def test_quads_of_weights_keep_a_zero_point_that_all_have(
    case: str, aim: Target, tmp_path: Path
) -> None:
    weight, attrs = WIDE[case]
    network = of_one_zero(tmp_path, aim, weight, **attrs)
    assert operators(network)[1:-1] == ["qlinear_conv2d"]
    (layer,) = (step.workload for step in network.steps if step.workload.tensor("weight"))
    assert layer.inputs[1].dtype is DType.INT8
    assert layer.inputs[-1].name == "weight_zero"


@pytest.mark.parametrize("case", ["pairs", "image", "no room"])
def test_other_weights_are_int16(case: str, tmp_path: Path) -> None:
    """Where pairs are multiplied anyway, in layers of other forms, and where no row fits."""
    weight, attrs = WIDE["blocks" if case in ("pairs", "no room") else case]
    aim = load_target("cpu:x86-64-v3") if case == "pairs" else VNNI
    network = of_one_zero(tmp_path, aim, weight, 700 if case == "no room" else 6, **attrs)
    (layer,) = (step.workload for step in network.steps if step.workload.tensor("weight"))
    assert layer.inputs[1].dtype is DType.INT16
    assert layer.tensor("weight_zero") is None


@pytest.mark.parametrize(
    ("least", "most", "zero"),
    [
        (-128, 127, 0),
        (-131, 124, 3),
        (-100, 155, -28),
        (0, 255, -128),
        (20, 255, -128),
        (-1, 255, 0),
    ],
)
def test_the_zero_point_of_weights_brings_them_to_int8(least: int, most: int, zero: int) -> None:
    weight = np.array([least, most], np.int16)
    assert zero_within_int8(weight) == zero


@pytest.mark.parametrize(("channels", "filtered"), [(256, True), (512, False)])
def test_minimal_filtering_is_for_weights_that_stay_in_a_cache(
    channels: int, filtered: bool
) -> None:
    layer = QLinearLayer(
        data=(1, channels, 7, 7), outputs=channels, window=Window(kernel=(3, 3), pad=(1, 1, 1, 1))
    )
    assert layer.admits_winograd
    assert layer.packed_by(2).winograd == filtered


def test_a_flattened_image_is_read_as_it_is(tmp_path: Path) -> None:
    nodes = [
        node("Conv", ["x", "w"], "c"),
        node("Flatten", ["c"], "f"),
        node("Gemm", ["f", "m", "b"], "y", transB=1),
    ]
    values = {"w": weights(20, 5, 3, 3), "m": weights(10, 20 * 4 * 3), "b": weights(10)}
    network = partitioned(graph_of(tmp_path, nodes, (1, 5, 6, 5), **values), TARGETS[0])
    assert operators(network) == [
        "quantize_linear",
        "qlinear_winograd2d",
        "qlinear_conv2d",
        "dequantize_linear",
    ]


def test_a_residual_addition_and_pools(tmp_path: Path) -> None:
    nodes = [
        node("Conv", ["x", "w"], "a", pads=[1, 1, 1, 1]),
        node("Conv", ["a", "v"], "b", pads=[1, 1, 1, 1]),
        node("Add", ["a", "b"], "s"),
        node("Relu", ["s"], "r"),
        node("MaxPool", ["r"], "m", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("GlobalAveragePool", ["m"], "y"),
    ]
    values = {"w": weights(20, 3, 3, 3), "v": weights(20, 20, 3, 3)}
    names = operators(partitioned(graph_of(tmp_path, nodes, (1, 3, 8, 8), **values), TARGETS[0]))
    assert {"max_pool2d", "qlinear_avg_pool2d"} <= set(names)


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize(("first", "moves"), [(16, 0), (12, 1)])
def test_what_is_joined_is_made_in_its_place(
    first: int, moves: int, samples: int, tmp_path: Path
) -> None:
    nodes = [
        node("Conv", ["x", "w"], "a"),
        node("Conv", ["x", "v"], "b"),
        node("Concat", ["a", "b"], "c", axis=1),
        node("Conv", ["c", "u"], "y"),
    ]
    values = {
        "w": weights(first, 5, 1, 1),
        "v": weights(9, 5, 1, 1),
        "u": weights(7, first + 9, 1, 1),
    }
    network = partitioned(graph_of(tmp_path, nodes, (samples, 5, 4, 4), **values), TARGETS[0])
    names = operators(network)
    if samples == 1:
        assert names.count("gather") == moves
        assert "concat" not in names
    else:
        assert names.count("concat") == 1


def operators_of_joins(moved: onnx.NodeProto, folder: Path) -> list[str]:
    """Kernels of a network that joins `m`, which `moved` makes of `a`, and joins that again."""
    nodes = [
        node("Conv", ["x", "w"], "a"),
        moved,
        node("Conv", ["m", "v"], "b"),
        node("Concat", ["m", "b"], "c", axis=1),
        node("Conv", ["c", "u"], "d"),
        node("Concat", ["c", "d"], "e", axis=1),
        node("Conv", ["e", "t"], "y"),
    ]
    values = {
        "w": weights(16, 5, 1, 1),
        "v": weights(16, 16, 1, 1) / 4,  # ranges that are alike, or what is joined is no view
        "u": weights(16, 32, 1, 1) / 6,
        "t": weights(7, 48, 1, 1),
    }
    return operators(partitioned(graph_of(folder, nodes, (1, 5, 4, 4), **values), TARGETS[0]))


def test_what_is_pooled_and_joined_twice_is_made_in_its_place(tmp_path: Path) -> None:
    pooled = node("MaxPool", ["a"], "m", kernel_shape=[2, 2], pads=[0, 0, 1, 1])
    assert not {"concat", "relayout", "gather"} & set(operators_of_joins(pooled, tmp_path))


def test_a_join_of_what_is_joined_row_by_row_is_not_in_blocks(tmp_path: Path) -> None:
    turned = node("Transpose", ["a"], "m", perm=[0, 1, 3, 2])
    assert operators_of_joins(turned, tmp_path).count("concat") == 2


def test_moves_tables_products_and_floats(tmp_path: Path) -> None:
    nodes = [
        node("Conv", ["x", "w"], "c"),
        node("Sigmoid", ["c"], "s"),
        node("MaxPool", ["x"], "d", kernel_shape=[1, 1]),
        node("Mul", ["d", "s"], "m"),
        node("Reshape", ["m", "rows"], "r"),
        node("Transpose", ["r"], "t", perm=[0, 2, 1]),
        node("MatMul", ["r", "t"], "p"),
        node("Softmax", ["p"], "y", axis=2),
    ]
    values = {"w": weights(5, 5, 1, 1), "rows": np.array([1, 5, 12])}
    names = operators(partitioned(graph_of(tmp_path, nodes, (1, 5, 4, 3), **values), TARGETS[0]))
    assert {"lookup", "qlinear_zip", "qlinear_matmul", "real_softmax"} <= set(names)


def test_a_row_major_result_of_another_shape_is_read_as_it_is(tmp_path: Path) -> None:
    nodes = [
        node("Reshape", ["x", "heads"], "a"),
        node("Reshape", ["x", "turned"], "b"),
        node("MatMul", ["a", "b"], "p"),
        node("Softmax", ["p"], "y", axis=3),
    ]
    shapes = {"heads": [1, 2, 5, 6], "turned": [1, 2, 6, 5]}
    values = {name: np.array(shape) for name, shape in shapes.items()}
    names = operators(partitioned(graph_of(tmp_path, nodes, (1, 5, 4, 3), **values), TARGETS[0]))
    after = names[names.index("qlinear_matmul") + 1 :]
    assert after == ["dequantize_linear", "real_softmax"]


def test_heads_as_wide_as_blocks_are_turned_without_a_step(tmp_path: Path) -> None:
    """Sixteen channels of a pixel side by side are a row of the turned matrix."""
    nodes = [
        node("Conv", ["x", "w"], "c"),
        node("Reshape", ["c", "heads"], "h"),
        node("Transpose", ["h"], "t", perm=[0, 1, 3, 2]),
        node("MatMul", ["h", "t"], "y"),
    ]
    values = {"w": weights(32, 5, 1, 1), "heads": np.array([1, 2, 16, 12])}
    names = operators(partitioned(graph_of(tmp_path, nodes, (1, 5, 4, 3), **values), TARGETS[0]))
    wanted = ["quantize_linear", "qlinear_conv2d", "qlinear_matmul", "dequantize_linear"]
    assert names == wanted
    narrow = values | {"w": weights(24, 5, 1, 1), "heads": np.array([1, 2, 12, 12])}
    names = operators(partitioned(graph_of(tmp_path, nodes, (1, 5, 4, 3), **narrow), TARGETS[0]))
    assert names == [*wanted[:2], "gather", *wanted[2:]]


def test_phases_and_products_of_activations_are_packed_for_matrices_too(tmp_path: Path) -> None:
    nodes = [
        node("ConvTranspose", ["x", "w"], "c", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Reshape", ["c", "heads"], "h"),
        node("Transpose", ["h"], "t", perm=[0, 1, 3, 2]),
        node("MatMul", ["h", "t"], "y"),
    ]
    values = {"w": np.ones((18, 32, 4, 4), np.float32), "heads": np.array([1, 2, 16, 80])}
    network = partitioned(graph_of(tmp_path, nodes, (1, 18, 4, 5), **values), I8MM)
    made = {step.workload.operator: step.workload for step in network.steps}
    assert made["qlinear_conv2d_transpose"].inputs[1].shape == (2, 2, 2, 2, 3, 3, 2, 16, 8)
    assert dict(made["qlinear_matmul"].attrs)["depth"] == 8


def transposed(tmp_path: Path, kernel: NDArray[np.float32]) -> list[str]:
    nodes = [
        node("ConvTranspose", ["x", "w"], "c", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], "y"),
    ]
    return operators(partitioned(graph_of(tmp_path, nodes, (1, 18, 4, 5), w=kernel), TARGETS[0]))


def test_a_transposed_convolution_whose_phases_differ_reads_spread_data(tmp_path: Path) -> None:
    names = transposed(tmp_path, weights(18, 20, 4, 4))
    assert names == ["quantize_linear", "gather", "qlinear_conv2d", "dequantize_linear"]


def test_a_transposed_convolution_of_like_phases_is_one_kernel(tmp_path: Path) -> None:
    names = transposed(tmp_path, np.ones((18, 20, 4, 4), np.float32))
    assert names == ["quantize_linear", "qlinear_conv2d_transpose", "dequantize_linear"]


def test_the_kernels_with_spaces_are_searched(tmp_path: Path) -> None:
    nodes = [
        node("Conv", ["x", "w"], "c"),
        node("Conv", ["c", "v"], "y", group=20),
    ]
    values = {"w": weights(20, 5, 1, 1), "v": weights(20, 1, 3, 3)}
    network = partitioned(graph_of(tmp_path, nodes, (1, 5, 8, 8), **values), TARGETS[0])
    searched = [workload.operator for workload, _ in network.workloads()]
    assert searched == ["qlinear_conv2d", "qlinear_depthwise2d"]
    assert {step.place for step in network.steps} == {"cpu"}


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (Quantization(activations="symmetric"), "--activations symmetric"),
        (Quantization(equalize=True), "--equalize"),
        (Quantization(share_shifts=True), "--share-shifts"),
        (Quantization(requantize="mul"), "--requantize mul"),
        (Quantization(correct_bias=True), "--correct-bias"),
        (Quantization(fit_weights=False), "--no-fit-weights"),
        (Quantization(wide=("*",)), "--wide-weights"),
        (Quantization(wide_activations=("*",)), "--wide-activations"),
    ],
)
def test_options_of_accelerators_are_refused(how: Quantization, said: str, tmp_path: Path) -> None:
    graph = graph_of(tmp_path, [node("Conv", ["x", "w"], "y")], (1, 5, 4, 4), w=weights(5, 5, 1, 1))
    data = {"x": np.ones((1, 5, 4, 4), np.float32)}
    with pytest.raises(SettingsError, match=said):
        quantize_for(load_target("cpu"), graph, data, how)


def test_a_float_network_needs_data(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, [node("Conv", ["x", "w"], "y")], (1, 5, 4, 4), w=weights(5, 5, 1, 1))
    with pytest.raises(DataError, match="needs --calibrate"):
        quantize_for(load_target("cpu"), graph, None, Quantization())


@pytest.mark.parametrize(("target", "shape"), [(TARGETS[0], (3, 16, 2)), (TARGETS[1], (2, 16, 4))])
def test_channels_that_a_lone_block_lacks_are_not_multiplied(
    target: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    nodes = [node("Conv", ["x", "w"], "y", strides=[2, 2])]
    network = partitioned(graph_of(tmp_path, nodes, (1, 6, 7, 6), w=weights(9, 6, 3, 3)), target)
    (layer,) = (step.workload for step in network.steps if step.workload.tensor("weight"))
    assert layer.inputs[1].shape[4:] == shape
