"""What an operator becomes where its operand lies in another order than it is written for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from driver.network.graph import ir
from driver.network.graph.ir import FloatArray, IndexArray, Shape
from driver.network.rewrites.rearranged import Rearrangement


def taking(taken: IndexArray, form: Shape, shape: Shape | None) -> ir.Operator:
    """What takes these places, in their order, from a tensor [N, C, ...].

    The result has the shape that is wanted, or as many elements of every channel that has some.
    """
    each = math.prod(form[2:])
    start, stop = int(taken[0]) // each, int(taken[-1]) // each + 1
    if taken.size == (stop - start) * each:
        return ir.Slice(start=start, stop=stop)
    if shape is None:
        channels = len(np.unique(taken // each))
        even = taken.size % channels == 0
        shape = (channels, taken.size // channels) if even else (taken.size,)
    return ir.Gather(index=taken.reshape(shape))


def along_there(
    op: ir.Reduce | ir.Normalize | ir.Softmax, found: Rearrangement
) -> ir.Operator | None:
    """The operator on the axes of the split source; None where these are not the same elements."""
    axes = (op.axis,) if isinstance(op, ir.Softmax) else op.axes
    there = tuple(sorted(part + 1 for axis in axes for part in found.joined[axis - 1]))
    if not there or (isinstance(op, ir.Softmax) and len(there) > 1):
        return None
    return replace(op, axis=there[0]) if isinstance(op, ir.Softmax) else replace(op, axes=there)


def constants_of(op: ir.Affine | ir.Slopes) -> tuple[FloatArray, ...]:
    """What an operator has for each channel."""
    return (op.slope,) if isinstance(op, ir.Slopes) else (op.weight, op.bias)


def with_constants(
    op: ir.Affine | ir.Slopes, constants: Sequence[FloatArray]
) -> ir.Affine | ir.Slopes:
    """The operator with others in place of `constants_of`."""
    whole = [np.ascontiguousarray(each) for each in constants]
    if isinstance(op, ir.Slopes):
        return replace(op, slope=whole[0])
    return replace(op, weight=whole[0], bias=whole[1])


def varied_axes(values: FloatArray) -> list[int]:
    """The axes along which values differ."""
    return [axis for axis in range(values.ndim) if (values != values.take([0], axis)).any()]


def unless_in_order(index: IndexArray) -> IndexArray | None:
    """The places, or None if they are in order."""
    in_order = np.array_equal(index.reshape(-1), np.arange(index.size))
    return None if in_order else np.asarray(index, np.int32)
