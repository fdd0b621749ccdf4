"""The larger or the smaller of two tensors as one operator, where nothing is in integers.

    excess = max(a - b, 0);  excess + b  ->  max(a, b)

An accelerator has the left side. Of floats it rounds, and is NaN where both are infinite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from driver.network.graph.ir import Add, Clip, Extreme, Graph, GraphNode
from driver.network.graph.shapes import graph_of


def with_extremes(graph: Graph) -> Graph:
    """The graph with an Extreme in place of each sum of an excess; itself if there is none."""
    made = {node.output: node for node in graph.nodes}
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        nodes += _as_extreme(node, made) or [node]
    if len(nodes) == len(graph.nodes) and all(
        old is new for old, new in zip(graph.nodes, nodes, strict=True)
    ):
        return graph
    return graph_of(graph.name, graph.inputs, graph.outputs, _read(graph, nodes))


def _as_extreme(node: GraphNode, made: dict[str, GraphNode]) -> list[GraphNode]:
    """The extreme that a sum is, and a clip if the sum is bounded; nothing if it is none."""
    if not isinstance(node.op, Add) or node.op.subtracts:
        return []
    for name, other in (node.inputs, node.inputs[::-1]):
        excess = made.get(name)
        kind = _kind(excess)
        if excess is None or kind is None or excess.inputs[1] != other:
            continue
        op = Extreme(kind=kind)
        if (node.op.lo, node.op.hi) == (-math.inf, math.inf):
            return [replace(node, op=op, inputs=excess.inputs)]
        name = f"{node.output}.{kind}"
        best = GraphNode(name=f"{node.name}.{kind}", op=op, inputs=excess.inputs, output=name)
        return [best, replace(node, op=Clip(lo=node.op.lo, hi=node.op.hi), inputs=(name,))]
    return []


def _kind(excess: GraphNode | None) -> Literal["max", "min"] | None:
    """What is made of the first operand by adding the second: nothing if it is no excess."""
    match excess and excess.op:
        case Add(subtracts=True, lo=0.0, hi=math.inf):
            return "max"
        case Add(subtracts=True, lo=lo, hi=0.0) if lo == -math.inf:
            return "min"
    return None


def _read(graph: Graph, nodes: Sequence[GraphNode]) -> list[GraphNode]:
    """The nodes whose results somebody reads."""
    wanted = {output.tensor for output in graph.outputs}
    kept = []
    for node in reversed(nodes):
        if node.output in wanted:
            wanted.update(node.inputs)
            kept.append(node)
    return kept[::-1]
