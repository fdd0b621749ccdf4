"""Operands that layers combine their results with: the same bits, wherever it may be done."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.random_networks import Builder, conv, dense, samples_for, transposed, window
from kit.networks.simulated import program_of
from tilefarm.target import load_target

from driver.benchmarks.processor.whole_programs import WholeProgram
from driver.network.graph.ir import Add, Clip, Graph, Operator, Product, Reshape
from driver.network.integer.network import Network
from driver.network.integer.qir import QuantGraph
from driver.network.integer.qlinear import QLinearFused
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.partition.qlinear_fusion import with_fused_operands
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import Quantization

TARGETS = {name: load_target(name) for name in ("cpu", "cpu:x86-64-v3", "cpu:x86-64-v4")}
JOINED: dict[str, Operator] = {
    "sum": Add(),
    "rectified": Add(lo=0.0, hi=2.0),
    "difference": Add(subtracts=True),
    "product": Product(),
    "quotient": Product(divides=True),
}
NEVER_BY_ZERO = [name for name in JOINED if name != "quotient"]


def quantized(graph: Graph) -> QuantGraph:
    data = samples_for(graph, 3, count=2 * graph.batch)
    return quantize_for(TARGETS["cpu"], graph, data, Quantization())


def fused(graph: QuantGraph) -> list[str]:
    """The layers that have another operand, by name."""
    nodes = with_fused_operands(graph).nodes
    return [node.name for node in nodes if isinstance(node.op, QLinearFused)]


@st.composite
def residual_networks(draw: st.DrawFn) -> Graph:
    """Blocks of layers and what joins them: shortcuts with layers or not, read once or more."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    channels = draw(st.sampled_from([3, 16, 17]))
    b = Builder(
        (draw(st.integers(1, 2)), channels, draw(st.integers(3, 6)), draw(st.integers(3, 6)))
    )
    name, outputs = b.put(Clip(lo=-2.0, hi=2.0), "x"), []
    for _ in range(draw(st.integers(1, 3))):
        shortcut = name
        if draw(st.booleans()):
            shortcut = b.put(conv(rng, channels, channels, window(1)), name)
        groups = draw(st.sampled_from([1, channels]))
        branch = b.put(conv(rng, channels, channels, window(3, pad=1), groups), name)
        order = draw(st.permutations([shortcut, branch]))
        name = b.put(JOINED[draw(st.sampled_from(NEVER_BY_ZERO))], *order)
        if draw(st.booleans()):
            outputs.append(draw(st.sampled_from([shortcut, branch])))
    return b.graph(name, *dict.fromkeys(outputs))


def assert_rewritten_the_same(graph: Graph) -> None:
    whole = quantized(graph)
    inputs = samples_for(graph, 4, count=graph.batch)
    found = run_integer(with_fused_operands(whole), inputs)
    for name, values in run_integer(whole, inputs).items():
        np.testing.assert_array_equal(found[name], values)


@settings(max_examples=examples(15), deadline=None)
@given(graph=residual_networks())
def test_the_rewrite_keeps_every_bit(graph: Graph) -> None:
    assert_rewritten_the_same(graph)


@settings(max_examples=examples(10), deadline=None)
@given(graph=residual_networks(), target=st.sampled_from(list(TARGETS)))
def test_calls_and_the_program_give_the_references_bits(graph: Graph, target: str) -> None:
    whole = quantized(graph)
    inputs = samples_for(graph, 4, count=graph.batch)
    network = partition_network(whole, TARGETS[target])
    answers = [run_network(network, inputs)]
    if target == "cpu":
        answers.append(ran(network, inputs))
    for name, values in run_integer(whole, inputs).items():
        for each in answers:
            np.testing.assert_array_equal(each[name], values)


def ran(network: Network, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the network's program makes of a batch on this processor."""
    with TemporaryDirectory() as folder:
        program = WholeProgram(program_of(network), inputs, Path(folder) / "program.so")
        program.call()
        program.close()
        return program.outputs()


def block(op: Operator, *, mine_first: bool = True) -> Graph:
    """n1 is a layer whose result is combined with that of n0."""
    rng = np.random.default_rng(0)
    b = Builder((1, 5, 4, 4))
    source = b.put(Clip(lo=0.5, hi=2.0), "x")
    layer = replace(conv(rng, 5, 5, window(3, pad=1)), lo=0.5)
    mine = b.put(layer, source)
    return b.graph(b.put(op, *((mine, source) if mine_first else (source, mine))))


@pytest.mark.parametrize("mine_first", [True, False])
@pytest.mark.parametrize("name", JOINED)
def test_a_difference_and_a_quotient_begin_with_the_layer(name: str, mine_first: bool) -> None:
    graph = block(JOINED[name], mine_first=mine_first)
    is_fused = mine_first or name not in ("difference", "quotient")
    assert fused(quantized(graph)) == ["n1"] * is_fused
    assert_rewritten_the_same(graph)


def test_of_two_layers_the_last_computes_the_sum() -> None:
    rng = np.random.default_rng(0)
    b = Builder((1, 5, 4, 4))
    layers = [b.put(conv(rng, 5, 5, window(1)), "x") for _ in range(2)]
    assert fused(quantized(b.graph(b.put(Add(), *layers)))) == ["n1"]


def test_a_result_that_somebody_else_reads_is_written() -> None:
    rng = np.random.default_rng(0)
    b = Builder((1, 5, 4, 4))
    layer = b.put(conv(rng, 5, 5, window(1)), "x")
    assert fused(quantized(b.graph(b.put(Add(), layer, "x"), layer))) == []
    b = Builder((1, 5, 4, 4))
    layer = b.put(conv(rng, 5, 5, window(1)), "x")
    assert fused(quantized(b.graph(b.put(Add(), layer, layer)))) == []


def test_an_operand_that_is_repeated_is_joined_by_itself() -> None:
    rng = np.random.default_rng(0)
    b = Builder((1, 5, 4, 4))
    layer = b.put(conv(rng, 5, 5, window(1)), "x")
    one = b.put(conv(rng, 5, 1, window(1)), "x")
    assert fused(quantized(b.graph(b.put(Product(), layer, one)))) == []


def test_dense_and_transposed_layers_have_other_operands_too() -> None:
    rng = np.random.default_rng(0)
    b = Builder((1, 5, 3, 3))
    up = [b.put(transposed(rng, 5, 5, (1, 1), (2, 2)), "x") for _ in range(2)]
    size = math.prod(b.shapes[up[0]])
    flat = b.put(Reshape(shape=(size,)), b.put(Add(), *up))
    graph = b.graph(b.put(Add(lo=0.0), b.put(dense(rng, size, size), flat), flat))
    whole = quantized(graph)
    assert len(fused(whole)) == 2
    inputs = samples_for(graph, 4, count=1)
    network = partition_network(whole, TARGETS["cpu:x86-64-v3"])
    assert "qlinear_zip" not in [step.workload.operator for step in network.steps]
    for name, values in run_integer(whole, inputs).items():
        np.testing.assert_array_equal(run_network(network, inputs)[name], values)
