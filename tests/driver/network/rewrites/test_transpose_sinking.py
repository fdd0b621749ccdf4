"""Moves as late as can be: the same results, and hardly a move left in transformers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.random_networks import Builder, conv, dense, samples_for, window
from kit.networks.simulated import PAIRS
from tilefarm.target import TARGETS, Target

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import (
    Add,
    Affine,
    Gather,
    Graph,
    MatMul,
    Normalize,
    Reduce,
    Reshape,
    Slice,
    Slopes,
    Softmax,
    Unary,
)
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.network.rewrites.fold import fold
from driver.network.rewrites.operand_swap import with_products_turned
from driver.network.rewrites.transpose_sinking import with_late_moves

from .attention import Tokens, block


def near(graph: Graph, other: Graph) -> None:
    data = samples_for(graph, 0)
    for name, wanted in run_float(graph, data).items():
        found = run_float(other, data)[name]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def operators(graph: Graph) -> list[str]:
    return [type(node.op).__name__ for node in graph.nodes if not isinstance(node.op, Reshape)]


def test_a_block_keeps_one_move_the_values_of_its_attention() -> None:
    graph = block()
    small = fold(graph)
    near(graph, small)
    attention = ["Conv2d", "Conv2d", "Conv2d", "MatMul", "Softmax", "Gather", "MatMul", "Conv2d"]
    assert operators(small) == [
        *("Conv2d", "Normalize", "Affine", *attention, "Add"),
        *("Normalize", "Conv2d", "Unary", "Conv2d", "Add", "Conv2d", "Add"),
    ]
    scores = next(node.op for node in small.nodes if isinstance(node.op, MatMul))
    assert scores.scale == pytest.approx(math.sqrt(2 / 32))


def test_constants_of_the_last_axis_become_those_of_channels() -> None:
    b = Tokens((1, 5, 8))
    graph = b.graph(b.linear(b.normalized("x"), 4))
    small = fold(graph)
    near(graph, small)
    assert operators(small) == ["Normalize", "Gather", "Conv2d", "Gather"]


def test_parts_of_the_last_axis_are_channels_that_lie_together() -> None:
    b = Tokens((1, 5, 8))
    wide = b.linear("x", 12)
    places = np.arange(60, dtype=np.int32).reshape(5, 12)
    parts = [b.put(Gather(index=places[:, at : at + 4]), wide) for at in (0, 4)]
    graph = b.graph(b.linear(b.put(Add(), *parts), 3))
    small = fold(graph)
    near(graph, small)
    assert operators(small) == ["Gather", "Conv2d", "Slice", "Slice", "Add", "Conv2d", "Gather"]


def test_a_dense_layer_takes_its_features_in_any_order() -> None:
    b = Tokens((2, 3, 4, 5))
    flat = b.shaped(b.turned("x", 0, 2, 3, 1), 60)
    graph = b.graph(b.put(dense(b.rng, 60, 7), flat))
    assert operators(with_late_moves(graph)) == ["Dense"]
    near(graph, with_late_moves(graph))


def test_a_network_without_moves_stays_itself() -> None:
    b = Builder((1, 3, 4, 4))
    graph = b.graph(b.put(conv(np.random.default_rng(0), 3, 4, window(3)), "x"))
    assert with_late_moves(graph) is graph


@st.composite
def moving_networks(draw: st.DrawFn) -> Graph:
    """A few random operators behind a transpose, with outputs anywhere among them."""
    extents = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=3)))
    b = Tokens((draw(st.integers(1, 2)), *extents), seed=draw(st.integers(0, 99)))
    name = b.turned("x", 0, *draw(_orders(len(extents))))
    outputs: list[str] = []
    for _ in range(draw(st.integers(1, 7))):
        name = _step(draw, b, name, ["x", name, *outputs])
        if draw(st.integers(0, 3)) == 0:
            outputs.append(name)
    return b.graph(*dict.fromkeys([*outputs, name]))


@settings(max_examples=examples(40), deadline=None)
@given(moving_networks())
def test_any_network_with_moves_gives_the_same_results(graph: Graph) -> None:
    near(graph, with_late_moves(with_products_turned(graph)))
    near(graph, fold(graph))


@settings(max_examples=examples(15), deadline=None)
@given(moving_networks(), st.sampled_from([TARGETS["sim"], PAIRS]))
def test_any_network_with_moves_runs_as_its_integers_say(graph: Graph, target: Target) -> None:
    data = samples_for(graph, 0)
    quantized = quantize(fold(graph), data, block=target.lanes.block)
    one = {name: values[: graph.batch] for name, values in data.items()}
    found = run_network(partition_network(quantized, target), one)
    for name, wanted in run_integer(quantized, one).items():
        assert found[name].tobytes() == wanted.tobytes()


def _orders(rank: int) -> st.SearchStrategy[list[int]]:
    return st.permutations(range(1, rank + 1))


def _step(draw: st.DrawFn, b: Tokens, name: str, others: list[str]) -> str:
    _, *sample = shape = b.shapes[name]
    channels = shape[1]
    lanes = b.rng.uniform(0.5, 1.5, (2, channels)).astype(np.float32)
    axis = draw(st.integers(1, len(sample)))
    match draw(st.sampled_from(_KINDS)):
        case "turn":
            return b.turned(name, 0, *draw(_orders(len(sample))))
        case "shape":
            return b.shaped(name, *draw(st.sampled_from([sample[::-1], [math.prod(sample)]])))
        case "split" if channels % 2 == 0:
            return b.shaped(name, channels // 2, 2, *sample[1:])
        case "take":
            at = draw(st.integers(0, sample[axis - 1] - 1))
            places = np.arange(math.prod(sample), dtype=np.int32).reshape(sample)
            return b.put(Gather(index=places.take(range(at, sample[axis - 1]), axis - 1)), name)
        case "slice" if channels > 1:
            return b.put(Slice(start=1, stop=channels), name)
        case "function":
            return b.put(Unary(function="tanh"), name)
        case "affine":
            return b.put(Affine(weight=lanes[0], bias=lanes[1], hi=2.0), name)
        case "slopes":
            return b.put(Slopes(slope=lanes[0]), name)
        case "softmax":
            return b.put(Softmax(axis=axis), name)
        case "normalize":
            return b.put(Normalize(axes=(axis,), epsilon=0.1), name)
        case "reduce":
            return b.put(Reduce(kind="mean", axes=(axis,)), name)
        case "add":
            other = draw(st.sampled_from(others))
            alike = math.prod(b.shapes[other]) == math.prod(shape)
            return b.put(Add(), b.shaped(other, *sample), name) if alike else name
        case "conv" if len(sample) == 3:
            return b.put(conv(b.rng, channels, 3, window(1)), name)
        case "product" if len(sample) == 2:
            return b.put(MatMul(), name, b.put(Unary(function="tanh"), name))
    return name


_KINDS = (
    *("turn", "turn", "shape", "split", "take", "slice", "function", "affine", "slopes"),
    *("softmax", "normalize", "reduce", "add", "conv", "product"),
)
