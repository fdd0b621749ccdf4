"""Functions and normalizations of several operators: recognized, or left alone."""

from __future__ import annotations

import numpy as np
import pytest
from kit.networks.random_networks import Builder, samples_for

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import (
    Add,
    Affine,
    Clip,
    Graph,
    Normalize,
    Operator,
    Product,
    Reduce,
    Unary,
)
from driver.network.rewrites.fold import fold, without_dead_nodes
from driver.network.rewrites.function_fusion import with_composed_functions
from driver.network.rewrites.normalization_fusion import with_whole_normalizations


def scaled(mul: float, add: float = 0.0) -> Affine:
    return Affine(weight=np.full(3, mul, np.float32), bias=np.full(3, add, np.float32))


def applied(*ops: Operator) -> tuple[Builder, str]:
    """x and what a chain makes of it."""
    b, name = Builder((1, 3, 4)), "x"
    for op in ops:
        name = b.put(op, name)
    return b, name


def near(graph: Graph, other: Graph) -> None:
    data = samples_for(graph, 0)
    for name, wanted in run_float(graph, data).items():
        np.testing.assert_allclose(run_float(other, data)[name], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("gate", "factor", "name"),
    [
        ((scaled(0.5**0.5), Unary(function="erf"), scaled(1, 1)), 0.5, "gelu"),
        ((Unary(function="sigmoid"),), 1.0, "swish"),
        ((Unary(function="hard_sigmoid", parameters=(1 / 6, 0.5)),), 1.0, "hard_swish"),
        ((scaled(1, 3), Clip(lo=0.0, hi=6.0)), 1 / 6, "hard_swish"),
        ((Unary(function="softplus"), Unary(function="tanh")), 1.0, "mish"),
    ],
)
def test_a_function_is_known_by_its_values(
    gate: tuple[Operator, ...], factor: float, name: str
) -> None:
    b, gated = applied(*gate)
    graph = b.graph(b.put(scaled(factor), b.put(Product(), "x", gated)))
    small = without_dead_nodes(with_composed_functions(graph))
    assert Unary(function=name) in [node.op for node in small.nodes]
    assert len(small.nodes) <= 2
    near(graph, small)


def test_the_approximation_of_gelu_has_a_name_of_its_own() -> None:
    b, cubed = applied(Unary(function="power", parameters=(3.0,)), scaled(0.044715))
    inside = b.put(scaled((2 / np.pi) ** 0.5), b.put(Add(), "x", cubed))
    gate = b.put(scaled(1, 1), b.put(Unary(function="tanh"), inside))
    graph = b.graph(b.put(scaled(0.5), b.put(Product(), "x", gate)))
    small = without_dead_nodes(with_composed_functions(graph))
    assert [node.op for node in small.nodes] == [Unary(function="gelu_tanh")]


@pytest.mark.parametrize(
    "gate",
    [
        (scaled(1.01), Unary(function="sigmoid")),
        (
            Unary(function="sigmoid"),
            Affine(weight=np.array([1, 1, 2], "f"), bias=np.zeros(3, "f")),
        ),
        (Reduce(kind="mean", axes=(2,)), Unary(function="sigmoid")),
        (scaled(0.5),),
    ],
)
def test_other_products_stay(gate: tuple[Operator, ...]) -> None:
    b, gated = applied(*gate)
    graph = b.graph(b.put(Product(), "x", gated))
    assert with_composed_functions(graph) is graph


def normalization(
    *, centered: bool, axes: tuple[int, ...] = (2,), of_squares: tuple[int, ...] = (2,)
) -> Graph:
    b = Builder((1, 3, 4))
    away = "x"
    if centered:
        away = b.put(Add(subtracts=True), "x", b.put(Reduce(kind="mean", axes=axes), "x"))
    square = b.put(Product(), away, away)
    spread = b.put(scaled(1, 0.1), b.put(Reduce(kind="mean", axes=of_squares), square))
    return b.graph(b.put(Product(divides=True), away, b.put(Unary(function="sqrt"), spread)))


@pytest.mark.parametrize("centered", [True, False])
def test_a_division_by_the_root_of_the_mean_square_is_a_normalization(centered: bool) -> None:
    graph = normalization(centered=centered)
    small = without_dead_nodes(with_whole_normalizations(graph))
    (op,) = (node.op for node in small.nodes)
    assert isinstance(op, Normalize)
    assert (op.axes, op.centered) == ((2,), centered)
    near(graph, small)


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize(
    "root",
    [
        (Unary(function="sqrt"), Unary(function="reciprocal")),
        (Unary(function="sqrt"), Unary(function="reciprocal"), scaled(1)),
        (Unary(function="power", parameters=(-0.5,)),),
    ],
)
def test_a_product_with_one_over_the_root_is_a_normalization(
    root: tuple[Operator, ...], exchanged: bool
) -> None:
    b = Builder((1, 3, 4))
    name = b.put(Reduce(kind="mean", axes=(2,)), b.put(Product(), "x", "x"))
    name = b.put(scaled(1, 0.1), name)
    for op in root:
        name = b.put(op, name)
    graph = b.graph(b.put(Product(), *((name, "x") if exchanged else ("x", name))))
    small = fold(graph)
    (op,) = (node.op for node in small.nodes)
    assert isinstance(op, Normalize)
    assert not op.centered
    near(graph, small)


def test_what_is_centered_along_other_axes_is_not_centered_here() -> None:
    graph = normalization(centered=True, axes=(1,))
    small = without_dead_nodes(with_whole_normalizations(graph))
    assert [node.op.centered for node in small.nodes if isinstance(node.op, Normalize)] == [False]
    near(graph, small)
