"""Fewer, larger operators with the same results: batch norms and ReLUs join their layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from driver.graph.ir import (
    Add,
    Affine,
    AvgPool2d,
    Clip,
    Clipped,
    Conv2d,
    Dense,
    Graph,
    MaxPool2d,
    Node,
    Operator,
    Reshape,
)
from driver.graph.shapes import graph_of


def fold(graph: Graph) -> Graph:
    """The graph after every rule was applied wherever it fits; same inputs and outputs."""
    graph = without_dead_nodes(graph)
    while (smaller := _one_step(graph)) is not None:
        graph = smaller
    return graph


def without_dead_nodes(graph: Graph) -> Graph:
    """The graph without the nodes that no output needs."""
    needed = {output.tensor for output in graph.outputs}
    kept = []
    for node in reversed(graph.nodes):
        if node.output in needed:
            needed.update(node.inputs)
            kept.append(node)
    return graph_of(graph.name, graph.inputs, graph.outputs, reversed(kept))


def merge(first: Operator, second: Operator) -> tuple[Operator, ...] | None:
    """What `second(first(x))` can be replaced with, in order; None where no rule fits.

    The intermediate result must have no other reader.
    """
    match first, second:
        case Conv2d() | Dense(), Affine() if _unbounded(first):
            return (_scaled(first, second),)
        case Affine(), Affine() if _unbounded(first):
            bias = first.add * second.mul + second.add
            return (replace(second, mul=first.mul * second.mul, add=bias),)
        case Affine(), Dense() if _unbounded(first):
            weight = second.weight * first.mul[None, :]
            return (replace(second, weight=weight, bias=second.bias + second.weight @ first.add),)
        case Affine(), Conv2d() if _unbounded(first) and _passes_padding(first, second):
            weight = second.weight * first.mul[None, :, None, None]
            bias = second.bias + second.weight.sum(axis=(2, 3)) @ first.add
            return (replace(second, weight=weight, bias=bias),)
        case Conv2d() | Dense() | Add() | Affine() | AvgPool2d() | Clip(), Clip():
            return (_bounded(first, second),)
        case MaxPool2d() | Reshape(), Clip():  # monotone, so the clip may come first
            return (second, first)
        case Reshape(), Reshape():
            return (second,)
    return None


def _one_step(graph: Graph) -> Graph | None:
    """The graph after the first rule that fits anywhere, or None."""
    for node in graph.nodes:
        if _does_nothing(node, graph):
            return _without(graph, node)
    for first, second in _pairs(graph):
        ops = merge(first.op, second.op)
        if ops is not None:
            return _with_pair_replaced(graph, first, second, ops)
    return None


def _pairs(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """Every node with its producer, where it is the producer's only reader."""
    producers = {node.output: node for node in graph.nodes}
    outputs = {output.tensor for output in graph.outputs}
    users = graph.users()
    for node in graph.nodes:
        source = node.inputs[0]
        alone = len(node.inputs) == 1 and len(users[source]) == 1 and source not in outputs
        if alone and source in producers:
            yield producers[source], node


def _with_pair_replaced(
    graph: Graph, first: Node, second: Node, ops: tuple[Operator, ...]
) -> Graph:
    if len(ops) == 1:
        layer = second if isinstance(second.op, Conv2d | Dense) else first
        replacement = [Node(name=layer.name, op=ops[0], inputs=first.inputs, output=second.output)]
    else:
        replacement = [
            Node(name=second.name, op=ops[0], inputs=first.inputs, output=first.output),
            Node(name=first.name, op=ops[1], inputs=(first.output,), output=second.output),
        ]
    nodes = [
        kept
        for node in graph.nodes
        if node is not first
        for kept in (replacement if node is second else [node])
    ]
    return graph_of(graph.name, graph.inputs, graph.outputs, nodes)


def _does_nothing(node: Node, graph: Graph) -> bool:
    if node.inputs[0] in {i.name for i in graph.inputs} and node.output in {
        output.tensor for output in graph.outputs
    }:
        return False  # an output is never the input itself
    match node.op:
        case Reshape():
            return graph.shapes[node.inputs[0]] == graph.shapes[node.output]
        case Clip(lo=lo, hi=hi):
            return lo == -np.inf and hi == np.inf
        case Affine(mul=mul, add=add):
            return _unbounded(node.op) and bool((mul == 1).all() and (add == 0).all())
    return False


def _without(graph: Graph, gone: Node) -> Graph:
    source = gone.inputs[0]

    def renamed(name: str) -> str:
        return source if name == gone.output else name

    nodes = [
        replace(node, inputs=tuple(map(renamed, node.inputs)))
        for node in graph.nodes
        if node is not gone
    ]
    outputs = [replace(output, tensor=renamed(output.tensor)) for output in graph.outputs]
    return graph_of(graph.name, graph.inputs, outputs, nodes)


def _unbounded(op: Clipped) -> bool:
    return op.lo == -np.inf and op.hi == np.inf


def _passes_padding(first: Affine, second: Conv2d) -> bool:
    """Padding is zero after the scaling too: nothing is padded, or nothing is added."""
    return not any(second.window.pad) or bool((first.add == 0).all())


def _scaled(layer: Conv2d | Dense, after: Affine) -> Conv2d | Dense:
    mul = after.mul.reshape(-1, *(1,) * (layer.weight.ndim - 1))
    return replace(
        layer,
        weight=layer.weight * mul,
        bias=layer.bias * after.mul + after.add,
        lo=after.lo,
        hi=after.hi,
    )


def _bounded(first: Clipped | Clip, second: Clip) -> Operator:
    """clip(clip(x, a, b), c, d) = clip(x, clip(a, c, d), clip(b, c, d))"""
    lo, hi = (min(max(bound, second.lo), second.hi) for bound in (first.lo, first.hi))
    return replace(first, lo=lo, hi=hi)
