"""Zeros around images belong into the windows that slide over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from driver.network.graph.ir import Conv2d, Gather, Graph, GraphNode, IndexArray, Shape
from driver.network.graph.shapes import graph_of

Pad = tuple[int, int, int, int]


def with_padding_in_windows(graph: Graph) -> Graph:
    """The graph where no convolution alone reads an image that zeros were put around.

    conv(gather(x, -1 around the image), pad p)  ->  conv(x, pad p + what the gather adds)
    """
    merged = {conv.output: (gather, pad) for gather, conv, pad in _padded_convolutions(graph)}
    gone = {gather.output for gather, _ in merged.values()}
    nodes = []
    for node in graph.nodes:
        if node.output in merged and isinstance(node.op, Conv2d):
            gather, pad = merged[node.output]
            whole = tuple(a + b for a, b in zip(node.op.window.pad, pad, strict=True))
            window = replace(node.op.window, pad=(whole[0], whole[1], whole[2], whole[3]))
            node = replace(node, op=replace(node.op, window=window), inputs=gather.inputs)
        if node.output not in gone:
            nodes.append(node)
    return graph_of(graph.name, graph.inputs, graph.outputs, nodes) if merged else graph


def _padded_convolutions(graph: Graph) -> Iterator[tuple[GraphNode, GraphNode, Pad]]:
    makers = {node.output: node for node in graph.nodes}
    users, outputs = graph.users(), {output.tensor for output in graph.outputs}
    for node in graph.nodes:
        maker = makers.get(node.inputs[0])
        if maker is None or not isinstance(node.op, Conv2d) or not isinstance(maker.op, Gather):
            continue
        pad = padding_of(maker.op.index, graph.shapes[maker.inputs[0]])
        if pad is not None and len(users[maker.output]) == 1 and maker.output not in outputs:
            yield maker, node, pad


def padding_of(index: IndexArray, shape: Shape) -> Pad | None:
    """Zeros (top, left, bottom, right) around an image [N, C, H, W]; None if that is not all."""
    if index.ndim != 3 or len(shape) != 4 or index.shape[0] != shape[1]:
        return None
    rows, columns = (np.flatnonzero((index[0] >= 0).any(axis=axis)) for axis in (1, 0))
    if not len(rows) or not len(columns):
        return None
    top, left = int(rows[0]), int(columns[0])
    bottom, right = index.shape[1] - shape[2] - top, index.shape[2] - shape[3] - left
    if bottom < 0 or right < 0:
        return None
    places = np.arange(np.prod(shape[1:]), dtype=np.int32).reshape(shape[1:])
    around = ((0, 0), (top, bottom), (left, right))
    same = np.array_equal(index, np.pad(places, around, constant_values=-1))
    return (top, left, bottom, right) if same else None
