"""First layers on images of few channels: whole windows side by side in the channels.

7x7 windows of 3 channels: a tile for each of 49 taps, 13 of 16 input lanes unused
-> 147 channels of one pixel: 10 tiles
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tilefarm.target import Target

from driver.network.graph.ir import Shape, Window
from driver.network.integer.qir import QConv2d, QGather, QuantGraph, Quantize, QuantNode
from driver.network.partition.assembly import Assembly
from driver.network.partition.layers import Attrs, pool_attrs, quantize_attrs
from driver.network.partition.values import Values
from driver.network.rewrites.padding_fusion import Pad, padding_of


@dataclass(frozen=True, slots=True)
class _Image:
    """The user's image that a tensor is, quantized, with bytes `fill` in `pad` around it."""

    quantize: QuantNode
    pad: Pad = (0, 0, 0, 0)
    fill: int = 0


class Images:
    """The layers that read the user's float32 image in windows, and the calls that make these."""

    def __init__(self, graph: QuantGraph, target: Target, made: Assembly, values: Values) -> None:
        self._graph = graph
        self._made = made
        self._values = values
        self._images = _images(graph)
        self._windowed = {
            node.name
            for node in graph.nodes
            if node.inputs[0] in self._images
            and isinstance(node.op, QConv2d)
            and packs_windows(node.op, target.lanes.block)
            and not (self._images[node.inputs[0]].fill and any(node.op.window.pad))
        }
        self._windows: dict[tuple[str, Window], str] = {}

    def has_windows(self, node: QuantNode) -> bool:
        """Whether the node is a layer that reads windows."""
        return node.name in self._windowed

    def is_all_windows(self, image: QuantNode) -> bool:
        """Whether only such layers read the image that a node makes, so that it need not."""
        readers = [node for node in self._graph.nodes if image.output in node.inputs]
        return image.output in self._images and all(
            self.has_windows(each) or (each.output in self._images and self.is_all_windows(each))
            for each in readers
        )

    def windows_of(self, node: QuantNode, op: QConv2d) -> tuple[str, Shape]:
        """The tensor of a layer's windows, and its shape; equal windows are made once."""
        n, c, *_ = self._graph.tensors[node.inputs[0]].shape
        pixels = self._graph.tensors[node.output].shape[2:]
        shape = self._made.blocked((n, math.prod(op.window.kernel) * c, *pixels))
        key = (node.inputs[0], op.window)
        if key not in self._windows:
            image = self._images[node.inputs[0]]
            self._windows[key] = self._made.fresh(f"{image.quantize.output}.windows")
            self._cut(image, op.window, self._windows[key], shape)
        return self._windows[key], shape

    def _cut(self, image: _Image, window: Window, result: str, shape: Shape) -> None:
        assert isinstance(image.quantize.op, Quantize)
        top, left, bottom, right = (a + b for a, b in zip(window.pad, image.pad, strict=True))
        whole = replace(window, pad=(top, left, bottom, right))
        fill: Attrs = {"fill": image.fill} if image.fill else {}
        self._made.call(
            result,
            "quantize_windows",
            {"x": self._values.stored(image.quantize.inputs[0])},
            {},
            {
                **pool_attrs(whole),
                "dilation": window.dilation,
                **quantize_attrs(image.quantize.op),
                **fill,
            },
            result=result,
            shape=shape,
            why="turns float32 into int8, whole windows in the channels",
        )


def _images(graph: QuantGraph) -> dict[str, _Image]:
    """The user's images as they are quantized, and these with borders, by their tensors."""
    found: dict[str, _Image] = {}
    for node in graph.nodes:
        if isinstance(node.op, Quantize):
            found[node.output] = _Image(node)
        elif isinstance(node.op, QGather) and node.inputs[0] in found:
            image = found[node.inputs[0]]
            pad = padding_of(node.op.index, graph.tensors[node.inputs[0]].shape)
            if pad is not None and not any(image.pad):
                found[node.output] = _Image(image.quantize, pad, node.op.fill)
    return found


def packs_windows(op: QConv2d, block: int) -> bool:
    """Whether whole windows in the channels are fewer tiles than a tile for each tap."""
    ci, taps = op.weight.shape[1], math.prod(op.window.kernel)
    return op.groups == 1 and -(-taps * ci // block) < -(-ci // block) * taps
