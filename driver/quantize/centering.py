"""Asymmetric activations: a tensor stored less its middle, which the layers around it make up for.

What a ReLU makes lies in 0..R. Stored less R / 2 it is as far below zero as above, and the
symmetric int8 of the rest of the scheme has twice as many levels for it. The layer that makes it
takes the middle from its bias and bounds; one that reads it adds the middle times the sum of its
weights, as they are rounded, to its bias: zero points that cost nothing where the network runs.

A model that was quantized before says where the middle is: its integers of 8 bits become these.

The accelerator pads with the bytes 0, which would be the middle. A convolution that pads a tensor
with a middle gets it with a border of its own, whose bytes are zero less the middle; that border is
made on the processor. What anything else than a layer reads stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from driver.graph.ir import (
    Affine,
    Conv2d,
    Dense,
    Gather,
    Graph,
    Node,
    Reshape,
    Window,
)
from driver.graph.shapes import graph_of
from driver.integer.qir import INT8_MAX, INT8_MIN, QGather, QuantGraph, Quantize
from driver.integer.real_views import places_of
from driver.quantize.channel_weights import Weighted, row_sums, with_addend
from driver.quantize.integer_bias import Biased, bias_of, gain, weight_rows, with_bias


@dataclass(frozen=True, slots=True, kw_only=True)
class Middle:
    """What is taken from a tensor, and the largest magnitude of what is left."""

    real: float
    reach: float


def middles(
    graph: Graph,
    ranges: Mapping[str, float],
    *,
    borders: bool = True,
    wide: Collection[str] = (),
) -> dict[str, Middle]:
    """What can be taken from each tensor, where that is anything.

    Args:
        graph: a float network, folded.
        ranges: the largest value of every tensor.
        borders: also of tensors that a convolution pads, which needs a border then.
        wide: tensors of 16 bits, which have levels enough.
    """
    can = _tensors_that_can(graph, borders=borders).difference(wide)
    found: dict[str, Middle] = {}
    for node in graph.nodes:
        if isinstance(node.op, Reshape) and node.inputs[0] in found:
            found[node.output] = found[node.inputs[0]]
        elif isinstance(node.op, Weighted) and node.output in can:
            middle = (
                _middle_of_grid(node.op)
                if node.output in graph.ranges
                else _middle_of_relu(node.op, ranges[node.output])
            )
            if middle is not None:
                found[node.output] = middle
    return found


def centered(graph: Graph, middle: Mapping[str, Middle]) -> Graph:
    """The graph with the same results, to rounding, whose tensors are less by their middles.

    Convolutions that pad one of these read it with a border, a tensor of its own.
    """
    nodes: list[Node] = []
    borders: dict[tuple[str, Window], str] = {}
    for node in graph.nodes:
        op, inputs = node.op, node.inputs
        if isinstance(op, Weighted):
            before, after = (_real(middle, name) for name in (inputs[0], node.output))
            if isinstance(op, Conv2d) and before and any(op.window.pad):
                only_pad = Window(kernel=(1, 1), pad=op.window.pad)
                if (inputs[0], only_pad) not in borders:
                    border = _border(f"{node.output}.border", inputs[0], only_pad, graph, before)
                    borders[inputs[0], only_pad] = border.output
                    nodes.append(border)
                inputs = (borders[inputs[0], only_pad],)
                op = replace(op, window=replace(op.window, pad=(0, 0, 0, 0)))
            op = with_addend(op, (row_sums(op) * before if before else 0.0) - after)
            op = replace(op, lo=op.lo - after, hi=op.hi - after)
        nodes.append(replace(node, op=op, inputs=inputs))
    given = {
        name: middle[name].reach if name in middle else reach
        for name, reach in graph.ranges.items()
    }
    made = graph_of(graph.name, graph.inputs, graph.outputs, nodes)
    return replace(made, ranges=given)


def with_rounded_middles(
    quantized: QuantGraph, graph: Graph, middle: Mapping[str, Middle]
) -> QuantGraph:
    """The integer network in which a middle is multiplied by the integer weights, as all is.

    Their rounding would otherwise meet the values without the middle only: a constant error.

    Args:
        quantized: the integer form of `graph`.
        graph: what `centered` made.
        middle: what it took.
    """
    layers = {node.output: node.op for node in graph.nodes}
    known = {name: each.real for name, each in middle.items()}
    nodes = []
    for node in quantized.nodes:
        op, before = node.op, known.get(node.inputs[0], 0.0)
        if isinstance(op, Quantize | QGather):
            known[node.output] = before
        if isinstance(op, Biased) and before:
            layer = layers[node.output]
            source = quantized.tensors[node.inputs[0]]
            scale_in, scale = source.scale, quantized.tensors[node.output].scale
            assert isinstance(layer, Weighted)
            assert scale_in
            assert scale
            exact = row_sums(layer) * (before / scale) / gain(op)
            rounded = weight_rows(op).sum(axis=1) * (before / scale_in)
            op = with_bias(op, bias_of(op) + rounded - exact, source.largest)
        nodes.append(replace(node, op=op))
    tensors = {
        name: replace(tensor, middle=known.get(name, 0.0))
        for name, tensor in quantized.tensors.items()
    }
    return replace(quantized, nodes=tuple(nodes), tensors=tensors)


def _middle_of_relu(op: Weighted, reach: float) -> Middle | None:
    """Half of the range of what is never negative."""
    return Middle(real=reach / 2, reach=reach / 2) if op.lo == 0 and reach else None


def _middle_of_grid(op: Weighted) -> Middle | None:
    """What the byte 0 stands for if the bounds of a layer are the ends of 8 bits."""
    step = (op.hi - op.lo) / (INT8_MAX - INT8_MIN)
    if not math.isfinite(step) or step <= 0:
        return None
    real = op.lo - INT8_MIN * step
    return Middle(real=real, reach=INT8_MAX * step) if abs(real) > step / 2 else None


def _real(middle: Mapping[str, Middle], name: str) -> float:
    return middle[name].real if name in middle else 0.0


def _border(output: str, source: str, window: Window, graph: Graph, middle: float) -> Node:
    """An image with zeros around it, where zero is as far from the middle as it is."""
    top, left, bottom, right = window.pad
    around = ((0, 0), (top, bottom), (left, right))
    index = np.pad(places_of(graph.shapes[source]), around, constant_values=-1)
    op = Gather(index=index, fill=-middle)
    return Node(name=output, op=op, inputs=(source,), output=output)


def _tensors_that_can(graph: Graph, *, borders: bool) -> frozenset[str]:
    """The tensors whose readers can all make up for what is taken from them."""
    users = graph.users()
    fixed = {output.tensor for output in graph.outputs}
    found: set[str] = set()
    for node in reversed(graph.nodes):
        readers = users[node.output]
        if node.output not in fixed and all(_makes_up(each, found, borders) for each in readers):
            found.add(node.output)
    return frozenset(found)


def _makes_up(user: Node, can: set[str], borders: bool) -> bool:
    match user.op:
        case Reshape():
            return user.output in can
        case Conv2d(window=window):
            return borders or not any(window.pad)
    return isinstance(user.op, Dense | Affine)
