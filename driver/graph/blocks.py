"""Blocked layout: [N, C, ...] in memory as [N/b, C/c, ..., b, c], absent rows and lanes zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.graph.ir import Shape


def blocked_shape(shape: Shape, batch: int, block: int) -> Shape:
    """The shape in memory of a logical tensor [N, C, ...]."""
    n, c, *rest = shape
    return (-(-n // batch), -(-c // block), *rest, batch, block)


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


def is_view(before: Shape, after: Shape) -> bool:
    """Whether a reshape leaves every byte of the blocked layout where it is."""
    return before[:2] == after[:2] and math.prod(before[2:]) == math.prod(after[2:])
