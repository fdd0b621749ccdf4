"""What operators compute from constants alone: the arithmetic of shapes, indices and masks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from driver.network.frontend.call import Array, OnnxCall, RefusedError, axis_within

_MOST_ELEMENTS: Final = 1 << 26


def require_room(shape: Sequence[int]) -> None:
    """Refuses a constant that only a broken file asks for."""
    if math.prod(int(extent) for extent in shape) > _MOST_ELEMENTS:
        raise RefusedError(f"makes a constant of shape {[int(extent) for extent in shape]}")


def _of_all(ufunc: np.ufunc) -> Callable[[OnnxCall, list[Array]], Array]:
    return lambda _, x: np.asarray(reduce(ufunc, x))


def _comparison(ufunc: np.ufunc) -> Callable[[OnnxCall, list[Array]], Array]:
    return lambda _, x: np.asarray(ufunc(x[0], x[1]))


def _expand(_: OnnxCall, operands: list[Array]) -> Array:
    shape = np.broadcast_shapes(operands[0].shape, tuple(int(v) for v in operands[1]))
    require_room(shape)
    return np.broadcast_to(operands[0], shape)


def _tile(_: OnnxCall, operands: list[Array]) -> Array:
    x, repeats = operands
    require_room([e * int(r) for e, r in zip(x.shape, repeats, strict=True)])
    return np.tile(x, [int(r) for r in repeats])


def _range(_: OnnxCall, operands: list[Array]) -> Array:
    start, limit, delta = (operand.reshape(()) for operand in operands)
    steps = max(0, math.ceil((float(limit) - float(start)) / float(delta)))
    require_room([steps])
    return np.asarray(start + np.arange(steps) * delta, start.dtype)


def _modulo(call: OnnxCall, operands: list[Array]) -> Array:
    truncates = call.integer("fmod", 0)
    return np.asarray((np.fmod if truncates else np.mod)(*operands))


def _power(_: OnnxCall, operands: list[Array]) -> Array:
    base, exponent = operands
    return np.asarray(np.power(base.astype(np.float64), exponent), base.dtype)


def _clip(call: OnnxCall, operands: list[Array]) -> Array:
    x, *bounds = operands
    given = [bound.reshape(()) if bound.size else None for bound in bounds]
    lo, hi = [*given, None, None][:2]
    lo = call.attrs.get("min") if lo is None else lo
    hi = call.attrs.get("max") if hi is None else hi
    return x if lo is None and hi is None else np.asarray(np.clip(x, lo, hi), x.dtype)


def _reduction(function: Callable[..., Any]) -> Callable[[OnnxCall, list[Array]], Array]:
    def reduced(call: OnnxCall, operands: list[Array]) -> Array:
        x = operands[0]
        given = operands[1].reshape(-1) if len(operands) > 1 else call.integers("axes") or ()
        axes = tuple(axis_within(int(axis), x.ndim) for axis in given)
        if not axes and call.integer("noop_with_empty_axes", 0):
            return x
        keep = bool(call.integer("keepdims", 1))
        return np.asarray(function(x, axis=axes or None, keepdims=keep), x.dtype)

    return reduced


def _cumulated(call: OnnxCall, operands: list[Array]) -> Array:
    x, axis = operands[0], int(operands[1].reshape(()))
    turned = np.flip(x, axis) if call.integer("reverse", 0) else x
    sums = np.cumsum(turned, axis=axis, dtype=x.dtype)
    sums = sums - turned if call.integer("exclusive", 0) else sums
    return np.flip(sums, axis) if call.integer("reverse", 0) else sums


def _triangle(call: OnnxCall, operands: list[Array]) -> Array:
    diagonal = int(operands[1].reshape(())) if len(operands) > 1 and operands[1].size else 0
    return (np.triu if call.integer("upper", 1) else np.tril)(operands[0], diagonal)


def _scattered(call: OnnxCall, operands: list[Array]) -> Array:
    if call.text("reduction", "none") != "none":
        raise RefusedError(f"reduction {call.text('reduction', '')!r}; only none is supported")
    x, indices, updates = operands
    made = x.copy()
    made[tuple(np.moveaxis(indices.astype(np.int64), -1, 0))] = updates
    return made


def _one_hot(call: OnnxCall, operands: list[Array]) -> Array:
    indices, depth, values = operands
    many = int(depth.reshape(()))
    require_room([indices.size, many])
    axis = axis_within(call.integer("axis", -1), indices.ndim + 1)
    hot = np.mod(indices.astype(np.int64), many)[..., None] == np.arange(many)
    return np.moveaxis(np.where(hot, values[1], values[0]), -1, axis)


COMPUTED: Final[Mapping[str, Callable[[OnnxCall, list[Array]], Array]]] = {
    "And": _comparison(np.logical_and),
    "CastLike": lambda _, x: np.asarray(x[0], x[1].dtype),
    "Clip": _clip,
    "CumSum": _cumulated,
    "Equal": _comparison(np.equal),
    "Expand": _expand,
    "GatherElements": lambda call, x: np.take_along_axis(
        x[0], x[1].astype(np.int64), call.integer("axis", 0)
    ),
    "Greater": _comparison(np.greater),
    "GreaterOrEqual": _comparison(np.greater_equal),
    "IsInf": lambda _, x: np.isinf(x[0]),
    "IsNaN": lambda _, x: np.isnan(x[0]),
    "Less": _comparison(np.less),
    "LessOrEqual": _comparison(np.less_equal),
    "Max": _of_all(np.maximum),
    "Min": _of_all(np.minimum),
    "Mod": _modulo,
    "NonZero": lambda _, x: np.array(np.nonzero(x[0]), np.int64),
    "Not": lambda _, x: np.logical_not(x[0]),
    "OneHot": _one_hot,
    "Or": _comparison(np.logical_or),
    "Pow": _power,
    "Range": _range,
    "ReduceMax": _reduction(np.max),
    "ReduceMean": _reduction(np.mean),
    "ReduceMin": _reduction(np.min),
    "ReduceProd": _reduction(np.prod),
    "ReduceSum": _reduction(np.sum),
    "ScatterND": _scattered,
    "Sum": _of_all(np.add),
    "Tile": _tile,
    "Trilu": _triangle,
    "Where": lambda _, x: np.where(x[0], x[1], x[2]),
    "Xor": _comparison(np.logical_xor),
}
"""By operator, what it computes of its operands; an absent one is an array of nothing."""
