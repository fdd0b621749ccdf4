"""A multiplication and an addition by constants of any shape, as one of each for every channel."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from driver.network.frontend.batch_layout import held_shape
from driver.network.graph.ir import Affine, FloatArray, Operator, Reshape, Shape


def with_constants(held: Shape, mul: ArrayLike, add: ArrayLike) -> tuple[Operator, ...]:
    """What computes x * mul + add for a tensor x held as [N, C, ...].

    Constants that vary along the channels alone are the channels'. Otherwise all axes up to the
    last one that they vary along count as channels.

    Args:
        held: the shape of x, of two axes or more.
        mul: broadcastable to one sample of it.
        add: likewise.
    """
    sample = held[1:]
    factors, addends = _aligned(mul, sample), _aligned(add, sample)
    varied = [
        axis for axis in range(len(sample)) if max(factors.shape[axis], addends.shape[axis]) > 1
    ]
    last = max(varied, default=0)
    lanes = sample[: last + 1]
    scaled = Affine(weight=_each(factors, lanes), bias=_each(addends, lanes))
    if not last:
        return (scaled,)
    joined = Reshape(shape=(math.prod(lanes), *sample[last + 1 :]))
    return (joined, scaled, Reshape(shape=sample))


def of_a_sample(values: FloatArray, whole: Shape, batch: int) -> FloatArray:
    """A constant for every sample of a result of shape `whole`.

    Raises:
        ValueError: it is another one for every sample.
    """
    aligned = values.reshape((1,) * (len(whole) - values.ndim) + values.shape)
    if batch == 1 and held_shape(whole, 1) != whole:
        return aligned
    if len(aligned) > 1 and (aligned != aligned[:1]).any():
        raise ValueError("has a constant of its own for every entry of the batch")
    return np.asarray(aligned[0])


def can_be_repeated(values: FloatArray, shape: Shape) -> bool:
    """Whether a constant broadcasts to just that shape."""
    try:
        return np.broadcast_shapes(values.shape, shape) == shape
    except ValueError:
        return False


def _aligned(values: ArrayLike, sample: Shape) -> FloatArray:
    """With as many axes as a sample has, new ones in front."""
    array = np.asarray(values, np.float32)
    return array.reshape((1,) * (len(sample) - array.ndim) + array.shape)


def _each(values: FloatArray, lanes: Shape) -> FloatArray:
    """One value for every channel."""
    first = values.reshape(values.shape[: len(lanes)])
    return np.ascontiguousarray(np.broadcast_to(first, lanes).reshape(-1))
