"""Asymmetric activations: a tensor stored less its middle, which the layers around it make up for.

What a ReLU makes lies in 0..R. Stored less R / 2 it is as far below zero as above, and the
symmetric int8 of the rest of the scheme has twice as many levels for it. The layer that makes it
takes the middle from its bias and bounds; one that reads it adds the middle times the sum of its
weights, as they are rounded, to its bias: zero points that cost nothing where the network runs.

An answer of the network has a middle as well, if nothing else reads it: it is added where that
becomes float. A softmax gives the same without it.

A model that was quantized before says where the middle is: its integers of 8 bits become these.
What the user gives may have one as well, see `quantize.input_zero_points`.

The accelerator pads with the bytes 0, which would be the middle. A convolution that pads a tensor
with a middle gets it with a border of its own, whose bytes are zero less the middle. Where all that
read the tensor pad it alike, and a convolution makes it, it is made with that border around it (see
`partition.borders`), which costs next to nothing; otherwise the processor copies it into
one. What anything else than a layer reads stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np
from tilefarm.names import unused

from driver.network.graph import ir
from driver.network.graph.ir import Graph, GraphNode, Shape, Window
from driver.network.graph.shapes import graph_of
from driver.network.integer.qir import INT8_MAX, INT8_MIN, QGather, QuantGraph, Quantize
from driver.network.integer.real_views import places_of
from driver.network.quantize.channel_weights import Weighted, row_sums, with_addend
from driver.network.quantize.integer_bias import Biased, gain, weight_rows, with_bias

LEVELS: Final = INT8_MAX - INT8_MIN
"""The steps between the ends of 8 bits."""
_NO_PAD: Final = (0, 0, 0, 0)
_MASK: Final = 1e30
"""Weights as large, which stand for infinity, leave float32 times a middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroPoint:
    """The value that a tensor's byte 0 stands for, and the largest magnitude of what is left."""

    real: float
    reach: float


def middles(
    graph: Graph,
    ranges: Mapping[str, float],
    *,
    inputs: Mapping[str, ZeroPoint] = MappingProxyType({}),
    copies: bool = True,
    without: Collection[str] = (),
) -> dict[str, ZeroPoint]:
    """What can be taken from each tensor, where that is anything.

    Args:
        graph: a float network, folded.
        ranges: the largest value of every tensor.
        inputs: what could be taken from the network's inputs, see `quantize.input_zero_points`.
        copies: also of tensors that have to be copied into their borders.
        without: tensors that need none.
    """
    can = _tensors_that_can(graph, copies=copies).difference(without)
    found = {name: middle for name, middle in inputs.items() if name in can}
    for node in graph.nodes:
        if isinstance(node.op, ir.Reshape) and node.inputs[0] in found:
            found[node.output] = found[node.inputs[0]]
        elif isinstance(node.op, Weighted) and node.output in can:
            middle = (
                middle_of_ends(node.op.lo, node.op.hi)
                if node.output in graph.ranges
                else _middle_of_relu(node.op, ranges[node.output])
            )
            if middle is not None:
                found[node.output] = middle
    return found


def middle_of_ends(lo: float, hi: float) -> ZeroPoint | None:
    """What the byte 0 stands for if these are the ends of 8 bits."""
    step = (hi - lo) / LEVELS
    if not math.isfinite(step) or step <= 0:
        return None
    real = lo - INT8_MIN * step
    return ZeroPoint(real=real, reach=INT8_MAX * step) if abs(real) > step / 2 else None


def input_ranges(made: Graph, middle: Mapping[str, ZeroPoint]) -> dict[str, float]:
    """The ranges of the inputs that `centered` took a middle from, whose levels are given."""
    given = {i.name for i in made.inputs}
    return {
        node.output: middle[node.inputs[0]].reach
        for node in made.nodes
        if isinstance(node.op, ir.SubtractZeroPoint) and node.inputs[0] in given
    }


def ranges_around(
    made: Graph, ranges: Mapping[str, float], middle: Mapping[str, ZeroPoint]
) -> dict[str, float]:
    """The ranges of what `centered` made, from those of what it was made from."""
    found = dict(ranges) | {name: each.reach for name, each in middle.items()}
    for node in made.nodes:
        if node.output not in found:
            found[node.output] = found[node.inputs[0]]
    return found


def copied_tensors(graph: Graph) -> frozenset[str]:
    """The tensors that can have a middle only if the processor copies them into borders."""
    return _tensors_that_can(graph, copies=True) - _tensors_that_can(graph, copies=False)


def centered(graph: Graph, middle: Mapping[str, ZeroPoint]) -> Graph:
    """The graph with the same results, to rounding, whose tensors are less by their middles.

    Convolutions that pad one of these read it with a border, a tensor of its own.
    """
    nodes: list[GraphNode] = []
    borders: dict[tuple[str, Window], str] = {}
    moved: dict[str, str] = {}

    def less(name: str, suffix: str, real: float) -> str:
        made = unused(f"{name}.{suffix}", graph.shapes)
        nodes.append(
            GraphNode(name=made, op=ir.SubtractZeroPoint(middle=real), inputs=(name,), output=made)
        )
        return made

    for i in graph.inputs:
        if i.name in middle:
            moved[i.name] = less(i.name, "centered", middle[i.name].real)
    for node in graph.nodes:
        op, inputs = node.op, tuple(moved.get(name, name) for name in node.inputs)
        if isinstance(op, Weighted):
            before, after = (_real(middle, name) for name in (node.inputs[0], node.output))
            if isinstance(op, ir.Conv2d) and before and any(op.window.pad):
                only_pad = Window(kernel=(1, 1), pad=op.window.pad)
                if (inputs[0], only_pad) not in borders:
                    shape = graph.shapes[node.inputs[0]]
                    border = _border(f"{node.output}.border", inputs[0], only_pad, shape, before)
                    borders[inputs[0], only_pad] = border.output
                    nodes.append(border)
                inputs = (borders[inputs[0], only_pad],)
                op = replace(op, window=replace(op.window, pad=(0, 0, 0, 0)))
            op = with_addend(op, (row_sums(op) * before if before else 0.0) - after)
            op = replace(op, lo=op.lo - after, hi=op.hi - after)
        nodes.append(replace(node, op=op, inputs=inputs))
    answers = {
        name: less(name, "float", -middle[name].real)
        for name in dict.fromkeys(output.tensor for output in graph.outputs)
        if name in middle
    }
    outputs = tuple(
        replace(output, tensor=answers.get(output.tensor, output.tensor))
        for output in graph.outputs
    )
    given = {
        name: middle[name].reach if name in middle else reach
        for name, reach in graph.ranges.items()
    }
    made = graph_of(graph.name, graph.inputs, outputs, nodes)
    if given:
        given |= input_ranges(made, middle)
    return replace(made, ranges=given)


def with_rounded_middles(
    quantized: QuantGraph, graph: Graph, middle: Mapping[str, ZeroPoint]
) -> QuantGraph:
    """The integer network in which a middle is multiplied by the integer weights, as all is.

    Their rounding would otherwise meet the values without the middle only: a constant error.

    Args:
        quantized: the integer form of `graph`.
        graph: what `centered` made.
        middle: what it took.
    """
    layers = {node.output: node.op for node in graph.nodes}
    known = {name: each.real for name, each in middle.items() if name in layers}
    nodes = []
    for node in quantized.nodes:
        op, before = node.op, known.get(node.inputs[0], 0.0)
        if isinstance(op, Quantize | QGather):
            offset = op.offset / op.inv_scale if isinstance(op, Quantize) else 0.0
            known[node.output] = before - offset
        if isinstance(op, Biased) and before:
            layer = layers[node.output]
            source = quantized.tensors[node.inputs[0]]
            scale_in, scale = source.scale, quantized.tensors[node.output].scale
            assert isinstance(layer, Weighted)
            assert scale_in
            assert scale
            exact = row_sums(layer) * (before / scale) / gain(op)
            rounded = weight_rows(op).sum(axis=1) * (before / scale_in)
            op = with_bias(op, op.bias + rounded - exact, source.largest)
        nodes.append(replace(node, op=op))
    tensors = {
        name: replace(tensor, middle=known.get(name, 0.0))
        for name, tensor in quantized.tensors.items()
    }
    return replace(quantized, nodes=tuple(nodes), tensors=tensors)


def _middle_of_relu(op: Weighted, reach: float) -> ZeroPoint | None:
    """Half of the range of what is never negative."""
    return ZeroPoint(real=reach / 2, reach=reach / 2) if op.lo == 0 and reach else None


def _real(middle: Mapping[str, ZeroPoint], name: str) -> float:
    return middle[name].real if name in middle else 0.0


def _border(output: str, source: str, window: Window, shape: Shape, middle: float) -> GraphNode:
    """An image with zeros around it, where zero is as far from the middle as it is."""
    top, left, bottom, right = window.pad
    around = ((0, 0), (top, bottom), (left, right))
    index = np.pad(places_of(shape), around, constant_values=-1)
    op = ir.Gather(index=index, fill=-middle)
    return GraphNode(name=output, op=op, inputs=(source,), output=output)


def _tensors_that_can(graph: Graph, *, copies: bool) -> frozenset[str]:
    """The tensors whose readers can all make up for what is taken from them."""
    users = graph.users()
    answers = {output.tensor for output in graph.outputs}
    found: set[str] = set()
    makers: dict[str, ir.Operator | None] = dict.fromkeys(i.name for i in graph.inputs)
    makers |= {node.output: node.op for node in graph.nodes}
    for name, op in reversed(makers.items()):
        readers = users[name]
        if name in answers and (readers or op is None):
            continue
        if not all(_makes_up(each, found) for each in readers):
            continue
        if copies or not _is_copied(op, readers):
            found.add(name)
    return frozenset(found)


def _makes_up(user: GraphNode, can: set[str]) -> bool:
    if isinstance(user.op, ir.Reshape):
        return user.output in can
    if isinstance(user.op, ir.Conv2d | ir.Dense | ir.Affine):
        return float(np.abs(user.op.weight).max(initial=0)) < _MASK
    return isinstance(user.op, ir.Softmax)


def _is_copied(maker: ir.Operator | None, readers: Sequence[GraphNode]) -> bool:
    """Whether a tensor with a middle has to be copied into a border, as none can be stored.

    None makes what the user gives; it is quantized into its border, or by windows.
    """
    pads = {each.op.window.pad if isinstance(each.op, ir.Conv2d) else _NO_PAD for each in readers}
    is_stored = len(pads) == 1 and (maker is None or isinstance(maker, ir.Conv2d | ir.Affine))
    return any(map(any, pads)) and not is_stored
