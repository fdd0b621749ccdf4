"""The larger of two tensors is one operator where nothing is in integers, and exact."""

from __future__ import annotations

import numpy as np
import pytest
from kit.networks.random_networks import Builder, samples_for

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Add, Clip, Extreme, Graph, Operator, Unary
from driver.network.quantize.extremes import with_extremes


def network(excess: Add, total: Add, *, in_order: bool = True) -> Graph:
    b = Builder((1, 3, 4, 5))
    a, other = b.put(Unary(function="neg"), "x"), b.put(Unary(function="exp"), "x")
    made = b.put(excess, a, other)
    return b.graph(b.put(total, *((made, other) if in_order else (other, made))))


def kinds(graph: Graph) -> list[Operator]:
    return [node.op for node in graph.nodes if not isinstance(node.op, Unary)]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(
    ("excess", "kind"),
    [(Add(subtracts=True, lo=0.0), "max"), (Add(subtracts=True, hi=0.0), "min")],
    ids=["max", "min"],
)
def test_an_excess_and_its_sum_are_one_operator(excess: Add, kind: str, in_order: bool) -> None:
    graph = network(excess, Add(), in_order=in_order)
    made = with_extremes(graph)
    assert [op.kind for op in kinds(made) if isinstance(op, Extreme)] == [kind]
    assert len(made.nodes) == len(graph.nodes) - 1
    data = samples_for(graph, 0)
    (found,), (wanted,) = (run_float(each, data).values() for each in (made, graph))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_the_bounds_of_the_sum_are_a_clip_behind_it() -> None:
    made = with_extremes(network(Add(subtracts=True, lo=0.0), Add(lo=-1.0, hi=6.0)))
    assert kinds(made) == [Extreme(kind="max"), Clip(lo=-1.0, hi=6.0)]


@pytest.mark.parametrize(
    ("excess", "total"),
    [
        (Add(subtracts=True), Add()),
        (Add(subtracts=True, lo=0.0, hi=6.0), Add()),
        (Add(subtracts=True, lo=1.0), Add()),
        (Add(lo=0.0), Add()),
        (Add(subtracts=True, lo=0.0), Add(subtracts=True)),
    ],
    ids=str,
)
def test_others_stay_what_they_are(excess: Add, total: Add) -> None:
    graph = network(excess, total)
    assert with_extremes(graph) is graph


def test_an_excess_that_others_read_stays_beside_it() -> None:
    b = Builder((1, 3, 4, 5))
    other = b.put(Unary(function="exp"), "x")
    excess = b.put(Add(subtracts=True, lo=0.0), "x", other)
    graph = b.graph(b.put(Add(), excess, other), excess)
    assert len(with_extremes(graph).nodes) == len(graph.nodes)
