"""Constants of a kernel in the layout in which the kernel reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefarm.target import Target

from driver.network.graph.ir import Shape
from driver.network.integer.blocks import lane_blocks, weight_blocks
from driver.network.integer.qir import INT8_MAX, Int8Array, Int32Array, WeightArray


def in_planes(weight: WeightArray, packed: Callable[[Int8Array], NDArray[Any]]) -> NDArray[Any]:
    """[Co/c, ...] as `packed` makes them of int8 weights; of int16 ones [Co/c, 2, ...].

    Plane 0 is high, plane 1 low: a weight is high * 256 + low.
    """
    if weight.dtype == np.int8:
        return packed(np.asarray(weight, np.int8))
    high, low = _high_and_low(weight)
    return np.stack([packed(high.astype(np.int8)), packed(low)], axis=1)


def packed_conv_weight(weight: Int8Array, target: Target) -> NDArray[Any]:
    """[Co, Ci, Kh, Kw] as [Co/c, Ci/c, Kh, Kw, c, c]; absent channels are zero."""
    return weight_blocks(weight, target.lanes.block)


def packed_grouped_weight(weight: Int8Array, groups: int, target: Target) -> NDArray[Any]:
    """[Co, Ci/groups, Kh, Kw] in tiles of so many `block_groups`.

    Groups that are smaller than a block share one, as tiles with zeros between different groups.
    Where they do not fill whole blocks of input and output alike, all of them become one group.
    """
    co, ci = weight.shape[0] // groups, weight.shape[1]
    together = _groups_together(groups, ci, co, target.lanes.block)
    tiles = [
        packed_conv_weight(_side_by_side(weight[first * co :][: together * co], ci, co), target)
        for first in range(0, groups, together)
    ]
    return np.concatenate(tiles)


def block_groups(weight: WeightArray, groups: int, target: Target) -> int:
    """How many groups of whole blocks a convolution's groups become."""
    co, ci = weight.shape[0] // groups, weight.shape[1]
    return -(-groups // _groups_together(groups, ci, co, target.lanes.block))


def packed_transposed_weight(weight: Int8Array, target: Target) -> NDArray[Any]:
    """[Co, Sh, Sw, Ci, Kh, Kw] as [Co/c, Sh, Sw, Ci/c, Kh, Kw, c, c]."""
    phases = weight.transpose(0, 3, 1, 2, 4, 5)
    return np.ascontiguousarray(
        weight_blocks(phases, target.lanes.block).transpose(0, 2, 3, 1, 4, 5, 6, 7)
    )


def packed_window_weight(weight: Int8Array, target: Target) -> NDArray[Any]:
    """[Co, Ci, Kh, Kw] for data whose channels are whole windows, as `quantize_windows` has them:
    [Co/c, Kh*Kw*Ci/c, 1, 1, c, c].
    """
    rows = weight.transpose(0, 2, 3, 1).reshape(weight.shape[0], -1, 1, 1)
    return packed_conv_weight(np.ascontiguousarray(rows), target)


def packed_dense_weight(
    weight: Int8Array, target: Target, flattened: Shape | None = None
) -> NDArray[Any]:
    """[Co, Ci] as [Co/c, Ci/c, c, c].

    `flattened` is the shape [C, ...] of data that were flattened before the layer: the columns then
    follow the blocked data, so that flattening moves nothing. Ci/c is the count of blocks there.
    """
    block = target.lanes.block
    tiles = weight_blocks(weight.reshape(weight.shape[0], *(flattened or weight.shape[1:])), block)
    return tiles.reshape(tiles.shape[0], -1, block, block)


def packed_lanes(values: Int32Array, target: Target) -> NDArray[Any]:
    """Per-channel values [C] as [C/c, b, c], equal over b; absent channels are zero."""
    return lane_blocks(values, target.lanes.batch, target.lanes.block)


def packed_shift(shift: Int32Array, target: Target) -> NDArray[Any]:
    """Shifts [C] as [C/c] where the channels of every block have the same, else as [C/c, b, c]."""
    block = target.lanes.block
    firsts = shift[::block]
    if (np.repeat(firsts, block)[: len(shift)] == shift).all():
        return np.ascontiguousarray(firsts)
    return packed_lanes(shift, target)


def bias_tiles(bias: Int32Array, target: Target) -> Int8Array:
    """Biases [C] as int8 [C/c, T, c, c]: the sum over t of tile t times `unit_rows` is the bias.

    A bias B is 127*q + r with r within -63..63: r is on the last lane, q spread over the others.
    There are as many tiles as the largest one needs.
    """
    block = target.lanes.block
    rows = lane_blocks(bias.astype(np.int64), 1, block)[:, 0]
    high = np.rint(rows / INT8_MAX).astype(np.int64)
    low = rows - INT8_MAX * high
    count = max(1, -(-int(np.abs(high).max(initial=0)) // (INT8_MAX * (block - 1))))
    tiles = np.zeros((rows.shape[0], count, block, block), np.int8)
    tiles[:, 0, :, -1] = low
    for t, lane in np.ndindex(count, block - 1):
        part = np.clip(high, -INT8_MAX, INT8_MAX)
        tiles[:, t, :, lane] = part
        high = high - part
    return tiles


def bias_planes(bias: Int32Array, target: Target) -> Int8Array:
    """Biases [C] as int8 [C/c, 2, T, c, c] in `bias_tiles`: 256 times those of plane 0 and plane 1.

    One tile is always enough for plane 1, whose other tiles are zero.
    """
    high, low = (bias_tiles(part.astype(np.int32), target) for part in _high_and_low(bias))
    more = ((0, 0), (0, high.shape[1] - low.shape[1]), (0, 0), (0, 0))
    return np.stack([high, np.pad(low, more)], axis=1)


def unit_rows(target: Target) -> Int8Array:
    """int8 [b, c]: the constant vectors (127, ..., 127, 1) that go through biases in tiles."""
    rows = np.full((target.lanes.batch, target.lanes.block), INT8_MAX, np.int8)
    rows[:, -1] = 1
    return rows


def diagonal_tile(value: int, target: Target) -> Int8Array:
    """int8 [c, c]: multiplies every lane by the value."""
    return np.asarray(np.eye(target.lanes.block) * value, np.int8)


def diagonal_lanes(values: Int32Array, target: Target) -> Int8Array:
    """int8 [C/c, 1, 1, 1, c, c]: for every block a tile that multiplies lane by lane by [C]."""
    block = target.lanes.block
    lanes = lane_blocks(values, 1, block)[:, 0]
    tiles = np.zeros((lanes.shape[0], 1, 1, 1, block, block), np.int8)
    tiles[..., np.arange(block), np.arange(block)] = lanes[:, None, None, None]
    return tiles


def _high_and_low(values: NDArray[Any]) -> tuple[NDArray[Any], Int8Array]:
    """Whole numbers as high * 256 + low, low within int8; high of the numbers' type."""
    low = values.astype(np.int8)  # the low byte
    return ((values >> 7) + 1) >> 1, low  # (values + 128) >> 8, which could leave the type


def _groups_together(groups: int, ci: int, co: int, block: int) -> int:
    """How many groups are one group of whole blocks; all where fewer would not line up."""
    together = int(np.lcm(block // np.gcd(ci, block), block // np.gcd(co, block)))
    count = -(-groups // together)
    lined_up = all(
        -(-groups * lanes // block) == count * together * lanes // block for lanes in (ci, co)
    )
    return together if lined_up else groups


def _side_by_side(weight: Int8Array, ci: int, co: int) -> Int8Array:
    """Groups [G*Co, Ci, Kh, Kw] as one convolution [G*Co, G*Ci, Kh, Kw], zero between groups."""
    groups = weight.shape[0] // co
    whole = np.zeros((weight.shape[0], groups * ci, *weight.shape[2:]), np.int8)
    for g in range(groups):
        whole[g * co : (g + 1) * co, g * ci : (g + 1) * ci] = weight[g * co : (g + 1) * co]
    return whole
