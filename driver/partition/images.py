"""First layers on images of few channels: whole windows side by side in the channels.

7x7 windows of 3 channels: a tile for each of 49 taps, 13 of 16 input lanes unused
-> 147 channels of one pixel: 10 tiles
"""

from __future__ import annotations

import math

from tilefarm.target import Target

from driver.graph.ir import Shape, Window
from driver.integer.qir import QConv2d, QuantGraph, Quantize, QuantNode
from driver.partition.assembly import Assembly
from driver.partition.layers import pool_attrs
from driver.partition.values import Values


class Images:
    """The layers that read the user's float32 image in windows, and the calls that make these."""

    def __init__(self, graph: QuantGraph, target: Target, made: Assembly, values: Values) -> None:
        self._graph = graph
        self._made = made
        self._values = values
        self._quantized = {n.output: n for n in graph.nodes if isinstance(n.op, Quantize)}
        self._windowed = {
            node.name
            for node in graph.nodes
            if node.inputs[0] in self._quantized
            and isinstance(node.op, QConv2d)
            and packs_windows(node.op, target.vta.block)
        }
        self._windows: dict[tuple[str, Window], str] = {}

    def has_windows(self, node: QuantNode) -> bool:
        """Whether the node is a layer that reads windows."""
        return node.name in self._windowed

    def is_all_windows(self, quantize: QuantNode) -> bool:
        """Whether only such layers read what a node quantizes, so that it need not."""
        readers = [node for node in self._graph.nodes if quantize.output in node.inputs]
        return all(self.has_windows(node) for node in readers)

    def windows_of(self, node: QuantNode, op: QConv2d) -> tuple[str, Shape]:
        """The tensor of a layer's windows, and its shape; equal windows are made once."""
        n, c, *_ = self._graph.tensors[node.inputs[0]].shape
        pixels = self._graph.tensors[node.output].shape[2:]
        shape = self._made.blocked((n, math.prod(op.window.kernel) * c, *pixels))
        key = (node.inputs[0], op.window)
        if key not in self._windows:
            self._windows[key] = self._made.fresh(f"{node.inputs[0]}.windows")
            self._cut(self._quantized[node.inputs[0]], op.window, self._windows[key], shape)
        return self._windows[key], shape

    def _cut(self, quantize: QuantNode, window: Window, result: str, shape: Shape) -> None:
        assert isinstance(quantize.op, Quantize)
        inv_scale = quantize.op.inv_scale
        self._made.call(
            result,
            "quantize_windows",
            {"x": self._values.stored(quantize.inputs[0])},
            {},
            {**pool_attrs(window), "dilation": window.dilation, "inv_scale": inv_scale},
            result=result,
            shape=shape,
            why="turns float32 into int8, whole windows in the channels",
        )


def packs_windows(op: QConv2d, block: int) -> bool:
    """Whether whole windows in the channels are fewer tiles than a tile for each tap."""
    ci, taps = op.weight.shape[1], math.prod(op.window.kernel)
    return op.groups == 1 and -(-taps * ci // block) < -(-ci // block) * taps
