"""Blocked layout: [N, C, ...] in memory as [N/b, C/c, ..., b, c], absent rows and lanes zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.ir import Shape


def blocked_shape(shape: Shape, batch: int, block: int) -> Shape:
    """The shape in memory of a logical tensor [N, C, ...]."""
    n, c, *rest = shape
    return (-(-n // batch), -(-c // block), *rest, batch, block)


def plane_shape(shape: Shape) -> Shape:
    """The shape of a tensor of 16 bits, whose blocks have `shape`: [N/b, 2, C/c, ..., b, c].

    Plane 0 is high, plane 1 low: an element is high * 256 + low.
    """
    return (shape[0], 2, *shape[1:])


def to_blocks(x: NDArray[Any], batch: int, block: int) -> NDArray[Any]:
    """`x` [N, C, ...] as [N/b, C/c, ..., b, c]."""
    rows, groups, *rest, _, _ = blocked_shape(x.shape, batch, block)
    whole = np.zeros((rows * batch, groups * block, *rest), x.dtype)
    whole[: x.shape[0], : x.shape[1]] = x
    tiles = whole.reshape(rows, batch, groups, block, *rest)
    return np.ascontiguousarray(np.moveaxis(tiles, (1, 3), (-2, -1)))


def from_blocks(tiles: NDArray[Any], shape: Shape | None = None) -> NDArray[Any]:
    """The logical tensor in `tiles` [N/b, C/c, ..., b, c]; without `shape` all rows and lanes."""
    rows, groups, *rest, batch, block = tiles.shape
    whole = np.moveaxis(tiles, (-2, -1), (1, 3)).reshape(rows * batch, groups * block, *rest)
    if shape is None:
        return whole
    return whole[: shape[0], : shape[1]]


def weight_blocks(weight: NDArray[Any], block: int) -> NDArray[Any]:
    """Weights [Co, Ci, ...] as [Co/c, Ci/c, ..., c, c], output lane before input lane."""
    return to_blocks(weight, block, block)


def weight_from_blocks(tiles: NDArray[Any]) -> NDArray[Any]:
    """The opposite of `weight_blocks`, absent channels included."""
    return from_blocks(tiles)


def lane_blocks(values: NDArray[Any], batch: int, block: int) -> NDArray[Any]:
    """Per-channel values [C] as [C/c, b, c], equal over b; absent lanes are zero."""
    groups = -(-values.shape[0] // block)
    whole = np.zeros(groups * block, values.dtype)
    whole[: values.shape[0]] = values
    tiles = np.broadcast_to(whole.reshape(groups, 1, block), (groups, batch, block))
    return np.ascontiguousarray(tiles)


def lanes_from_blocks(tiles: NDArray[Any]) -> NDArray[Any]:
    """The opposite of `lane_blocks` for every lane, taken from row 0."""
    return np.ascontiguousarray(tiles[:, 0, :]).reshape(-1)


def channel_rows(rows: NDArray[Any], block: int) -> NDArray[Any]:
    """A row [...] for each channel [C, ...] as [C/c, c, ...]; those of absent channels are zero."""
    groups = -(-rows.shape[0] // block)
    whole = np.zeros((groups * block, *rows.shape[1:]), rows.dtype)
    whole[: rows.shape[0]] = rows
    return whole.reshape(groups, block, *rows.shape[1:])


def blocked_places(
    index: NDArray[np.int32], source: Shape, batch: int, block: int, after: int | None = None
) -> NDArray[np.int32]:
    """Places in blocked data of `source` [N, C, ...] for one row of blocks of the result, flat.

    index [C', ...] has row-major places in a sample; -1 stays -1, and so it is for what is absent.
    Every row of blocks has `batch` samples, whether the network has as many or not. The result has
    blocks of `after`, or of `block`.
    """
    places = stored_places((batch, *source[1:]), batch, block).reshape(batch, -1)
    taken = np.where(index < 0, -1, places[:, np.maximum(index, 0)])
    return to_blocks(taken + 1, batch, after or block).reshape(-1) - 1


def stored_places(shape: Shape, batch: int, block: int) -> NDArray[np.int32]:
    """[N, C, ...]: where each element of a logical tensor lies in its blocked data, flat."""
    tiles = blocked_shape(shape, batch, block)
    return from_blocks(np.arange(math.prod(tiles), dtype=np.int32).reshape(tiles), shape)


def group_tiles_shape(shape: Shape, groups: int, rows: int, block: int) -> Shape:
    """The shape of `group_tiles` of [N, G*K, J]."""
    n, channels, columns = shape
    return (n * groups, -(-(channels // groups) // block), -(-columns // rows), rows, block)


def group_tiles(x: NDArray[Any], groups: int, rows: int, block: int) -> NDArray[Any]:
    """`x` [N, G*K, J] as [N*G, K/c, J/rows, rows, c]; absent channels and columns are zero."""
    parts = x.reshape(x.shape[0] * groups, -1, x.shape[2])
    return np.stack([to_blocks(part.T, rows, block).swapaxes(0, 1) for part in parts])


def from_group_tiles(tiles: NDArray[Any], shape: Shape, groups: int) -> NDArray[Any]:
    """The tensor [N, G*K, J] in `group_tiles` of it."""
    part = (shape[2], shape[1] // groups)
    return np.stack([from_blocks(each.swapaxes(0, 1), part).T for each in tiles]).reshape(shape)


def is_view(before: Shape, after: Shape) -> bool:
    """Whether a reshape leaves every byte of the blocked layout where it is."""
    return before[:2] == after[:2] and math.prod(before[2:]) == math.prod(after[2:])
