"""Data of the sign that dot products take: the same bits as data of the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.onnx_models import model, node, saved
from kit.networks.qdq import layer_weights, two_convolutions
from kit.networks.random_networks import networks, samples_for
from tilefarm.dtype import DType
from tilefarm.processors import AARCH64, X86_64, processor
from tilefarm.target import Host, Target, load_target

from driver.network.frontend.onnx import import_model
from driver.network.graph.grid import Grid
from driver.network.graph.ir import Graph
from driver.network.integer.qir import QuantGraph
from driver.network.integer.qlinear import QuantizeLinear
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.data_signs import with_data_of
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import Quantization

BYTES = (DType.INT8, DType.UINT8)
CPU = load_target("cpu:x86-64-v3")
VNNI = processor("cpu with VNNI", Host(triple=X86_64, cpu="cascadelake"))
TAKERS = {
    VNNI: DType.UINT8,
    processor("cpu with AVX-VNNI", Host(triple=X86_64, cpu="alderlake")): DType.UINT8,
    processor("cpu with sdot", Host(triple=AARCH64, cpu="neoverse-n1")): DType.INT8,
}
"""Processors whose products take data of one sign."""


def quantized(graph: Graph) -> QuantGraph:
    data = samples_for(graph, 3, count=2 * graph.batch)
    return quantize_for(CPU, graph, data, Quantization())


def assert_moved_the_same(graph: QuantGraph, inputs: dict[str, np.ndarray], wanted: DType) -> None:
    moved = with_data_of(graph, wanted)
    found = run_integer(moved, inputs, keep=True)
    for output in graph.outputs:
        np.testing.assert_array_equal(found[output.name], run_integer(graph, inputs)[output.name])
    for name, tensor in moved.tensors.items():
        assert tensor.dtype in (wanted, DType.FLOAT32)
        if name in found and name not in [output.name for output in graph.outputs]:
            assert found[name].dtype == tensor.dtype.value


@settings(max_examples=examples(30), deadline=None)
@given(drawn=networks(), first=st.sampled_from(BYTES))
def test_a_network_has_the_same_bits_on_data_of_either_sign(
    drawn: tuple[Graph, int], first: DType
) -> None:
    graph, seed = drawn
    inputs = samples_for(graph, seed, count=graph.batch)
    one = with_data_of(quantized(graph), first)
    for wanted in BYTES:
        assert_moved_the_same(one, inputs, wanted)


def of_every_kind(tmp_path: Path) -> Graph:
    """Products of two tensors, tables, moves, sums and pools between layers."""
    rng = np.random.default_rng(5)
    nodes = [
        node("Conv", ["x", "w"], "c", pads=[1, 1, 1, 1]),
        node("Sigmoid", ["c"], "s"),
        node("Mul", ["x", "s"], "m"),
        node("ConvTranspose", ["m", "v"], "u", strides=[2, 2]),
        node("Relu", ["u"], "v.r"),
        node("MaxPool", ["v.r"], "p", kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Concat", ["p", "p"], "j", axis=1),
        node("AveragePool", ["j"], "a", kernel_shape=[2, 2], pads=[1, 1, 1, 1]),
        node("Reshape", ["a", "rows"], "r"),
        node("Transpose", ["r"], "t", perm=[0, 2, 1]),
        node("MatMul", ["r", "t"], "q"),
        node("Softmax", ["q"], "y", axis=2),
    ]
    values = {
        "w": rng.normal(0, 1, (5, 5, 3, 3)).astype(np.float32),
        "v": rng.normal(0, 1, (5, 3, 3, 3)).astype(np.float32),
        "rows": np.array([1, 6, -1]),
    }
    return import_model(saved(model(nodes, values, x=(1, 5, 4, 3)), tmp_path))


@pytest.mark.parametrize("wanted", BYTES)
def test_every_operator_moves(wanted: DType, tmp_path: Path) -> None:
    graph = of_every_kind(tmp_path)
    inputs = samples_for(graph, 4, count=1)
    for first in BYTES:
        assert_moved_the_same(with_data_of(quantized(graph), first), inputs, wanted)


@pytest.mark.parametrize("target", TAKERS, ids=lambda target: target.name)
def test_kernels_read_what_the_instruction_takes(target: Target, tmp_path: Path) -> None:
    """A model whose first tensor is uint8 and whose others are int8."""
    path = saved(two_convolutions(layer_weights()), tmp_path)
    graph = quantize_for(target, import_model(path, keeps_integers=True), None, Quantization())
    assert {*BYTES} <= {tensor.dtype for tensor in graph.tensors.values()}
    network = partition_network(graph, target)
    data = [spec.dtype for step in network.steps for spec in step.workload.inputs[:1]]
    assert {*data} == {DType.FLOAT32, TAKERS[target]}
    inputs = samples_for(import_model(path), 4, count=1)
    wanted, found = run_integer(graph, inputs), run_network(network, inputs)
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values)


def test_where_either_sign_will_do_data_stay_as_the_model_has_them(tmp_path: Path) -> None:
    path = saved(two_convolutions(layer_weights()), tmp_path)
    graph = quantize_for(CPU, import_model(path, keeps_integers=True), None, Quantization())
    assert with_data_of(graph, None) is graph
    network = partition_network(graph, CPU)
    assert {*BYTES} <= {step.workload.inputs[0].dtype for step in network.steps}


def test_a_grid_of_fewer_bits_stays(tmp_path: Path) -> None:
    """int4 -8..7 would be 120..135 of uint8, whose ends no grid has."""
    graph = quantized(of_every_kind(tmp_path))
    int4 = QuantizeLinear(grid=Grid(0.1, 0, "int4"))
    nodes = [
        replace(each, op=int4) if isinstance(each.op, QuantizeLinear) else each
        for each in graph.nodes
    ]
    few = replace(graph, nodes=tuple(nodes))
    assert with_data_of(few, DType.UINT8) is few
