"""Weights of layers in ONNX's own arithmetic as a processor's kernels take them.

Kernels multiply data with integers and know no zero points of them:

    sum of (x - zx) * (w - zw) + bias  =  sum of x * v + (bias - zx * sum of v),  v = w - zw

where what is around an image is zx. Where v leaves int8, v + z may stay there for one z, and that
times the sum of x comes off again; z is the zero point that the kernel knows. Otherwise v is int16
if the processor multiplies that, or a sum of two or three planes of int8, and kernels read the data
as many times.
Groups of channels that fill no blocks are taken together, with zeros between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.network.integer.arithmetic import wrapped
from driver.network.integer.qir import INT8_MAX, INT8_MIN, Int16Array, Int32Array
from driver.network.integer.qlinear import QLinearLayer
from driver.network.partition.qlinear_layers import LANES


def centered_weights(layer: QLinearLayer) -> Int16Array:
    """Weights [Co, ...] less their zero points."""
    lanes = (-1, *(1,) * (layer.weight.ndim - 1))
    return layer.weight.astype(np.int16) - layer.weight_zero.reshape(lanes).astype(np.int16)


def leaves_int8(weight: Int16Array) -> bool:
    """Whether any of some weights does."""
    return bool(weight.min(initial=0) < INT8_MIN or weight.max(initial=0) > INT8_MAX)


def zero_within_int8(weight: Int16Array) -> int:
    """The number nearest 0 with which weights, and 0 for what fills up, stay within int8.

    0 where there is none.
    """
    low, high = int(weight.min(initial=0)), int(weight.max(initial=0))
    if high - low > INT8_MAX - INT8_MIN:
        return 0
    return max(INT8_MIN - low, 0) + min(INT8_MAX - high, 0)


def weight_planes(weight: Int16Array) -> list[Int16Array]:
    """Weights within int8 whose sum these are: one array where they are so, more where not."""
    planes: list[Int16Array] = []
    rest = weight
    while rest.any() or not planes:
        planes.append(np.clip(rest, INT8_MIN, INT8_MAX))
        rest = rest - planes[-1]
    return planes


def joined_planes(planes: list[Int16Array], groups: int) -> Int16Array:
    """Planes [Co, Ci, Kh, Kw] along the input channels, each filled up to whole blocks."""
    if len(planes) == 1:
        return planes[0]
    count = -(-planes[0].shape[1] // LANES) * LANES
    assert groups == 1 or count == planes[0].shape[1], "channels of groups fill blocks"
    fill = ((0, 0), (0, count - planes[0].shape[1]), (0, 0), (0, 0))
    return np.concatenate([np.pad(plane, fill) for plane in planes], axis=1)


def centered_bias(layer: QLinearLayer, weight: Int16Array) -> Int32Array:
    """Biases [Co] that make up for the zero point of the data, as int32 wraps."""
    axes = tuple(range(1, weight.ndim))
    if weight.ndim == _PHASED:  # the same channels for each phase, which has taps of its own
        axes = (3, 4, 5)
    sums = weight.sum(axis=axes, dtype=np.int64)
    return wrapped(layer.bias.reshape(-1, *(1,) * (sums.ndim - 1)) - layer.x_zero * sums)


_PHASED = 6
"""Axes of the weights of a transposed convolution."""


def in_blocks(values: NDArray[Any], channels: int) -> NDArray[Any]:
    """One value for all channels, or one each, as [C/l, l]; absent channels have 0."""
    count = -(-channels // LANES) * LANES
    whole = np.zeros(count, values.dtype)
    whole[:channels] = values
    return whole.reshape(-1, LANES)


def grouped_weights(weight: Int16Array, groups: int) -> tuple[Int16Array, int]:
    """Weights [Co, Ci, Kh, Kw] of fewer groups whose channels fill blocks, and how many.

    [g0; g1]  ->  [g0 0; 0 g1]
    """
    outputs, inputs = len(weight) // groups, weight.shape[1]
    together = next(
        (
            count
            for count in range(1, groups + 1)
            if groups % count == 0 and not (count * outputs % LANES or count * inputs % LANES)
        ),
        groups,
    )
    whole = np.zeros((len(weight), together * inputs, *weight.shape[2:]), np.int16)
    for channel in range(len(weight)):
        first = channel // outputs % together * inputs
        whole[channel, first : first + inputs] = weight[channel]
    return whole, groups // together
