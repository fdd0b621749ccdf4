"""Sums and products of two tensors in the layer that makes one, as residual additions are.

    t = layer(x)              ->   y = fused(x, other)
    y = binary(t, other)

The layer is computed where the other was, so that all operands are there. Nobody else may read t.
Sums and products have the same bits whichever operand comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tilefarm.dtype import DType

from driver.network.graph.ir import Add
from driver.network.integer.qir import QuantGraph, QuantNode
from driver.network.integer.qlinear import QLinearBinary, QLinearFused, QLinearLayer


def with_fused_operands(graph: QuantGraph) -> QuantGraph:
    """The same network, where layers combine their results with another tensor themselves."""
    places = {node.output: place for place, node in enumerate(graph.nodes)}
    layers = _layers_read_once(graph)
    fused: dict[str, QuantNode] = {}
    taken: set[str] = set()
    for node in graph.nodes:
        choices = list(_fusions(graph, node, layers))
        if choices:  # of two layers the last: what that reads need not be kept for longer
            layer, fused[node.output] = max(choices, key=lambda choice: places[choice[0]])
            taken.add(layer)
    nodes = (fused.get(node.output, node) for node in graph.nodes if node.output not in taken)
    return replace(graph, nodes=tuple(nodes))


def _layers_read_once(graph: QuantGraph) -> Mapping[str, QuantNode]:
    """What makes each result of a layer that one node reads once, and nobody else."""
    reads = Counter(name for node in graph.nodes for name in node.inputs)
    reads.update(output.tensor for output in graph.outputs)
    return {
        node.output: node
        for node in graph.nodes
        if isinstance(node.op, QLinearLayer) and reads[node.output] == 1
    }


def _fusions(
    graph: QuantGraph, node: QuantNode, layers: Mapping[str, QuantNode]
) -> Iterator[tuple[str, QuantNode]]:
    """Operands that a layer makes which can compute the node; and the node that does."""
    if not isinstance(node.op, QLinearBinary):
        return
    first, second = node.inputs
    operands = [(first, second, node.op)]
    if not (node.op.op.subtracts if isinstance(node.op.op, Add) else node.op.op.divides):
        operands.append((second, first, replace(node.op, a=node.op.b, b=node.op.a)))
    shape = graph.tensors[node.output].shape
    for mine, other, binary in operands:
        layer = layers.get(mine)
        is_repeated = any(graph.tensors[name].shape != shape for name in (mine, other))
        if layer is None or is_repeated or graph.tensors[mine].dtype is DType.FLOAT32:
            continue
        assert isinstance(layer.op, QLinearLayer)
        op = QLinearFused(layer=layer.op, binary=binary)
        inputs = (*layer.inputs, other)
        yield mine, QuantNode(name=layer.name, op=op, inputs=inputs, output=node.output)
