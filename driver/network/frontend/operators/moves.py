"""Operators that move elements within a sample: each is a function of the elements' places.

What a rule does to an array of places says where every element of the result comes from; a place
of -1 is a zero. Where nothing moves, the result is a reshape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.network.frontend.batch_layout import held_shape
from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Scope, axis_within
from driver.network.graph.ir import Gather, Operator, Reshape, Shape

Places: TypeAlias = NDArray[np.int32]
Move: TypeAlias = Callable[[Places], NDArray[Any]]

NOTHING: Final = -1
"""The place of a zero."""

_MOST_ELEMENTS: Final = 1 << 25


def moved(name: str, scope: Scope, move: Move) -> Lowered:
    """What a move of an activation becomes.

    Args:
        name: the activation.
        scope: where its shape [N, ...] and the batch are known.
        move: makes the places of the result of those of the activation, in shapes of the file; for
            a batch of more than 1 both are [1, ...] of one sample.

    Raises:
        RefusedError: elements leave their sample, or nothing is left.
    """
    shape, batch = scope.shapes[name], scope.batch
    sample = shape if batch == 1 else (1, *shape[1:])
    check_few(sample)
    result = np.asarray(move(np.arange(math.prod(sample), dtype=np.int32).reshape(sample)))
    if not result.size:
        raise RefusedError(f"leaves nothing of {list(shape)}")
    if batch != 1 and result.shape[:1] != (1,):
        raise RefusedError(f"changes the batch axis of {list(shape)}")
    whole = result.shape if batch == 1 else (batch, *result.shape[1:])
    index = result.reshape(held_shape(whole, batch)[1:])
    return Lowered((_operator(np.ascontiguousarray(index, np.int32), sample),), (name,), whole)


def check_few(shape: Sequence[int]) -> None:
    """Refuses a move of more elements than places can be kept of.

    Raises:
        RefusedError: they are.
    """
    if math.prod(shape) > _MOST_ELEMENTS:
        raise RefusedError(f"moves the elements of {list(shape)}: too many")


def _operator(index: Places, sample: Shape) -> Operator:
    if index.size == math.prod(sample) and np.array_equal(index.reshape(-1), np.arange(index.size)):
        return Reshape(shape=index.shape)
    return Gather(index=index)


def transposed(name: str, scope: Scope, perm: tuple[int, ...]) -> Lowered:
    """A transpose; a batch stays in front."""
    shape = scope.shapes[name]
    if perm[0] != 0 and scope.batch != 1:
        raise RefusedError(f"perm {list(perm)} of {list(shape)} moves the batch axis")
    return moved(name, scope, lambda places: places.transpose(perm))


def depth_to_space(call: OnnxCall, scope: Scope) -> Lowered:
    """DepthToSpace: channels become the pixels of a square."""
    name, shape, size = _square(call, scope)
    _, c, h, w = shape
    if c % (size * size):
        raise RefusedError(f"blocksize {size} does not divide the channels of {list(shape)}")
    deep = c // (size * size)
    if call.text("mode", "DCR") == "DCR":
        split, order = (-1, size, size, deep, h, w), (0, 3, 4, 1, 5, 2)
    else:
        split, order = (-1, deep, size, size, h, w), (0, 1, 4, 2, 5, 3)
    whole = (-1, deep, h * size, w * size)
    return moved(name, scope, lambda x: x.reshape(split).transpose(order).reshape(whole))


def space_to_depth(call: OnnxCall, scope: Scope) -> Lowered:
    """SpaceToDepth: the pixels of a square become channels."""
    name, shape, size = _square(call, scope)
    _, c, h, w = shape
    if h % size or w % size:
        raise RefusedError(f"blocksize {size} does not divide the image {list(shape)}")
    split = (-1, c, h // size, size, w // size, size)
    whole = (-1, c * size * size, h // size, w // size)
    order = (0, 3, 5, 1, 2, 4) if call.text("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return moved(name, scope, lambda x: x.reshape(split).transpose(order).reshape(whole))


def _square(call: OnnxCall, scope: Scope) -> tuple[str, Shape, int]:
    name = scope.activation(call)
    shape, size = scope.shapes[name], call.integer("blocksize", 0)
    if len(shape) != 4 or size < 1:
        raise RefusedError(f"blocksize {size} of {list(shape)}; only [N, C, H, W] is supported")
    return name, shape, size


def expand(call: OnnxCall, scope: Scope) -> Lowered:
    """Expand to a constant shape."""
    return expanded(scope.activation(call), scope, scope.integers(call, 1, "shape"))


def expanded(name: str, scope: Scope, wanted: Shape) -> Lowered:
    """An activation repeated along axes of extent 1, as numpy broadcasts."""
    shape = scope.shapes[name]
    try:
        whole = np.broadcast_shapes(shape, wanted)
    except ValueError:
        raise RefusedError(f"{list(shape)} does not fit {list(wanted)}") from None
    require_room(shape, whole)
    if scope.batch != 1 and (len(whole) != len(shape) or whole[0] != shape[0]):
        raise RefusedError(f"{list(shape)} becomes {list(whole)}, not [{shape[0]}, ...]")
    target = whole if scope.batch == 1 else (1, *whole[1:])
    return moved(name, scope, lambda x: np.broadcast_to(x, target))


def tile(call: OnnxCall, scope: Scope) -> Lowered:
    """Tile by constant repeats."""
    name = scope.activation(call)
    shape, repeats = scope.shapes[name], scope.integers(call, 1, "repeats")
    if len(repeats) != len(shape) or min(repeats, default=1) < 1:
        raise RefusedError(f"repeats {list(repeats)} do not fit {list(shape)}")
    require_room(shape, tuple(e * r for e, r in zip(shape, repeats, strict=True)))
    return moved(name, scope, lambda x: np.tile(x, repeats))


def gather(call: OnnxCall, scope: Scope) -> Lowered:
    """Gather of constant indices along an axis."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    axis = axis_within(call.integer("axis", 0), len(shape))
    indices = scope.constant(call, 1, "indices")
    if indices.dtype.kind not in "iu" or (scope.batch != 1 and not axis):
        raise RefusedError(f"takes {indices.dtype} indices of axis {axis} of {list(shape)}")
    if indices.size and not -shape[axis] <= indices.min() <= indices.max() < shape[axis]:
        raise RefusedError(f"an index is outside axis {axis} of {list(shape)}")
    require_room(shape, (math.prod(shape) // shape[axis], indices.size))
    return moved(name, scope, lambda x: np.take(x, indices.astype(np.int64), axis=axis))


def gather_elements(call: OnnxCall, scope: Scope) -> Lowered:
    """GatherElements of constant indices along an axis."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    axis = axis_within(call.integer("axis", 0), len(shape))
    indices = scope.constant(call, 1, "indices")
    fits = len(shape) == indices.ndim and scope.batch == 1
    if not fits or indices.dtype.kind not in "iu" or not indices.size:
        raise RefusedError(f"indices {list(indices.shape)} do not fit {list(shape)}")
    if not -shape[axis] <= indices.min() <= indices.max() < shape[axis]:
        raise RefusedError(f"an index is outside axis {axis} of {list(shape)}")
    near = tuple(slice(n) if a != axis else slice(None) for a, n in enumerate(indices.shape))
    return moved(
        name,
        scope,
        lambda x: np.take_along_axis(x[near], indices.astype(np.int64) % shape[axis], axis),
    )


def sliced(name: str, scope: Scope, cuts: Mapping[int, slice]) -> Lowered:
    """Ranges of axes; those of a batch are taken whole."""
    shape = scope.shapes[name]
    if scope.batch != 1 and 0 in cuts and range(*cuts[0].indices(shape[0])) != range(shape[0]):
        raise RefusedError(f"takes a part of the batch of {list(shape)}")
    first = 0 if scope.batch == 1 else 1
    index = tuple(
        cuts.get(axis, slice(None)) if axis >= first else slice(None) for axis in range(len(shape))
    )
    return moved(name, scope, lambda x: x[index])


def require_room(shape: Shape, whole: Shape) -> None:
    """Refuses a result that only a broken file asks for."""
    if math.prod(whole) > _MOST_ELEMENTS:
        raise RefusedError(f"{list(shape)} becomes {list(whole)}: too large")
