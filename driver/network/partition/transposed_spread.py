"""Transposed convolutions as convolutions of spread data, where their kernel cannot be used.

    y = QLinearConvTranspose2d(x)   ->   s = QGather(x)      # zeros between its rows and columns
                                         y = QLinearConv2d(s)

The kernel has one bias for all phases of the output's pixels, and weights of int8. Zero points of
the data ask for a bias for each phase if their taps add up to different sums, and zero points of
the weights may leave int8. "Zeros" are the data's zero point, so that both make the same sums.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefarm.names import unused

from driver.network.graph.ir import IndexArray, Window
from driver.network.integer.qir import QGather, QuantGraph, QuantNode, QuantTensor
from driver.network.integer.qlinear import ByteArray, QLinearConv2d, QLinearConvTranspose2d
from driver.network.partition.qlinear_weights import centered_bias, centered_weights, weight_planes


def with_spread_data(graph: QuantGraph) -> QuantGraph:
    """The same network without transposed convolutions that their kernel has no form for."""
    nodes: list[QuantNode] = []
    tensors = dict(graph.tensors)
    for node in graph.nodes:
        if isinstance(node.op, QLinearConvTranspose2d) and not _has_kernel(node.op):
            nodes += _spread(node, node.op, tensors)
        else:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes), tensors=tensors)


def _has_kernel(op: QLinearConvTranspose2d) -> bool:
    weight = centered_weights(op)
    biases = centered_bias(op, weight).reshape(len(weight), -1)
    return len(weight_planes(weight)) == 1 and bool((biases == biases[:, :1]).all())


def _spread(
    node: QuantNode, op: QLinearConvTranspose2d, tensors: dict[str, QuantTensor]
) -> list[QuantNode]:
    (source,) = node.inputs
    n, channels, height, width = tensors[source].shape
    _, down, across, *_ = op.weight.shape
    top, left, bottom, right = op.pad
    name = unused(f"{source}.spread", tensors)
    shape = (n, channels, height * down, width * across)
    tensors[name] = replace(tensors[source], shape=shape)
    gather = QGather(index=_places(channels, height, width, (down, across)), fill=op.x_zero)
    window = Window(
        kernel=(down * op.weight.shape[4], across * op.weight.shape[5]),
        pad=(down * top + down - 1, across * left + across - 1, down * bottom, across * right),
    )
    layer = QLinearConv2d(
        weight=_taps(op.weight),
        weight_zero=op.weight_zero,
        bias=op.bias,
        x_zero=op.x_zero,
        window=window,
        groups=1,
        to=op.to,
    )
    return [
        QuantNode(name=name, op=gather, inputs=(source,), output=name),
        replace(node, op=layer, inputs=(name,)),
    ]


def _places(channels: int, height: int, width: int, stride: tuple[int, int]) -> IndexArray:
    """Where the elements of the spread image come from; -1 between them."""
    down, across = stride
    places = np.full((channels, height * down, width * across), -1, np.int32)
    own = np.arange(channels * height * width, dtype=np.int32)
    places[:, ::down, ::across] = own.reshape(channels, height, width)
    return places


def _taps(weight: ByteArray) -> NDArray[Any]:
    """Weights [Co, Sh, Sw, Ci, Kh, Kw] as [Co, Ci, Sh*Kh, Sw*Kw].

    Tap kh of phase p sees the row that is Sh*kh - p rows away.
    """
    outputs, down, across, inputs, kernel_h, kernel_w = weight.shape
    flipped = weight[:, ::-1, ::-1]
    taps = flipped.transpose(0, 3, 4, 1, 5, 2)
    return np.ascontiguousarray(taps.reshape(outputs, inputs, kernel_h * down, kernel_w * across))
