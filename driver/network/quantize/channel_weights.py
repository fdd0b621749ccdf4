"""The weights of a layer as what leads from channel to channel, and the layer scaled by these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.ir import Affine, Conv2d, ConvTranspose2d, Dense, Layer
from driver.network.quantize.weight_chunks import CACHED_ELEMENTS, bands

Weighted: TypeAlias = Layer | Affine
"""The operators whose weights can take over a factor of each channel, on both sides."""


def read_channels(op: Weighted) -> NDArray[np.int64]:
    """[Co, K]: the channels of the operand that each channel of the result reads."""
    match op:
        case Affine(weight=mul):
            return np.arange(len(mul))[:, None]
        case Conv2d(weight=weight, groups=groups):
            co, ci = weight.shape[:2]
            first = np.arange(co) // (co // groups) * ci
            return np.asarray(first[:, None] + np.arange(ci))
        case ConvTranspose2d(weight=weight):
            co, ci = weight.shape[0], weight.shape[3]
        case Dense(weight=weight):
            co, ci = weight.shape
    return np.broadcast_to(np.arange(ci), (co, ci))


def group_count(op: Weighted) -> int:
    """How many groups of equal size its rows are in: those of a group read the same channels."""
    match op:
        case Affine(weight=mul):
            return len(mul)
        case Conv2d(groups=groups):
            return groups
    return 1


def largest_weights(op: Weighted) -> NDArray[np.float32]:
    """[Co, K]: the largest weight on each of these ways; its sign means nothing.

    The weights of a dense layer are given as they are: copies of large ones would be gigabytes.
    """
    match op:
        case Affine(weight=mul):
            return mul[:, None]
        case Conv2d(weight=weight):
            return np.asarray(np.abs(weight).max(axis=(2, 3)))
        case ConvTranspose2d(weight=weight):
            return np.asarray(np.abs(weight).max(axis=(1, 2, 4, 5)))
        case Dense(weight=weight):
            return weight


def rescaled(op: Weighted, before: NDArray[Any], after: NDArray[Any]) -> Weighted:
    """The operator on x / before [Ci] whose result is that of `op` on x, divided by after [Co].

    Its bounds must be those of none or of a ReLU, or such that no channel is cut by them.
    """
    channels = read_channels(op)
    if isinstance(op, Affine):
        weight = op.weight * before[channels[:, 0]] / after
        return replace(op, weight=_float32(weight), bias=_float32(op.bias / after))
    weight = np.empty(op.weight.shape, np.float32)
    for band in bands(weight, most=CACHED_ELEMENTS):
        on_ways = before[channels[band]] / after[band, None]
        weight[band] = op.weight[band] * _beside_kernels(op, on_ways)
    return replace(op, weight=weight, bias=_float32(op.bias / after))


def _beside_kernels(op: Layer, on_ways: NDArray[Any]) -> NDArray[Any]:
    """What is there for every way [Co, K], so that it goes with the layer's weights."""
    match op:
        case Conv2d():
            return on_ways[:, :, None, None]
        case ConvTranspose2d():
            return on_ways[:, None, None, :, None, None]
        case Dense():
            return on_ways


def row_sums(op: Weighted) -> NDArray[np.float64]:
    """[Co]: the sum of all weights of each channel: what a 1 in every element of the operand adds.

    That is so where nothing is padded.
    """
    return np.asarray(op.weight.reshape(len(op.weight), -1).sum(axis=1, dtype=np.float64))


def with_addend(op: Weighted, addend: NDArray[Any] | float) -> Weighted:
    """The operator whose sums are larger by addend [Co]."""
    return replace(op, bias=_float32(op.bias + addend))


def _float32(values: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(values, np.float32)
