"""GatherElements and GatherND at places that data name: one Gather from a row of all elements.

Constant places are a move, see `moves` and `taking`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from driver.network.frontend.call import Array, OnnxCall, RefusedError, axis_within
from driver.network.frontend.steps import INT64, Composition, Steps
from driver.network.graph.ir import Shape

_MOST_ELEMENTS: Final = 1 << 24
"""The graph has places as float32, in which they are exact up to here."""


def gather_elements(call: OnnxCall, do: Steps) -> tuple[str, ...] | None:
    """GatherElements: for every place, the element there along an axis and itself along others."""
    name, places = call.inputs[:2]
    if do.value(places) is not None:
        return None
    shape, wanted = do.shape(name), do.shape(places)
    axis = axis_within(call.integer("axis", 0), len(shape))
    others = [(w, e) for at, (w, e) in enumerate(zip(wanted, shape, strict=False)) if at != axis]
    if len(wanted) != len(shape) or any(w > extent for w, extent in others):
        raise RefusedError(f"indices {list(wanted)} do not fit {list(shape)}")
    row = do("Reshape", name, [-1])
    if _is_uniform(do.value(name)):
        return (do("Expand", do("Gather", row, 0), wanted),)
    strides = [math.prod(shape[at + 1 :]) for at in range(len(shape))]
    _check_few(shape)
    here = sum(
        index * (stride if at != axis else 0)
        for at, (index, stride) in enumerate(zip(np.indices(wanted), strides, strict=True))
    )
    along = do("Mul", _from_start(do, places, shape[axis]), strides[axis])
    return (do("Gather", row, do("Add", along, here), axis=0),)


def gather_nd(call: OnnxCall, do: Steps) -> tuple[str, ...] | None:
    """GatherND: for every place, given by an index for each of several axes, what is there."""
    name, places = call.inputs[:2]
    if do.value(places) is not None:
        return None
    shape, wanted, batches = do.shape(name), do.shape(places), call.integer("batch_dims", 0)
    depth = wanted[-1] if wanted else 0
    if not 0 < batches + depth <= len(shape) or wanted[:batches] != shape[:batches]:
        raise RefusedError(f"indices {list(wanted)} do not fit {list(shape)}")
    reach, rest = shape[batches : batches + depth], shape[batches + depth :]
    _check_few(shape)
    many = math.prod(shape[:batches])
    batch = np.arange(many).reshape(*wanted[:batches], *(1,) * (len(wanted) - 1 - batches))
    at = do.constant(np.broadcast_to(batch * math.prod(reach), wanted[:-1]))
    parts = do.several("Split", depth, places, axis=len(wanted) - 1)
    for index, (part, extent) in enumerate(zip(parts, reach, strict=True)):
        along = _from_start(do, do("Squeeze", part, [len(wanted) - 1]), extent)
        at = do("Add", do("Mul", along, math.prod(reach[index + 1 :])), at)
    rows = do("Reshape", name, [many * math.prod(reach), *rest])
    return (do("Gather", rows, at, axis=0),)


def _check_few(shape: Shape) -> None:
    if math.prod(shape) > _MOST_ELEMENTS:
        raise RefusedError(f"reads {list(shape)} at places that data name: too many elements")


def _is_uniform(values: Array | None) -> bool:
    """Whether a table has one value only, as that of the kinds of tokens in RoBERTa."""
    return values is not None and values.size > 0 and bool((values == values.flat[0]).all())


def _from_start(do: Steps, places: str, extent: int) -> str:
    """Places of which negative ones counted from the end."""
    turned = do("Mul", do("Cast", do("Less", places, 0), to=INT64), extent)
    return do("Add", do("Cast", places, to=INT64), turned)


COMPOSITIONS: Final[Mapping[str, Composition]] = {
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
}
"""What each operator of this kind is written as."""
