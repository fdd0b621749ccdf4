"""Constants of a kernel in the layout in which the kernel reads them."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from tilefarm.target import Target

from driver.graph.blocks import lane_blocks, weight_blocks
from driver.graph.ir import Shape
from driver.graph.qir import Int8Array, Int32Array


def packed_conv_weight(weight: Int8Array, target: Target) -> NDArray[Any]:
    """[Co, Ci, Kh, Kw] as [Co/c, Ci/c, Kh, Kw, c, c]; absent channels are zero."""
    return weight_blocks(weight, target.vta.block)


def packed_dense_weight(
    weight: Int8Array, target: Target, flattened: Shape | None = None
) -> NDArray[Any]:
    """[Co, Ci] as [Co/c, Ci/c, c, c].

    `flattened` is the shape [C, ...] of data that were flattened before the layer: the columns then
    follow the blocked data, so that flattening moves nothing. Ci/c is the count of blocks there.
    """
    block = target.vta.block
    tiles = weight_blocks(weight.reshape(weight.shape[0], *(flattened or weight.shape[1:])), block)
    return tiles.reshape(tiles.shape[0], -1, block, block)


def packed_lanes(values: Int32Array, target: Target) -> NDArray[Any]:
    """Per-channel values [C] as [C/c, b, c], equal over b; absent channels are zero."""
    return lane_blocks(values, target.vta.batch, target.vta.block)
