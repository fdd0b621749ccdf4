"""Folding changes the count of operators and nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from kit.examples import examples
from kit.networks.random_networks import (
    Builder,
    conv,
    dense,
    networks,
    samples_for,
    transposed,
    window,
)

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import (
    Add,
    Affine,
    AvgPool2d,
    Clip,
    Concat,
    Conv2d,
    Dense,
    Graph,
    MaxPool2d,
    Operator,
    Reshape,
    Slice,
)
from driver.network.rewrites.fold import fold

RNG = np.random.default_rng(3)


def affine(channels: int, *, add: bool = True) -> Affine:
    mul = RNG.standard_normal(channels).astype(np.float32)
    return Affine(weight=mul, bias=mul[::-1] if add else np.zeros(channels, np.float32))


def chain(shape: tuple[int, ...], *ops: Operator) -> Graph:
    b = Builder(shape)
    name = "x"
    for op in ops:
        name = b.put(op, name)
    return b.graph(name)


def kinds(graph: Graph) -> list[str]:
    return [type(node.op).__name__ for node in graph.nodes]


IMAGE, ROW = (1, 3, 4, 4), (1, 6)
RELU = Clip(lo=0.0, hi=math.inf)
CASES = {
    "batch norm after conv": (
        chain(IMAGE, conv(RNG, 3, 5, window(3, pad=1)), affine(5), RELU),
        ["Conv2d"],
    ),
    "bias after dense": (chain(ROW, dense(RNG, 6, 4), affine(4)), ["Dense"]),
    "batch norm after a convolution in groups": (
        chain((1, 6, 4, 4), conv(RNG, 6, 9, window(3), 3), affine(9), RELU),
        ["Conv2d"],
    ),
    "offset before an unpadded conv in groups": (
        chain((1, 6, 4, 4), affine(6), conv(RNG, 6, 9, window(3), 3)),
        ["Conv2d"],
    ),
    "batch norm after a transposed conv": (
        chain(IMAGE, transposed(RNG, 3, 4, (2, 1), (2, 2)), affine(4), RELU),
        ["ConvTranspose2d"],
    ),
    "relu after a slice": (
        chain(IMAGE, conv(RNG, 3, 3, window(1)), Slice(start=1, stop=3), RELU),
        ["Conv2d", "Slice"],
    ),
    "scale before conv": (
        chain(IMAGE, affine(3, add=False), conv(RNG, 3, 2, window(3, pad=1))),
        ["Conv2d"],
    ),
    "offset before a padded conv stays": (
        chain(IMAGE, affine(3), conv(RNG, 3, 2, window(3, pad=1))),
        ["Affine", "Conv2d"],
    ),
    "offset before an unpadded conv": (
        chain(IMAGE, affine(3), conv(RNG, 3, 2, window(3))),
        ["Conv2d"],
    ),
    "offset before dense": (chain(ROW, affine(6), dense(RNG, 6, 4)), ["Dense"]),
    "two batch norms": (chain(IMAGE, affine(3), affine(3)), ["Affine"]),
    "a bounded layer keeps its batch norm": (
        chain(IMAGE, conv(RNG, 3, 3, window(1)), RELU, affine(3)),
        ["Conv2d", "Affine"],
    ),
    "relu after pool": (
        chain(IMAGE, conv(RNG, 3, 3, window(1)), MaxPool2d(window=window(2)), RELU),
        ["Conv2d", "MaxPool2d"],
    ),
    "two clips": (chain(IMAGE, Clip(lo=-0.3, hi=0.5), Clip(lo=0.1, hi=2.0)), ["Clip"]),
    "disjoint clips": (chain(IMAGE, Clip(lo=-0.3, hi=0.1), Clip(lo=0.5, hi=2.0)), ["Clip"]),
    "reshapes": (
        chain(IMAGE, RELU, Reshape(shape=(48,)), Reshape(shape=(6, 8)), Reshape(shape=(48,))),
        ["Clip", "Reshape"],
    ),
    "reshapes that cancel": (
        chain(IMAGE, RELU, Reshape(shape=(48,)), Reshape(shape=(3, 4, 4))),
        ["Clip"],
    ),
    "average then relu": (
        chain(IMAGE, AvgPool2d(window=window(4), divisor=np.full((1, 1), 16, np.float32)), RELU),
        ["AvgPool2d"],
    ),
    "nothing to scale": (
        chain(IMAGE, RELU, Affine(weight=np.ones(3, np.float32), bias=np.zeros(3, np.float32))),
        ["Clip"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_folds_and_what_stays(name: str) -> None:
    graph, left = CASES[name]
    folded = fold(graph)
    assert kinds(folded) == left
    assert_same_results(graph, folded)


def test_a_tensor_with_two_readers_is_left_alone() -> None:
    b = Builder(IMAGE)
    middle = b.put(conv(RNG, 3, 3, window(1)), "x")
    relu = b.put(RELU, middle)
    graph = b.graph(b.put(Add(), relu, middle))
    folded = fold(graph)
    assert kinds(folded) == ["Conv2d", "Clip", "Add"]
    assert_same_results(graph, folded)


def test_an_output_keeps_its_value_when_its_reader_folds() -> None:
    b = Builder(IMAGE)
    middle = b.put(conv(RNG, 3, 3, window(1)), "x")
    graph = b.graph(middle, b.put(RELU, middle))
    assert kinds(fold(graph)) == ["Conv2d", "Clip"]
    assert_same_results(graph, fold(graph))


def test_a_layer_keeps_its_own_name() -> None:
    graph = chain(IMAGE, affine(3, add=False), conv(RNG, 3, 2, window(1)), affine(2), RELU)
    (node,) = fold(graph).nodes
    assert (node.name, node.inputs, node.output) == ("n1", ("x",), "t3")
    assert isinstance(node.op, Conv2d)


def test_a_concatenation_begins_with_an_earlier_one() -> None:
    b = Builder(IMAGE)
    first, second, third = (b.put(conv(RNG, 3, 2, window(1)), "x") for _ in range(3))
    two = b.put(Concat(), first, second)
    three = b.put(Concat(), first, second, third)
    other = b.put(Concat(), second, first, third)
    graph = b.graph(two, three, other)
    folded = {node.output: node.inputs for node in fold(graph).nodes}
    assert folded[three] == (two, third)
    assert folded[other] == (second, first, third)
    data = samples_for(graph, 0)
    before, after = run_float(graph, data), run_float(fold(graph), data)
    assert all((before[name] == after[name]).all() for name in before)


def test_a_clip_behind_a_concatenation_joins_the_layers_before_it() -> None:
    b = Builder(IMAGE)
    one, two = (b.put(conv(RNG, 3, 2, window(1)), "x") for _ in range(2))
    joined = b.put(RELU, b.put(Concat(), one, two, one))
    kept = b.put(Concat(), two, one)
    graph = b.graph(joined, kept, b.put(Clip(lo=0.0, hi=1.0), kept))
    data = samples_for(graph, 0)
    before, after = run_float(graph, data), run_float(fold(graph), data)
    assert all((before[name] == after[name]).all() for name in before)
    alone = Builder(IMAGE)
    parts = [alone.put(conv(RNG, 3, 2, window(1)), "x") for _ in range(2)]
    graph = alone.graph(alone.put(RELU, alone.put(Concat(), *parts)))
    assert kinds(fold(graph)) == ["Conv2d", "Conv2d", "Concat"]


def test_of_nodes_that_do_nothing_one_is_left_between_an_input_and_an_output() -> None:
    idle = Clip(lo=-math.inf, hi=math.inf)
    graph = chain(IMAGE, idle, idle, idle)
    (node,) = fold(graph).nodes
    assert (node.inputs, graph.outputs[0].tensor) == (("x",), "t2")
    assert fold(graph).outputs[0].tensor == node.output
    assert kinds(fold(chain(IMAGE, RELU, idle, idle))) == ["Clip"]


def test_rules_apply_at_many_places_of_one_round() -> None:
    layers = [op for _ in range(6) for op in (conv(RNG, 3, 3, window(1)), affine(3), RELU)]
    graph = chain(IMAGE, *layers)
    assert kinds(fold(graph)) == ["Conv2d"] * 6
    assert_same_results(graph, fold(graph))


def test_nodes_without_readers_go() -> None:
    b = Builder(ROW)
    b.put(dense(RNG, 6, 9), "x")
    graph = b.graph(b.put(dense(RNG, 6, 4), "x"))
    (node,) = fold(graph).nodes
    assert isinstance(node.op, Dense)
    assert node.op.weight.shape == (4, 6)


@settings(max_examples=examples(25), deadline=None)
@given(networks())
def test_folding_never_changes_the_answer(case: tuple[Graph, int]) -> None:
    graph, _ = case
    folded = fold(graph)
    parts = sum(len(node.inputs) - 1 for node in graph.nodes if isinstance(node.op, Concat))
    assert len(folded.nodes) <= len(graph.nodes) + parts  # each part is clipped by itself
    assert_same_results(graph, folded)


def assert_same_results(graph: Graph, folded: Graph) -> None:
    data = samples_for(graph, 1)
    before, after = run_float(graph, data), run_float(folded, data)
    assert before.keys() == after.keys()
    for name, values in before.items():
        np.testing.assert_allclose(after[name], values, rtol=1e-3, atol=1e-4)
