"""Scales in front of products: they become the product's, unless somebody else needs them."""

from __future__ import annotations

import numpy as np
import pytest
from kit.networks.random_networks import Builder, samples_for

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Affine, Graph, MatMul, Reshape, Unary
from driver.network.rewrites.scaled_products import with_scales_in_products


def times(first: float, second: float | None = None, add: float = 0.0) -> Affine:
    """A multiplication of six channels, the last of which may have a number of its own."""
    mul = np.full(6, first, np.float32)
    mul[-1] = first if second is None else second
    return Affine(weight=mul, bias=np.full(6, add, np.float32))


def scaled(op: Affine, *, also_read: bool = False) -> Graph:
    """The product of x, scaled and reshaped, and a function of x."""
    b = Builder((1, 6, 8))
    before = b.put(op, "x")
    product = b.put(
        MatMul(groups=2), b.put(Reshape(shape=(6, 8)), before), b.put(Unary(function="tanh"), "x")
    )
    return b.graph(product, *([before] if also_read else []))


def test_a_number_becomes_the_products_scale() -> None:
    graph = scaled(times(0.25))
    small = with_scales_in_products(graph)
    assert MatMul(groups=2, scale=0.25) in [node.op for node in small.nodes]
    assert not any(isinstance(node.op, Affine) for node in small.nodes)
    data = samples_for(graph, 0)
    wanted, found = (run_float(each, data)["out0"] for each in (graph, small))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", [times(0.25, 0.5), times(-0.25), times(0.25, add=1.0)])
def test_other_scales_stay(op: Affine) -> None:
    graph = scaled(op)
    assert with_scales_in_products(graph) is graph


def test_what_somebody_else_reads_stays() -> None:
    graph = scaled(times(0.25), also_read=True)
    assert with_scales_in_products(graph) is graph
