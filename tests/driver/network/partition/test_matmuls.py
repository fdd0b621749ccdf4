"""Products of two activations: their scale, their kernel calls on any extents, what is moved."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.random_networks import Builder, samples_for
from tilefarm.target import TARGETS, Target, VtaConfig

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Clip, Gather, Graph, MatMul, Reshape, Softmax
from driver.network.integer.arithmetic import matmul
from driver.network.integer.blocks import from_group_tiles, group_tiles, group_tiles_shape
from driver.network.integer.qir import QMatMul
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.power_of_two_requantization import product_parameters
from driver.network.quantize.quantizer import quantize

SIM = TARGETS["sim"]
PAIRS = Target(name="pairs", vta=VtaConfig(log_batch=1, log_block=3))


def attention(n: int, groups: int, inner: int, rows: int, *, softmax: bool = True) -> Graph:
    """Scores of every column with every other, and columns weighted by these, group by group."""
    b = Builder((n, groups * inner, rows))
    half = b.put(Clip(lo=-1.0, hi=2.0), "x")
    scores = b.put(MatMul(groups=groups, scale=0.25), half, "x")
    if softmax:
        by_group = b.put(Reshape(shape=(groups, rows, rows)), scores)
        weights = b.put(Softmax(axis=2), by_group)
        scores = b.put(Reshape(shape=(groups * rows, rows)), weights)
    places = np.arange(groups * inner * rows, dtype=np.int32).reshape(groups, inner, rows)
    turned = np.ascontiguousarray(places.swapaxes(1, 2)).reshape(groups * rows, inner)
    values = b.put(Gather(index=turned), "x")
    return b.graph(b.put(MatMul(groups=groups), values, scores))


@given(
    n=st.integers(1, 2),
    groups=st.integers(1, 3),
    inner=st.integers(1, 20),
    rows=st.integers(1, 20),
    target=st.sampled_from([SIM, PAIRS]),
    seed=st.integers(0, 99),
)
@settings(max_examples=examples(25), deadline=None)
def test_the_calls_are_the_integer_network(
    n: int, groups: int, inner: int, rows: int, target: Target, seed: int
) -> None:
    graph = attention(n, groups, inner, rows, softmax=False)
    data = samples_for(graph, seed)
    quantized = quantize(graph, data)
    one = {"x": data["x"][:n]}
    (found,) = run_network(partition_network(quantized, target), one).values()
    assert found.tobytes() == run_integer(quantized, one)["out0"].tobytes()


@pytest.mark.parametrize(("inner", "rows", "gathers"), [(32, 48, 1), (32, 20, 2), (20, 48, 3)])
def test_what_fills_blocks_is_not_moved(inner: int, rows: int, gathers: int) -> None:
    graph = attention(1, 2, inner, rows, softmax=False)
    network = partition_network(quantize(graph, samples_for(graph, 0)), SIM)
    operators = [step.workload.operator for step in network.steps]
    assert operators.count("matmul") == 2
    assert operators.count("gather") == gathers


def test_the_result_is_near_the_float_network() -> None:
    graph = attention(1, 2, 32, 20, softmax=False)
    data = samples_for(graph, 1)
    wanted = run_float(graph, data)["out0"]
    found = run_integer(quantize(graph, data), data)["out0"]
    noise = np.square(found - wanted).mean() / np.square(wanted).mean()
    assert 10 * np.log10(1 / noise) > 25


def test_sums_are_rounded_to_nearest_and_saturate() -> None:
    a = np.array([1, 3, 127], np.int8).reshape(1, 1, 3)
    b = np.array([2, -2, 127], np.int8).reshape(1, 1, 3)
    found = matmul(a, b, groups=1, shift=2)
    assert found.tolist() == [[[1, 0, 32], [2, -1, 95], [64, -63, 127]]]
    assert matmul(a, -b, groups=1, shift=0).min() == -128


@given(
    in_scale=st.floats(1e-9, 1.0),
    out_scale=st.floats(1e-9, 1e3),
    terms=st.integers(1, 2048),
)
def test_the_scale_is_the_least_power_that_covers(
    in_scale: float, out_scale: float, terms: int
) -> None:
    shift, scale = product_parameters(in_scale, terms, out_scale=out_scale)
    assert scale == in_scale * 2.0**shift
    assert shift == 30 or scale >= out_scale * (1 - 1e-5)
    assert shift == 0 or scale < 2 * out_scale * (1 + 1e-5)


def test_sums_that_leave_32_bits_are_refused() -> None:
    with pytest.raises(OverflowError, match="32-bit accumulator"):
        product_parameters(1.0, 1 << 17, out_scale=1.0)


@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 9), st.integers(1, 9))
def test_tiles_of_groups_and_back(n: int, groups: int, inner: int, columns: int) -> None:
    x = np.arange(1, n * groups * inner * columns + 1).reshape(n, groups * inner, columns)
    tiles = group_tiles(x, groups, rows=2, block=4)
    assert tiles.shape == group_tiles_shape(x.shape, groups, rows=2, block=4)
    np.testing.assert_array_equal(from_group_tiles(tiles, x.shape, groups), x)
    assert tiles.sum() == x.sum()
    assert tiles[-1, 0, 0, 0, 0] == x[-1, (groups - 1) * inner, 0]


def test_the_network_says_what_it_multiplies() -> None:
    graph = attention(1, 2, 32, 48, softmax=False)
    quantized = quantize(graph, samples_for(graph, 0))
    network = partition_network(quantized, SIM)
    assert [node.op.groups for node in quantized.nodes if isinstance(node.op, QMatMul)] == [2, 2]
    assert sum(step.macs for step in network.steps) == 2 * 2 * 48 * 48 * 32
