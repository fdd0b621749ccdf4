"""Pad: a move of elements, with zeros, the border, a mirror or a number around them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Scope, axis_within
from driver.network.frontend.integers.qdq_pairs import clip_onto
from driver.network.frontend.operators.channel_affine import with_constants
from driver.network.frontend.operators.moves import NOTHING, Move, Places, moved, require_room
from driver.network.graph.shapes import result_shape

_INPUTS_SINCE: Final = 11
_LARGEST_NUMBER: Final = 1e6
"""More is a stand-in for infinity, which would leave int8 no step for what is inside."""
_MODES: Final = ("constant", "edge", "reflect", "wrap")


def pad(call: OnnxCall, scope: Scope) -> Lowered:
    """Pad with a number, with the border, or with a mirror; negative pads cut.

    A number v goes around x as zeros around x - v, with v added to the whole.
    """
    name = scope.activation(call)
    mode = call.text("mode", "constant")
    if mode not in _MODES:
        raise RefusedError(f"mode {mode!r} is unknown")
    lowered = moved(name, scope, _move(call, scope, mode))
    number = _number(call, scope) if mode == "constant" else 0.0
    grid = scope.grids.get(call.inputs[0])
    if grid is not None:
        number = (number - grid.zero) * grid.scale if mode == "constant" else 0.0
    if number == 0:
        return lowered
    if not abs(number) <= _LARGEST_NUMBER:
        raise RefusedError(f"pads with {number:g}; at most {_LARGEST_NUMBER:g} is supported")
    held = scope.held(name)
    padded = result_shape(lowered.chain[0], [held])
    before, after = with_constants(held, 1.0, -number), with_constants(padded, 1.0, number)
    if grid is not None and not grid.is_whole:
        after = (*after, clip_onto(call.outputs[0], scope, grid))
    return Lowered((*before, *lowered.chain, *after), (name,), lowered.shape)


def _move(call: OnnxCall, scope: Scope, mode: str) -> Move:
    shape = scope.shapes[scope.activation(call)]
    before, after = _pads(call, scope, len(shape))
    if scope.batch != 1 and (before[0] or after[0]):
        raise RefusedError("pads the batch axis")
    cuts = tuple(slice(max(0, -b), -max(0, -a) or None) for b, a in zip(before, after, strict=True))
    around = [(max(0, b), max(0, a)) for b, a in zip(before, after, strict=True)]
    extents = [extent + b + a for extent, (b, a) in zip(shape, around, strict=True)]
    require_room(shape, tuple(extents))

    def move(places: Places) -> NDArray[Any]:
        kept = places[cuts]
        if not kept.size or mode == "constant":
            return np.pad(kept, around, constant_values=NOTHING)
        return np.asarray(np.pad(kept, around, mode=mode))  # type: ignore[call-overload]

    return move


def _pads(call: OnnxCall, scope: Scope, rank: int) -> tuple[list[int], list[int]]:
    """Elements before and after every axis."""
    if call.opset < _INPUTS_SINCE:
        given = call.integers("pads") or ()
    else:
        given = scope.integers(call, 1, "pads")
    axes = list(range(rank))
    if call.has_input(3):
        axes = [axis_within(axis, rank) for axis in scope.integers(call, 3, "axes")]
    if len(given) != 2 * len(axes):
        raise RefusedError(f"pads {list(given)} do not fit {len(axes)} axes")
    before, after = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        before[axis], after[axis] = given[position], given[position + len(axes)]
    return before, after


def _number(call: OnnxCall, scope: Scope) -> float:
    if call.opset < _INPUTS_SINCE:
        return call.number("value", 0.0)
    if not call.has_input(2):
        return 0.0
    values = scope.weights(call, 2, "constant_value").reshape(-1)
    return float(values[0]) if values.size else 0.0
