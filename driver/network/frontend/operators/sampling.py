"""GridSample and AffineGrid: images read at places that data name, written as their steps.

Where a border repeats or mirrors, the pixels around a place are brought into the image, never the
place: for nearest and linear that is the same; for cubic it is what PyTorch and ONNX Runtime do,
and ONNX's reference evaluator does not near a border.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import reduce
from typing import Final

import numpy as np

from driver.network.frontend.call import OnnxCall, RefusedError
from driver.network.frontend.operators.moves import check_few
from driver.network.frontend.steps import INT64, Composition, Steps

_SHARPNESS: Final = -0.75
"""The parameter of Keys' cubic convolution that ONNX's definition has."""

_Tap = tuple[str, str]
"""The index of a pixel along an axis, and its weight."""


def affine_grid(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """AffineGrid: the corners -1 to 1 of an image, moved by a matrix for each sample."""
    size = do.value(call.inputs[1])
    if size is None or size.dtype.kind not in "iu" or size.size not in (4, 5):
        raise RefusedError("its size is no constant of an image")
    extents = [int(extent) for extent in size.reshape(-1)[2:]]
    if min(extents) < 1:
        raise RefusedError(f"its size {size.tolist()} is not one of an image")
    check_few((*extents, len(extents) + 1))
    ends = [1.0 if call.integer("align_corners", 0) else 1 - 1 / extent for extent in extents]
    lines = [np.linspace(-end, end, n) for end, n in zip(ends, extents, strict=True)]
    places = np.meshgrid(*lines, indexing="ij")[::-1]
    table = np.stack([*places, np.ones(extents)], axis=-1).reshape(-1, len(extents) + 1)
    theta = do("Transpose", call.inputs[0], perm=[0, 2, 1])
    flat = do("MatMul", table, theta)
    return (do("Reshape", flat, [do.shape(theta)[0], *extents, len(extents)]),)


def grid_sample(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """GridSample: the nearest pixel, or a mean of those around, by weights."""
    image, grid = call.inputs[:2]
    if len(do.shape(image)) < 3:
        raise RefusedError(f"input {list(do.shape(image))}; only [N, C, ...] is supported")
    samples, channels, *extents = do.shape(image)
    wanted = do.shape(grid)[1:-1]
    if do.shape(grid) != (samples, *wanted, len(extents)):
        raise RefusedError(f"grid {list(do.shape(grid))} does not fit {list(do.shape(image))}")
    images = _apart(do, do("Reshape", image, [samples, channels, math.prod(extents)]))
    grids = _apart(do, do("Reshape", grid, [samples, math.prod(wanted), len(extents)]))
    found = [
        do("Unsqueeze", _sampled(call, do, each, places, extents), [0])
        for each, places in zip(images, grids, strict=True)
    ]
    whole = do("Concat", *found, axis=0) if samples > 1 else found[0]
    return (do("Reshape", whole, [samples, channels, *wanted]),)


def _apart(do: Steps, name: str) -> list[str]:
    """Every sample by itself."""
    parts = do.several("Split", do.shape(name)[0], name, axis=0)
    return [do("Squeeze", part, [0]) for part in parts]


def _sampled(call: OnnxCall, do: Steps, image: str, grid: str, extents: list[int]) -> str:
    """[C, places] of an image [C, pixels] and a grid [places, axes], its last axis first."""
    axes = do.several("Split", len(extents), grid, axis=1)[::-1]
    taps = [
        _taps(call, do, do("Squeeze", axis, [1]), extent)
        for axis, extent in zip(axes, extents, strict=True)
    ]
    strides = [math.prod(extents[axis + 1 :]) for axis in range(len(extents))]

    def term(chosen: tuple[_Tap, ...]) -> str:
        steps = [do("Mul", at, float(n)) for (at, _), n in zip(chosen, strides, strict=True)]
        place = do("Cast", reduce(lambda a, b: do("Add", a, b), steps), to=INT64)
        weight = reduce(lambda a, b: do("Mul", a, b), (weight for _, weight in chosen))
        return do("Mul", do("Gather", image, place, axis=1), weight)

    return reduce(lambda a, b: do("Add", a, b), map(term, itertools.product(*taps)))


def _taps(call: OnnxCall, do: Steps, place: str, extent: int) -> list[_Tap]:
    """The pixels along one axis that places of -1 to 1 are read from."""
    corners = call.integer("align_corners", 0)
    half = (extent - 1 if corners else extent) / 2
    at = do("Add", do("Mul", place, half), (extent - 1) / 2)
    mode = call.text("mode", "linear").removeprefix("bi")
    if mode == "nearest":
        at = do("Round", at)
        offsets = {0: do.constant(1.0)}
    elif mode in ("linear", "cubic"):
        place, at = at, do("Floor", at)
        offsets = _weights(do, do("Sub", place, at), mode)
    else:
        raise RefusedError(f"mode {mode!r}; only nearest, linear and cubic are supported")
    return [_tap(call, do, do("Add", at, float(n)), w, extent) for n, w in offsets.items()]


def _weights(do: Steps, rest: str, mode: str) -> dict[int, str]:
    """Offset from the pixel before the place -> weight; the place is `rest` behind that pixel."""
    if mode == "linear":
        return {0: do("Sub", 1.0, rest), 1: rest}
    distances = {n: do("Abs", do("Sub", rest, float(n))) for n in (-1, 0, 1, 2)}
    a = _SHARPNESS
    far, near = (-4 * a, 8 * a, -5 * a, a), (1.0, 0.0, -(a + 3), a + 2)
    return {
        n: _polynomial(do, distance, near if n in (0, 1) else far)
        for n, distance in distances.items()
    }


def _polynomial(do: Steps, x: str, terms: tuple[float, ...]) -> str:
    """terms[0] + terms[1] x + terms[2] x^2 + ..."""
    total = do("Mul", x, terms[-1])
    for term in terms[-2:0:-1]:
        total = do("Mul", do("Add", total, term), x)
    return do("Add", total, terms[0])


def _tap(call: OnnxCall, do: Steps, at: str, weight: str, extent: int) -> _Tap:
    """A pixel of the image, without weight if it stands for one outside that counts as zero."""
    if call.text("padding_mode", "zeros") == "zeros":
        beyond = do("Sub", at, do("Clip", at, 0.0, extent - 1.0))
        weight = do("Mul", weight, do("Cast", do("Equal", beyond, 0.0), to=1))
    return do("Clip", _inside(call, do, at, extent), 0.0, extent - 1.0), weight


def _inside(call: OnnxCall, do: Steps, at: str, extent: int) -> str:
    """A pixel that the border, or a mirror there, brings into the image; not where zeros are."""
    match call.text("padding_mode", "zeros"):
        case "zeros":
            return at
        case "border":
            return do("Clip", at, 0.0, extent - 1.0)
        case "reflection":
            corners = call.integer("align_corners", 0)
            low, span = (0.0, extent - 1.0) if corners else (-0.5, float(extent))
            if not span:
                return do("Mul", at, 0.0)
            away = do("Abs", do("Sub", at, low))
            turns = do("Floor", do("Mul", away, 1 / (2 * span)))
            left = do("Sub", away, do("Mul", turns, 2 * span))
            return do("Sub", span + low, do("Abs", do("Sub", left, span)))
    mode = call.text("padding_mode", "")
    raise RefusedError(f"padding_mode {mode!r}; only zeros, border and reflection are supported")


COMPOSITIONS: Final[Mapping[str, Composition]] = {
    "AffineGrid": affine_grid,
    "GridSample": grid_sample,
}
"""What each operator of this kind is written as."""
