"""Which way round two activations are multiplied: b·a is a·b transposed, so one move less or more.

The result of a product goes through moves to the next operators that want their operand as it is.
If the transposed result lies in order at more of them, the operands are exchanged.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from driver.network.graph.ir import Gather, Graph, GraphNode, IndexArray, MatMul, Shape
from driver.network.graph.shapes import graph_of
from driver.network.rewrites.transpose_analysis import Paths, suited


def with_products_turned(graph: Graph) -> Graph:
    """The graph with the same results, products exchanged where that leaves less to move."""
    paths = Paths(graph)
    nodes: list[GraphNode] = []
    back_as: dict[str, str] = {}
    for node in graph.nodes:
        node = replace(node, inputs=tuple(back_as.get(name, name) for name in node.inputs))
        back = _better_back(graph, node, paths)
        if back is None:
            nodes.append(node)
            continue
        name = back_as[node.output] = f"{node.output}.back"
        nodes.append(replace(node, inputs=node.inputs[::-1]))
        nodes.append(
            GraphNode(name=name, op=Gather(index=back), inputs=(node.output,), output=name)
        )
    ends = [replace(each, tensor=back_as.get(each.tensor, each.tensor)) for each in graph.outputs]
    return graph_of(graph.name, graph.inputs, ends, nodes)


def _better_back(graph: Graph, node: GraphNode, paths: Paths) -> IndexArray | None:
    """The move from the exchanged product to the product, where the exchanged one lies better."""
    if not isinstance(node.op, MatMul):
        return None
    ends = paths.behind(node.output)
    back = _transposed(graph.shapes[node.output], node.op.groups)
    return back if suited(ends, back) > suited(ends) else None


def _transposed(shape: Shape, groups: int) -> IndexArray:
    """Where the elements of a result [N, G*I, J] are in that of the exchanged operands."""
    rows, columns = shape[1] // groups, shape[2]
    places = np.arange(math.prod(shape[1:]), dtype=np.int32).reshape(groups, columns, rows)
    return np.ascontiguousarray(places.swapaxes(1, 2)).reshape(shape[1:])
