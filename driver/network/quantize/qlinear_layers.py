"""Layers with whole weights as layers of 8 bits: their weights with zero points, their biases."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.ir import Conv2d, ConvTranspose2d, FloatArray, Layer
from driver.network.integer.qir import INT8_MAX, INT8_MIN
from driver.network.integer.qlinear import (
    ByteArray,
    QLinearConv2d,
    QLinearConvTranspose2d,
    QLinearDense,
    QLinearLayer,
    Requantization,
)

_STEPS: Final = 255
"""From the least to the largest number of 8 bits."""


def has_byte_weights(layer: Layer) -> bool:
    """Whether the weights of every channel are whole, and within what 8 bits have with 0."""
    least, most = _ends(layer.weight)
    is_whole = bool((np.rint(layer.weight) == layer.weight).all())
    fits = is_whole and bool((most - least <= _STEPS).all())
    return fits and layer.lo == -np.inf and layer.hi == np.inf and not layer.bias.any()


def qlinear_layer(
    layer: Layer, bias: NDArray[np.int32], x_zero: int, to: Requantization
) -> QLinearLayer:
    """The layer in integers; its weights are whole, less their zero point."""
    weight, zero = _bytes_of(layer.weight)
    match layer:
        case Conv2d(window=window, groups=groups):
            return QLinearConv2d(
                weight=weight,
                weight_zero=zero,
                bias=bias,
                x_zero=x_zero,
                window=window,
                groups=groups,
                to=to,
            )
        case ConvTranspose2d(pad=pad):
            return QLinearConvTranspose2d(
                weight=weight, weight_zero=zero, bias=bias, x_zero=x_zero, pad=pad, to=to
            )
    return QLinearDense(weight=weight, weight_zero=zero, bias=bias, x_zero=x_zero, to=to)


def _bytes_of(whole: FloatArray) -> tuple[ByteArray, NDArray[np.int32]]:
    """Weights and zero points [Co] whose difference these are: int8 and 0 wherever that fits.

    The sums are the same for every such pair, and instructions like `vpdpbusd` want int8.
    """
    least, most = _ends(whole)
    if least.min() >= INT8_MIN and most.max() <= INT8_MAX:
        return whole.astype(np.int8), np.zeros(len(whole), np.int32)
    zero = (-least).astype(np.int32)
    return (whole + zero.reshape(-1, *(1,) * (whole.ndim - 1))).astype(np.uint8), zero


def _ends(weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest weight of every channel, and 0."""
    rows = weight.reshape(len(weight), -1)
    return rows.min(axis=1, initial=0), rows.max(axis=1, initial=0)
