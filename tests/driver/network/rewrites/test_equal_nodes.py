"""Nodes that compute the same twice become one; others, however alike, stay two."""

from __future__ import annotations

import numpy as np
import pytest
from kit.networks.random_networks import Builder, samples_for

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import (
    Add,
    Affine,
    Graph,
    Normalize,
    Operator,
    Product,
    Reduce,
    Unary,
)
from driver.network.rewrites.equal_nodes import with_equal_nodes_merged
from driver.network.rewrites.fold import fold


def scaled(mul: float) -> Affine:
    return Affine(weight=np.full(3, mul, np.float32), bias=np.zeros(3, np.float32))


def normalization_with_two_differences() -> Graph:
    """The distance from the mean computed twice, as the source of a LayerNorm may have it."""
    b = Builder((2, 3, 4))
    away, again = (
        b.put(Add(subtracts=True), "x", b.put(Reduce(kind="mean", axes=(2,)), "x")) for _ in "12"
    )
    square = b.put(Product(), again, again)
    mean = b.put(Reduce(kind="mean", axes=(2,)), square)
    spread = b.put(Affine(weight=np.ones(3, np.float32), bias=np.full(3, 0.1, np.float32)), mean)
    return b.graph(b.put(Product(divides=True), away, b.put(Unary(function="sqrt"), spread)))


def test_a_normalization_with_two_equal_differences_is_recognized() -> None:
    graph = normalization_with_two_differences()
    small = fold(graph)
    assert [type(node.op) for node in small.nodes] == [Normalize]
    data = samples_for(graph, 0)
    (wanted,), (found,) = (run_float(each, data).values() for each in (graph, small))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", [Add(), Product()])
def test_the_order_of_operands_of_sums_and_products_does_not_matter(op: Operator) -> None:
    b = Builder((1, 3, 4))
    other = b.put(scaled(2), "x")
    graph = b.graph(b.put(op, "x", other), b.put(op, other, "x"))
    merged = with_equal_nodes_merged(graph)
    assert len(merged.nodes) == 2
    assert [out.name for out in merged.outputs] == ["out0", "out1"]
    assert len({out.tensor for out in merged.outputs}) == 1


@pytest.mark.parametrize("op", [Add(subtracts=True), Product(divides=True)])
def test_that_of_differences_and_quotients_does(op: Operator) -> None:
    b = Builder((1, 3, 4))
    other = b.put(scaled(2), "x")
    graph = b.graph(b.put(op, "x", other), b.put(op, other, "x"))
    assert with_equal_nodes_merged(graph) is graph


def test_other_constants_are_another_node() -> None:
    b = Builder((1, 3, 4))
    graph = b.graph(b.put(scaled(2), "x"), b.put(scaled(3), "x"))
    assert with_equal_nodes_merged(graph) is graph


def test_what_follows_equal_nodes_is_equal_too() -> None:
    b = Builder((1, 3, 4))
    roots = [b.put(Unary(function="sqrt"), b.put(scaled(2), "x")) for _ in "123"]
    graph = with_equal_nodes_merged(b.graph(*roots))
    assert [type(node.op) for node in graph.nodes] == [Affine, Unary]
