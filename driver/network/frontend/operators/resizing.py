"""Resize and Upsample: the nearest pixel is a move; interpolation is a matrix for each axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from driver.network.frontend.call import Array, Lowered, OnnxCall, RefusedError, Scope, axis_within
from driver.network.frontend.integers.qdq_pairs import clip_onto
from driver.network.frontend.operators.contraction import Factor, contracted
from driver.network.frontend.operators.interpolation import interpolation_of, weights_between
from driver.network.frontend.operators.moves import moved, require_room
from driver.network.graph.ir import Shape, Unary

_REGION_SINCE: Final = 11
_FAR: Final = 1 << 26
_NO_SPAN: Final = 1e-9


def upsample(call: OnnxCall, scope: Scope) -> Lowered:
    """Upsample (before opset 10) by repeating pixels or between them."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    scales = _numbers(scope.constant(call, 1, "scales") if call.has_input(1) else None)
    scales = scales or [float(s) for s in call.attrs.get("scales", ())]
    if len(scales) != len(shape):
        raise RefusedError(f"scales {scales} do not fit {list(shape)}")
    return _resized(_Target(_scaled(shape, scales), scales, "asymmetric"), "floor", call, scope)


def resize(call: OnnxCall, scope: Scope) -> Lowered:
    """Resize to constant scales or sizes: to the nearest pixel, linear or cubic.

    Integers become integers, the nearest ones, as ONNX's reference has it.
    """
    modern = call.opset >= _REGION_SINCE
    kind = call.text("coordinate_transformation_mode", "half_pixel" if modern else "asymmetric")
    if kind == "tf_half_pixel_for_nn" and call.text("mode", "nearest") != "nearest":
        raise RefusedError(f"coordinate_transformation_mode {kind!r} is for mode 'nearest'")
    rounding = call.text("nearest_mode", "round_prefer_floor") if modern else "floor"
    resized = _resized(_target(call, scope, kind, modern=modern), rounding, call, scope)
    grid = scope.grids.get(call.inputs[0])
    if grid is None or call.text("mode", "nearest") == "nearest":
        return resized
    nearest = Unary(function="round") if grid.is_whole else clip_onto(call.outputs[0], scope, grid)
    return replace(resized, chain=(*resized.chain, nearest))


@dataclass(frozen=True, slots=True)
class _Target:
    """The extents of the result, by how much each axis grew, and how coordinates follow from it."""

    extents: list[int]
    scales: list[float]
    kind: str


def _target(call: OnnxCall, scope: Scope, kind: str, *, modern: bool) -> _Target:
    shape = scope.shapes[scope.activation(call)]
    axes = [axis_within(axis, len(shape)) for axis in call.integers("axes") or range(len(shape))]
    at = 2 if modern else 1
    if modern and call.has_input(3):
        sizes = scope.integers(call, 3, "sizes")
        factors = _factors(call, [s / shape[a] for a, s in zip(axes, sizes, strict=False)])
        extents = dict(zip(axes, sizes, strict=False))
        if call.text("keep_aspect_ratio_policy", "stretch") != "stretch":
            extents = {
                a: math.floor(f * shape[a] + 0.5) for a, f in zip(axes, factors, strict=False)
            }
    else:
        factors = _numbers(scope.constant(call, at, "scales") if call.has_input(at) else None)
        extents = {}
    by_axis = dict(zip(axes, factors, strict=False))
    scales = [by_axis.get(axis, 1.0) for axis in range(len(shape))]
    scaled = _scaled(shape, scales)
    result = [extents.get(axis, scaled[axis]) for axis in range(len(shape))]
    if len(factors) != len(axes) or min(result, default=0) < 1:
        raise RefusedError(f"scales or sizes do not fit {list(shape)}")
    return _Target(result, scales, kind)


def _factors(call: OnnxCall, factors: list[float]) -> list[float]:
    """By how much axes grow that are to keep their proportions, or not."""
    match call.text("keep_aspect_ratio_policy", "stretch"):
        case "stretch":
            return factors
        case "not_larger":
            return [min(factors)] * len(factors)
        case "not_smaller":
            return [max(factors)] * len(factors)
        case policy:
            raise RefusedError(f"keep_aspect_ratio_policy {policy!r} is unknown")


def _coordinates(
    kind: str, old: int, new: int, factor: float, number: type[np.floating]
) -> NDArray[Any]:
    """Where the pixels of a resized axis lie in the original one.

    The nearest one is told in float32, as frameworks do: at a scale of 1.6 pixel 8 shows pixel 5,
    and not the one before it.
    """
    x, scale = np.arange(new).astype(number), number(factor)
    match kind:
        case "asymmetric":
            return np.asarray(x / scale)
        case "align_corners":
            span = scale * old - 1  # of the extent before it was rounded
            return x * (old - 1) / span if abs(span) > _NO_SPAN else x * 0
        case "pytorch_half_pixel" if new == 1:
            return x
        case "tf_half_pixel_for_nn":
            return (x + 0.5) / scale
        case "half_pixel" | "pytorch_half_pixel":
            return (x + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            return (x + 0.5) / scale - 0.5 + old / 2 * (1 - new / (scale * old))
    raise RefusedError(f"coordinate_transformation_mode {kind!r} is not supported")


_ROUNDING: Final[dict[str, Callable[[NDArray[Any]], NDArray[Any]]]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


def _resized(target: _Target, rounding: str, call: OnnxCall, scope: Scope) -> Lowered:
    name = scope.activation(call)
    shape = scope.shapes[name]
    require_room(shape, tuple(target.extents))
    if scope.batch != 1 and target.extents[0] != shape[0]:
        raise RefusedError(f"{list(shape)} becomes {target.extents}, not [{shape[0]}, ...]")
    mode = call.text("mode", "nearest")
    number: type[np.floating] = np.float32 if mode == "nearest" else np.float64
    places = [
        _coordinates(target.kind, *axis, number)
        for axis in zip(shape, target.extents, target.scales, strict=True)
    ]
    match mode:
        case "nearest":
            return _nearest(name, places, rounding, scope)
        case "linear" | "bilinear" | "trilinear" | "cubic":
            return _interpolated(name, places, target.scales, call, scope)
        case _:
            raise RefusedError(f"mode {mode!r} is unknown")


def _nearest(name: str, places: Sequence[NDArray[Any]], rounding: str, scope: Scope) -> Lowered:
    """For every pixel of the result the nearest one of the image."""
    if rounding not in _ROUNDING:
        raise RefusedError(f"nearest_mode {rounding!r} is unknown")
    shape = scope.shapes[name]
    taken = [
        np.clip(_ROUNDING[rounding](where), 0, extent - 1).astype(np.int64)
        for where, extent in zip(places, shape, strict=True)
    ]
    if scope.batch != 1:
        taken[0] = np.zeros(1, np.int64)
    return moved(name, scope, lambda x: x[np.ix_(*taken)])


def _interpolated(
    name: str,
    places: Sequence[NDArray[Any]],
    scales: list[float],
    call: OnnxCall,
    scope: Scope,
) -> Lowered:
    """One after another, each axis times a matrix of weights."""
    result = Lowered((), (name,))
    for axis, (where, scale) in enumerate(zip(places, scales, strict=True)):
        extent = scope.shapes[name][axis]
        matrix = weights_between(where, extent, interpolation_of(call, scale))
        if np.array_equal(matrix, np.eye(extent)):
            continue
        labels = tuple(range(len(places)))
        part = replace(call, name=f"{call.name}.{axis}", outputs=(f"{call.outputs[0]}.{axis}",))
        made = tuple("new" if label == axis else label for label in labels)
        data, weights = Factor(name, labels), Factor(matrix, ("new", axis))
        result = contracted(data, weights, made, part, scope)
        name = scope.beside("resized", result, part)
    return Lowered((), (name,)) if result.chain else result


def _scaled(shape: Shape, scales: list[float]) -> list[int]:
    if not all(0 < scale < _FAR for scale in scales):
        raise RefusedError(f"scales {scales} are not scales")
    # in float32, as ONNX infers shapes: ten pixels at a scale of 1.3 are 13
    return [
        int(np.float32(extent) * np.float32(s)) for extent, s in zip(shape, scales, strict=True)
    ]


def _numbers(values: Array | None) -> list[float]:
    return [] if values is None else [float(v) for v in values.reshape(-1)]
