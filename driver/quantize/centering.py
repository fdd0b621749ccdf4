"""Asymmetric activations: a tensor stored less its middle, which the layers around it make up for.

What a ReLU makes lies in 0..R. Stored less R / 2 it is as far below zero as above, and the
symmetric int8 of the rest of the scheme has twice as many levels for it. The layer that makes it
takes the middle from its bias and bounds; one that reads it adds the middle times the sum of its
weights, as they are rounded, to its bias: zero points that cost nothing where the network runs.

This is for what layers without padding read. The accelerator pads with the bytes 0, which would be
the middle: what a layer with padding reads, or anything else than a layer, stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from driver.graph.ir import Affine, Conv2d, Dense, Graph, Node, Reshape
from driver.integer.qir import QuantGraph, Quantize
from driver.quantize.channel_weights import Weighted, row_sums, with_addend
from driver.quantize.integer_bias import Biased, bias_of, gain, weight_rows, with_bias


def middles(graph: Graph, ranges: Mapping[str, float]) -> dict[str, float]:
    """What can be taken from each tensor, where that is anything.

    Args:
        graph: a float network, folded.
        ranges: the largest value of every tensor.
    """
    can = _tensors_that_can(graph)
    found: dict[str, float] = {}
    for node in graph.nodes:
        if isinstance(node.op, Weighted) and node.op.lo == 0 and node.output in can:
            found[node.output] = ranges[node.output] / 2
        elif isinstance(node.op, Reshape) and node.inputs[0] in found:
            found[node.output] = found[node.inputs[0]]
    return found


def centered(graph: Graph, middle: Mapping[str, float]) -> Graph:
    """The graph with the same results, to rounding, whose tensors are less by their middles."""
    nodes = []
    for node in graph.nodes:
        op = node.op
        if isinstance(op, Weighted):
            before, after = middle.get(node.inputs[0], 0.0), middle.get(node.output, 0.0)
            op = with_addend(op, (row_sums(op) * before if before else 0.0) - after)
            op = replace(op, lo=op.lo - after, hi=op.hi - after)
        nodes.append(replace(node, op=op))
    return replace(graph, nodes=tuple(nodes))


def with_rounded_middles(
    quantized: QuantGraph, graph: Graph, middle: Mapping[str, float]
) -> QuantGraph:
    """The integer network in which a middle is multiplied by the integer weights, as all is.

    Their rounding would otherwise meet the values without the middle only: a constant error.

    Args:
        quantized: the integer form of `graph`.
        graph: what `centered` made.
        middle: what it took.
    """
    layers = {node.output: node.op for node in graph.nodes}
    known = dict(middle)
    nodes = []
    for node in quantized.nodes:
        op, before = node.op, known.get(node.inputs[0], 0.0)
        if isinstance(op, Quantize):
            known[node.output] = before
        if isinstance(op, Biased) and before:
            layer = layers[node.output]
            scale_in, scale = (quantized.tensors[n].scale for n in (node.inputs[0], node.output))
            assert isinstance(layer, Weighted)
            assert scale_in
            assert scale
            exact = row_sums(layer) * (before / scale) / gain(op)
            rounded = weight_rows(op).sum(axis=1) * (before / scale_in)
            op = with_bias(op, bias_of(op) + rounded - exact)
        nodes.append(replace(node, op=op))
    tensors = {
        name: replace(tensor, middle=known.get(name, 0.0))
        for name, tensor in quantized.tensors.items()
    }
    return replace(quantized, nodes=tuple(nodes), tensors=tensors)


def _tensors_that_can(graph: Graph) -> frozenset[str]:
    """The tensors whose readers can all make up for what is taken from them."""
    users = graph.users()
    fixed = {output.tensor for output in graph.outputs} | set(graph.ranges)
    found: set[str] = set()
    for node in reversed(graph.nodes):
        if node.output not in fixed and all(_makes_up(user, found) for user in users[node.output]):
            found.add(node.output)
    return frozenset(found)


def _makes_up(user: Node, can: set[str]) -> bool:
    match user.op:
        case Conv2d(window=window):
            return not any(window.pad)
        case Reshape():
            return user.output in can
    return isinstance(user.op, Dense | Affine)
