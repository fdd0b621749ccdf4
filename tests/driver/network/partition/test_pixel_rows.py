"""Layers on a processor have their pixels in rows: the same bits as before, of the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.networks.onnx_models import node
from tilefarm.target import Target, load_target
from tilefarm.workload import Workload

from compile_worker.machines.cpu.space.dense import is_dense
from driver.network.graph.ir import Window
from driver.network.integer.network import Network
from driver.network.partition.pixel_rows import in_rows

from .processor_networks import I8MM, QUADS, VNNI, graph_of, of_one_zero, partitioned, weights

TARGETS = (load_target("cpu:x86-64-v3"), VNNI, I8MM)

CONVOLUTIONS: dict[
    str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], tuple[int, int]]
] = {
    "pixels": ((1, 20, 5, 6), (33, 20, 1, 1), {}, (1, 30)),
    "pixels of several samples": ((3, 20, 5, 6), (33, 20, 1, 1), {}, (1, 30)),
    "pixels in groups": ((1, 32, 5, 6), (64, 16, 1, 1), {"group": 2}, (1, 30)),
    "pixels by themselves": ((1, 20, 5, 6), (20, 1, 1, 1), {"group": 20}, (1, 30)),
    "pixels of few channels": ((1, 3, 5, 6), (33, 3, 1, 1), {}, (5, 18)),
    "pixels of wide rows": ((1, 20, 2, 8), (33, 20, 1, 1), {}, (2, 8)),
    "every other pixel": ((1, 20, 5, 6), (33, 20, 1, 1), {"strides": [2, 2]}, (5, 6)),
    "column": ((1, 20, 9, 1), (33, 20, 4, 1), {"pads": [1, 0, 2, 0]}, (1, 9)),
    "column in a frame": ((1, 20, 9, 1), (33, 20, 3, 3), {"pads": [1, 1, 1, 1]}, (1, 9)),
    "column with gaps": (
        (2, 20, 9, 1),
        (33, 20, 3, 1),
        {"pads": [2, 0, 1, 0], "strides": [2, 1], "dilations": [2, 1]},
        (1, 9),
    ),
    "column of few channels": ((1, 3, 9, 1), (33, 3, 3, 1), {"dilations": [2, 1]}, (1, 9)),
    "column by itself": ((1, 20, 9, 1), (20, 1, 3, 1), {"pads": [1, 0, 1, 0], "group": 20}, (1, 9)),
    "column in groups": ((1, 32, 9, 1), (32, 16, 3, 1), {"group": 2}, (1, 9)),
    "column that grows": ((1, 20, 9, 1), (33, 20, 1, 1), {"pads": [0, 1, 0, 1]}, (9, 1)),
}


def layer_of(network: Network) -> Workload:
    (layer,) = (step.workload for step in network.steps if step.workload.tensor("weight"))
    return layer


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_pixels_are_side_by_side(case: str, target: Target, tmp_path: Path) -> None:
    x, weight, attrs, image = CONVOLUTIONS[case]
    nodes = [node("Conv", ["x", "w", "b"], "y", **attrs)]
    values = {"w": weights(*weight), "b": weights(weight[0])}
    layer = layer_of(partitioned(graph_of(tmp_path, nodes, x, **values), target))
    assert layer.inputs[0].shape[2:4] == image


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_rows_of_a_product_are_a_dense_layer(target: Target, tmp_path: Path) -> None:
    nodes = [node("MatMul", ["x", "w"], "y")]
    graph = graph_of(tmp_path, nodes, (1, 13, 20), w=weights(20, 33))
    assert is_dense(layer_of(partitioned(graph, target)))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize(
    ("x", "shape", "attrs", "image"),
    [
        ((2, 20, 9, 1), (20, 17, 4, 1), {"strides": [2, 1], "pads": [1, 0, 1, 0]}, (1, 9)),
        ((1, 20, 9, 1), (20, 17, 3, 3), {"strides": [3, 1], "pads": [0, 1, 0, 1]}, (1, 9)),
        ((1, 20, 9, 1), (20, 17, 2, 2), {"strides": [2, 2]}, (9, 1)),
    ],
)
def test_so_are_those_of_transposed_columns(
    x: tuple[int, ...],
    shape: tuple[int, ...],
    attrs: dict[str, Any],
    image: tuple[int, int],
    target: Target,
    tmp_path: Path,
) -> None:
    """Of like phases: each has the same weights, of other channels."""
    kernel, values = np.empty(shape, np.float32), weights(*shape[:2])
    for number, (row, column) in enumerate(np.ndindex(shape[2:])):
        kernel[:, :, row, column] = np.roll(values, number, axis=0)
    nodes = [node("ConvTranspose", ["x", "w"], "y", **attrs)]
    layer = layer_of(partitioned(graph_of(tmp_path, nodes, x, w=kernel), target))
    assert layer.operator == "qlinear_conv2d_transpose"
    assert layer.inputs[0].shape[2:4] == image


@pytest.mark.parametrize("shape", [(1, 20, 5, 6), (1, 20, 9, 1)])
def test_another_operand_lies_as_the_result_does(shape: tuple[int, ...], tmp_path: Path) -> None:
    nodes = [node("Conv", ["x", "w"], "a"), node("Add", ["x", "a"], "y")]
    graph = graph_of(tmp_path, nodes, shape, w=weights(20, 20, 1, 1))
    layer = layer_of(partitioned(graph, TARGETS[0]))
    other = layer.tensor("other")
    assert other is not None
    assert other.shape == layer.outputs[0].shape == (1, 2, 1, shape[2] * shape[3], 1, 16)


@pytest.mark.parametrize("aim", QUADS, ids=lambda aim: aim.name)
def test_a_zero_point_of_weights_stays(aim: Target, tmp_path: Path) -> None:
    network = of_one_zero(tmp_path, aim, (17, 20, 3, 1), 1, pads=[1, 0, 1, 0])
    layer = layer_of(network)
    assert layer.inputs[0].shape[2:4] == (1, 7)
    assert layer.inputs[-1].name == "weight_zero"


def test_a_window_is_turned_with_its_column() -> None:
    window = Window(kernel=(3, 2), stride=(4, 5), pad=(1, 0, 2, 1), dilation=(2, 1))
    turned = in_rows((1, 20, 9, 1), window)
    assert turned.data == (1, 20, 1, 9)
    wanted = Window(kernel=(2, 3), stride=(5, 4), pad=(0, 1, 1, 2), dilation=(1, 2))
    assert turned.window == wanted
    assert window.positions(9, 1) == wanted.positions(1, 9)[::-1]
