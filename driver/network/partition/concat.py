"""Concatenation by addresses: which tensors are made where a concatenation wants them.

The channels of blocked data [1, C/c, H, W, b, c] are contiguous runs of bytes, a block after the
other. A tensor whose channels fill whole blocks is therefore a part of what it is joined to, and
whoever makes it writes it there. Where the samples of a run take several rows of blocks, the rows
of the parts alternate in the whole, and all parts are copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driver.network.graph.ir import Shape
from driver.network.integer.qir import QConcat, QReshape, QSlice, QuantGraph, QuantNode


@dataclass(frozen=True, slots=True)
class Part:
    """An operand of a concatenation, and its first block in the whole.

    It is made in its place, or copied there if it already has another.
    """

    source: str
    first_block: int
    is_copied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """The concatenation that makes `output`: every part begins with a block of the whole, which has
    `channels`.

    Unless it `is_dense`, a part in the middle leaves lanes unused, and the channels have to be
    moved together afterwards. Where it `alternates`, no part has one place in the whole.
    """

    output: str
    parts: tuple[Part, ...]
    channels: int
    is_dense: bool
    alternates: bool


def plan_joins(graph: QuantGraph, batch: int, block: int) -> Mapping[str, Join]:
    """The concatenations of a network by the names of their results."""
    makers = {node.output: node for node in graph.nodes}
    placed: set[str] = set()
    joins = {}
    for node in graph.nodes:
        if isinstance(node.op, QConcat):
            joins[node.output] = _join(graph, node, makers, placed, batch, block)
    return joins


def channel_order(join: Join, graph: QuantGraph, block: int) -> list[int]:
    """For every channel of the concatenation, its lane in the whole with unused lanes."""
    return [
        part.first_block * block + lane
        for part in join.parts
        for lane in range(graph.tensors[part.source].shape[1])
    ]


def _join(
    graph: QuantGraph,
    node: QuantNode,
    makers: Mapping[str, QuantNode],
    placed: set[str],
    batch: int,
    block: int,
) -> Join:
    shapes: list[Shape] = [graph.tensors[name].shape for name in node.inputs]
    alternates = shapes[0][0] > batch
    parts, at = [], 0
    for name, shape in zip(node.inputs, shapes, strict=True):
        taken = name in placed or isinstance(makers[name].op, QReshape | QSlice)
        parts.append(Part(name, at, is_copied=alternates or taken))
        placed.add(name)
        at += -(-shape[1] // block)
    uneven = any(shape[1] % block for shape in shapes[:-1])
    channels = at * block if uneven else sum(shape[1] for shape in shapes)
    return Join(
        output=node.output,
        parts=tuple(parts),
        channels=channels,
        is_dense=not uneven,
        alternates=alternates,
    )
