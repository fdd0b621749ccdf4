"""Numbers that the operands of a product are multiplied by belong to its own scale.

    (x * 0.25) · y  ->  0.25 * (x · y), whose scale costs nothing

Exporters scale queries and keys of attention before they multiply them.
"""

from __future__ import annotations

import math
from dataclasses import replace

from driver.network.graph.ir import Affine, Gather, Graph, GraphNode, MatMul, Reshape
from driver.network.graph.shapes import graph_of


def with_scales_in_products(graph: Graph) -> Graph:
    """The graph where nothing only scales what a product alone reads, moved or not."""
    makers = {node.output: node for node in graph.nodes}
    users, outputs = graph.users(), {output.tensor for output in graph.outputs}
    source_of: dict[str, str] = {}
    scales: dict[str, float] = {}

    def scaled_by(name: str) -> GraphNode | None:
        """What scales an operand, if the product is at the end of its only way."""
        while name in makers and len(users[name]) == 1 and name not in outputs:
            maker = makers[name]
            if isinstance(maker.op, Affine):
                return maker if only_scales(maker.op) else None
            if not isinstance(maker.op, Reshape | Gather):
                return None
            name = maker.inputs[0]
        return None

    for node in graph.nodes:
        for name in node.inputs if isinstance(node.op, MatMul) else ():
            before = scaled_by(name)
            if before is not None and isinstance(before.op, Affine):
                source_of[before.output] = before.inputs[0]
                scale = scales.get(node.output, 1.0)
                scales[node.output] = scale * float(before.op.weight[0])
    if not scales:
        return graph
    nodes = [
        _unscaled(node, source_of, scales) for node in graph.nodes if node.output not in source_of
    ]
    return graph_of(graph.name, graph.inputs, graph.outputs, nodes)


def only_scales(op: Affine) -> bool:
    """Whether it multiplies all by one positive number, so that only the unit changes."""
    same = bool((op.weight == op.weight[0]).all()) and op.weight[0] > 0
    return same and not op.bias.any() and op.lo == -math.inf and op.hi == math.inf


def _unscaled(node: GraphNode, source_of: dict[str, str], scales: dict[str, float]) -> GraphNode:
    inputs = tuple(source_of.get(name, name) for name in node.inputs)
    if isinstance(node.op, MatMul) and node.output in scales:
        return replace(
            node, op=replace(node.op, scale=node.op.scale * scales[node.output]), inputs=inputs
        )
    return replace(node, inputs=inputs)
