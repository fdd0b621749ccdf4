"""Layers of float tensors whose grids the data decide: the grid, the bytes on it, and the layer.

    y = layer(x)   becomes   g = DynamicGrid(x)
                             q = DynamicQuantizeLinear(x, g)
                             y = DynamicLayer(q, g)

Layers of the same tensor share its grid, and its bytes where they pad alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from tilefarm.dtype import DType

from driver.network.graph.ir import Shape
from driver.network.integer.qir import QuantNode, QuantTensor
from driver.network.integer.qlinear import (
    DynamicGrid,
    DynamicLayer,
    DynamicQuantizeLinear,
    QLinearConv2d,
    QLinearConvTranspose2d,
    QLinearLayer,
)

Pad: TypeAlias = tuple[int, int, int, int]

_NO_PAD: Final[Pad] = (0, 0, 0, 0)


class DynamicData:
    """Makes the nodes in front of such layers, each once, and adds them to a network.

    Args:
        fresh: makes a name for a tensor that no other has.
    """

    def __init__(
        self,
        nodes: list[QuantNode],
        tensors: dict[str, QuantTensor],
        fresh: Callable[[str], str],
    ) -> None:
        self._nodes = nodes
        self._tensors = tensors
        self._fresh = fresh
        self._grids: dict[str, str] = {}
        self._bytes: dict[tuple[str, Pad], str] = {}

    def layer(self, layer: QLinearLayer, source: str) -> tuple[DynamicLayer, tuple[str, str]]:
        """The layer of a float tensor, and what it reads.

        Raises:
            TypeError: a transposed layer, which has no such form.
        """
        if isinstance(layer, QLinearConvTranspose2d):
            raise TypeError("a transposed layer reads no grids that data decide")
        pad = _NO_PAD
        if isinstance(layer, QLinearConv2d):
            pad = layer.window.pad
            layer = replace(layer, window=replace(layer.window, pad=_NO_PAD))
        grid = self._grid(source)
        return DynamicLayer(layer=layer), (self._on_grid(source, grid, pad), grid)

    def _grid(self, source: str) -> str:
        if source not in self._grids:
            name = self._fresh(f"{source}.grid")
            shape = (self._tensors[source].shape[0], 2)
            self._tensors[name] = QuantTensor(shape=shape, dtype=DType.FLOAT32)
            self._nodes.append(
                QuantNode(name=name, op=DynamicGrid(), inputs=(source,), output=name)
            )
            self._grids[source] = name
        return self._grids[source]

    def _on_grid(self, source: str, grid: str, pad: Pad) -> str:
        if (source, pad) not in self._bytes:
            name = self._fresh(f"{source}.integers")
            shape = _padded(self._tensors[source].shape, pad)
            self._tensors[name] = QuantTensor(shape=shape, dtype=DType.UINT8)
            op = DynamicQuantizeLinear(pad=pad)
            self._nodes.append(QuantNode(name=name, op=op, inputs=(source, grid), output=name))
            self._bytes[source, pad] = name
        return self._bytes[source, pad]


def _padded(shape: Shape, pad: Pad) -> Shape:
    if not any(pad):
        return shape
    n, channels, height, width = shape
    top, left, bottom, right = pad
    return n, channels, height + top + bottom, width + left + right
