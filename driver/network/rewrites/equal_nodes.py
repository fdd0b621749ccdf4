"""Nodes that compute the same from the same tensors, as one.

    d = x - mean(x);  e = x - mean(x);  d / sqrt(mean(e * e))  ->  d / sqrt(mean(d * d))

Exporters write an expression as often as the source has it. Patterns of several operators are
recognized by the names of tensors, so equal ones have to have one name first.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeAlias

import numpy as np

from driver.network.graph.ir import Add, Graph, GraphNode, Operator, Product
from driver.network.graph.shapes import graph_of

_Work: TypeAlias = tuple[type[Operator], tuple[str, ...]]


def with_equal_nodes_merged(graph: Graph) -> Graph:
    """The graph with one node in place of all that have equal operators and operands."""
    merged: dict[str, str] = {}
    alike: dict[_Work, list[GraphNode]] = {}
    kept: list[GraphNode] = []
    for node in graph.nodes:
        node = replace(node, inputs=tuple(merged.get(name, name) for name in node.inputs))
        known = alike.setdefault((type(node.op), _operands(node)), [])
        same = next((each for each in known if are_equal(each.op, node.op)), None)
        if same is None:
            known.append(node)
            kept.append(node)
        else:
            merged[node.output] = same.output
    if not merged:
        return graph
    outputs = [replace(out, tensor=merged.get(out.tensor, out.tensor)) for out in graph.outputs]
    return graph_of(graph.name, graph.inputs, outputs, kept)


def are_equal(a: Operator, b: Operator) -> bool:
    """Whether two operators are of one kind and have the same parameters, bit for bit."""
    return type(a) is type(b) and all(
        _same(getattr(a, each.name), getattr(b, each.name)) for each in fields(a)
    )


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a is b or (a.shape == b.shape and a.tobytes() == b.tobytes())
    return bool(a == b)


def _operands(node: GraphNode) -> tuple[str, ...]:
    """The operands, in alphabetical order where their order does not matter."""
    match node.op:
        case Add(subtracts=False) | Product(divides=False):
            return tuple(sorted(node.inputs))
    return node.inputs
