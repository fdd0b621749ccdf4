"""The weights of a layer as what leads from channel to channel, and the layer scaled by these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.graph.ir import Affine, Conv2d, ConvTranspose2d, Dense, Layer

Weighted: TypeAlias = Layer | Affine
"""The operators whose weights can take over a factor of each channel, on both sides."""


def read_channels(op: Weighted) -> NDArray[np.int64]:
    """[Co, K]: the channels of the operand that each channel of the result reads."""
    match op:
        case Affine(mul=mul):
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


def largest_weights(op: Weighted) -> NDArray[np.float64]:
    """[Co, K]: the largest magnitude of the weights on each of these ways."""
    match op:
        case Affine(mul=mul):
            found = np.abs(mul)[:, None]
        case Conv2d(weight=weight):
            found = np.abs(weight).max(axis=(2, 3))
        case ConvTranspose2d(weight=weight):
            found = np.abs(weight).max(axis=(1, 2, 4, 5))
        case Dense(weight=weight):
            found = np.abs(weight)
    return found.astype(np.float64)


def rescaled(op: Weighted, before: NDArray[Any], after: NDArray[Any]) -> Weighted:
    """The operator on x / before [Ci] whose result is that of `op` on x, divided by after [Co].

    Its bounds must be those of none or of a ReLU.
    """
    on_ways = before[read_channels(op)] / after[:, None]
    match op:
        case Affine(mul=mul, add=add):
            return replace(op, mul=_float32(mul * on_ways[:, 0]), add=_float32(add / after))
        case Conv2d(weight=weight):
            weight = weight * on_ways[:, :, None, None]
        case ConvTranspose2d(weight=weight):
            weight = weight * on_ways[:, None, None, :, None, None]
        case Dense(weight=weight):
            weight = weight * on_ways
    return replace(op, weight=_float32(weight), bias=_float32(op.bias / after))


def row_sums(op: Weighted) -> NDArray[np.float64]:
    """[Co]: the sum of all weights of each channel: what a 1 in every element of the operand adds.

    That is so where nothing is padded.
    """
    weight = op.mul if isinstance(op, Affine) else op.weight
    return np.asarray(weight.reshape(len(weight), -1).sum(axis=1, dtype=np.float64))


def with_addend(op: Weighted, addend: NDArray[Any] | float) -> Weighted:
    """The operator whose sums are larger by addend [Co]."""
    if isinstance(op, Affine):
        return replace(op, add=_float32(op.add + addend))
    return replace(op, bias=_float32(op.bias + addend))


def _float32(values: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(values, np.float32)
