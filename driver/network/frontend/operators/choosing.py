"""The place of the largest, ones at places, running sums: written as the steps that they stand for.

ArgMax is the first place whose element is not below the largest: the least of all places, of which
those elsewhere count as one too many. Where an element is NaN none is below, and it is the first
place of all; ONNX leaves that open, and its reference gives the place of NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from driver.network.frontend.call import OnnxCall, RefusedError, axis_within
from driver.network.frontend.operators.moves import check_few
from driver.network.frontend.steps import FLOAT, INT64, Composition, Steps
from driver.network.graph.ir import Shape

_MOST_PLACES: Final = 1 << 24
"""The graph has places as float32, in which they are exact up to here."""


def extreme_place(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """ArgMax and ArgMin: the first place, or the last."""
    name = do("Cast", call.inputs[0], to=FLOAT)
    shape = do.shape(name)
    axis = axis_within(call.integer("axis", 0), len(shape))
    kind = "ReduceMax" if call.operator == "ArgMax" else "ReduceMin"
    last = bool(call.integer("select_last_index", 0))
    keep = call.integer("keepdims", 1)
    return (_extreme(do, name, axis, kind, last=last, keep=keep),)


def _extreme(do: Steps, name: str, axis: int, kind: str, *, last: bool, keep: int) -> str:
    shape = do.shape(name)
    reached = "GreaterOrEqual" if kind == "ReduceMax" else "LessOrEqual"
    best = do(reached, name, do(kind, name, [axis], keepdims=1))
    places = _places(shape, axis)
    chosen = do("Where", best, places, -1.0 if last else float(shape[axis]))
    found = do("ReduceMax" if last else "ReduceMin", chosen, [axis], keepdims=keep)
    return do("Cast", found, to=INT64)


def hardmax(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """Hardmax: 1 at the first of the largest, 0 elsewhere."""
    name = call.inputs[0]
    shape = do.shape(name)
    axis = axis_within(call.integer("axis", -1), len(shape))
    first = _extreme(do, name, axis, "ReduceMax", last=False, keep=1)
    there = do("Equal", do("Cast", first, to=FLOAT), _places(shape, axis))
    return (do("Cast", there, to=FLOAT),)


def one_hot(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """OneHot of constant depth and values: a new axis with one value on, the others off."""
    depth, values = (do.value(name) for name in call.inputs[1:3])
    if depth is None or values is None or depth.size != 1 or values.size != 2:
        raise RefusedError("its depth and its two values are not constant")
    if not 1 <= depth.reshape(-1)[0] < _MOST_PLACES:
        raise RefusedError(f"depth {depth.reshape(-1)[0]} is no number of places")
    many = int(depth.reshape(-1)[0])
    given = do.shape(call.inputs[0])
    axis = axis_within(call.integer("axis", -1), len(given) + 1)
    check_few((*given, many))
    place = do("Unsqueeze", do("Cast", call.inputs[0], to=FLOAT), [axis])
    from_start = do(
        "Add", place, do("Mul", do("Cast", do("Less", place, 0.0), to=FLOAT), float(many))
    )
    shape = (*given[:axis], many, *given[axis:])
    there = do("Equal", from_start, _places(shape, axis))
    off, on = (do("Gather", call.inputs[2], index) for index in (0, 1))
    return (do("Where", there, on, off),)


def running_sum(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """CumSum along a constant axis: for each place the sum of those up to it."""
    name = call.inputs[0]
    shape = do.shape(name)
    given = do.value(call.inputs[1])
    if given is None or given.size != 1 or given.dtype.kind not in "iu":
        raise RefusedError("its axis is not a constant number")
    axis = axis_within(int(given.reshape(-1)[0]), len(shape))
    many = shape[axis]
    check_few((*shape, many))
    taken = np.tri(many, k=-1 if call.integer("exclusive", 0) else 0)
    taken = taken[::-1, ::-1] if call.integer("reverse", 0) else taken
    wide = do("Unsqueeze", name, [axis])
    mask = taken.reshape((1,) * axis + (many, many) + (1,) * (len(shape) - axis - 1))
    return (do("ReduceSum", do("Mul", wide, mask), [axis + 1], keepdims=0),)


def _places(shape: Shape, axis: int) -> np.ndarray:
    """The places along an axis, repeated along all others."""
    ramp = np.arange(shape[axis], dtype=np.float32)
    form = [1] * len(shape)
    form[axis] = -1
    return np.broadcast_to(ramp.reshape(form), shape)


COMPOSITIONS: Final[Mapping[str, Composition]] = {
    "ArgMax": extreme_place,
    "ArgMin": extreme_place,
    "CumSum": running_sum,
    "Hardmax": hardmax,
    "OneHot": one_hot,
}
"""What each operator of this kind is written as."""
