"""Functions that exporters write as several operators: recognized by their values, made one table.

    x * (1 + erf(x / sqrt(2))) * 0.5  ->  gelu(x)      x * clip(x + 3, 0, 6) / 6  ->  hard_swish(x)

One table is rounded once, and it runs in one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.functions import FUNCTIONS, evaluate
from driver.network.graph.ir import Add, Affine, Clip, Graph, GraphNode, Product, Unary
from driver.network.graph.shapes import graph_of

_KNOWN: Final = ("gelu", "gelu_tanh", "hard_swish", "mish", "swish")
_MOST_NODES: Final = 12
_POINTS: Final = np.linspace(-12, 12, 481)
_NEAR: Final = 1e-5
"""How near values must be: constants are float32, gelu and its approximation differ by 5e-4."""


def with_composed_functions(graph: Graph) -> Graph:
    """The graph where what a few operators make of one tensor is a function that has a name."""
    makers = {node.output: node for node in graph.nodes}
    position = {node.output: at for at, node in enumerate(graph.nodes)}
    named: dict[str, GraphNode] = {}
    inside: set[str] = set()
    for node in reversed(graph.nodes):
        if node.output in inside or not isinstance(node.op, Product | Affine):
            continue
        for cone, source in _cones(node.output, graph, makers, position):
            function = _name_of(cone, source)
            if function is not None:
                named[node.output] = replace(node, op=Unary(function=function), inputs=(source,))
                inside |= {each.output for each in cone}
                break
    if not named:
        return graph
    nodes = [named.get(node.output, node) for node in graph.nodes]
    return graph_of(graph.name, graph.inputs, graph.outputs, nodes)


def _cones(
    result: str, graph: Graph, makers: Mapping[str, GraphNode], position: Mapping[str, int]
) -> Iterator[tuple[list[GraphNode], str]]:
    """The few elementwise nodes, in their order, that make a tensor of one other, and that one."""
    cone: list[GraphNode] = []
    leaves = {result}
    while len(cone) < _MOST_NODES:
        last = max(leaves, key=lambda name: position.get(name, -1))
        maker = makers.get(last)
        if maker is None or not _is_elementwise(maker, graph):
            return
        cone.append(maker)
        leaves = (leaves - {last}) | {*maker.inputs}
        if len(leaves) == 1:
            yield cone[::-1], next(iter(leaves))


def _is_elementwise(node: GraphNode, graph: Graph) -> bool:
    """Whether it treats all elements alike, whatever their places."""
    if any(graph.shapes[name] != graph.shapes[node.output] for name in node.inputs):
        return False
    match node.op:
        case Affine(weight=mul, bias=add):
            return bool((mul == mul[0]).all() and (add == add[0]).all())
        case Unary() | Clip() | Product() | Add():
            return True
    return False


def _name_of(cone: list[GraphNode], source: str) -> str | None:
    """The function of `source` that the nodes make in their order, if it has a name."""
    if not any(isinstance(node.op, Product) for node in cone):
        return None
    values = {source: _POINTS}
    with np.errstate(all="ignore"):
        for node in cone:
            values[node.output] = _value(node, values)
    found = values[cone[-1].output]
    for name in _KNOWN:
        if np.allclose(found, FUNCTIONS[name](_POINTS), rtol=_NEAR, atol=_NEAR):
            return name
    return None


def _value(node: GraphNode, values: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    x, *others = (values[name] for name in node.inputs)
    match node.op:
        case Affine(weight=mul, bias=add, lo=lo, hi=hi):
            return np.clip(x * float(mul[0]) + float(add[0]), lo, hi)
        case Clip(lo=lo, hi=hi):
            return np.clip(x, lo, hi)
        case Unary(function=function, parameters=parameters):
            return evaluate(function, x, parameters)
        case Product(divides=divides):
            return x / others[0] if divides else x * others[0]
        case Add(subtracts=subtracts, lo=lo, hi=hi):
            return np.clip(x - others[0] if subtracts else x + others[0], lo, hi)
    raise TypeError(f"{type(node.op).__name__} is not elementwise")
