"""Operators that compute nothing: Reshape, Flatten, Squeeze, Transpose, Split, Slice."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Final

import numpy as np

from driver.network.frontend.batch_layout import held_shape
from driver.network.frontend.call import (
    Array,
    Lowered,
    OnnxCall,
    RefusedError,
    Result,
    Scope,
    axis_within,
)
from driver.network.frontend.operators.moves import sliced, transposed
from driver.network.graph.ir import Operator, Reshape, Shape, Slice

_SLICE_INPUTS_SINCE: Final = 10


def reshape(call: OnnxCall, scope: Scope) -> Lowered:
    """Reshape with a constant shape (attribute before opset 5)."""
    name = scope.activation(call)
    wanted = scope.integers(call, 1, "shape")
    allow_zero = bool(call.integer("allowzero", 0))
    return _reshaped(name, scope, target_shape(scope.shapes[name], wanted, allow_zero))


def flatten(call: OnnxCall, scope: Scope) -> Lowered:
    """Flatten: [prod before axis, prod from axis on]."""
    name = scope.activation(call)
    return _reshaped(name, scope, flat_shape(scope.shapes[name], call.integer("axis", 1)))


def squeeze(call: OnnxCall, scope: Scope) -> Lowered:
    """Squeeze of axes of extent 1."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    given = axes_of(call, scope.constant(call, 1, "axes") if call.has_input(1) else None)
    first = 0 if scope.batch == 1 else 1
    axes = [a for a, e in enumerate(shape) if e == 1 and a >= first] if given is None else given
    gone = {axis_within(axis, len(shape)) for axis in axes}
    if any(shape[axis] != 1 for axis in gone):
        raise RefusedError(f"squeezes axes {sorted(gone)} of {list(shape)}")
    return _reshaped(name, scope, tuple(e for a, e in enumerate(shape) if a not in gone))


def unsqueeze(call: OnnxCall, scope: Scope) -> Lowered:
    """Unsqueeze: new axes of extent 1."""
    name = scope.activation(call)
    axes = axes_of(call, scope.constant(call, 1, "axes") if call.has_input(1) else None) or []
    rank = len(scope.shapes[name]) + len(axes)
    new = {axis_within(axis, rank) for axis in axes}
    if len(new) < len(axes):
        raise RefusedError(f"axes {axes} name one axis twice")
    old = iter(scope.shapes[name])
    return _reshaped(name, scope, tuple(1 if a in new else next(old) for a in range(rank)))


def transpose(call: OnnxCall, scope: Scope) -> Lowered:
    """A transpose; one of a whole input is left to the loader."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    perm = call.integers("perm") or tuple(reversed(range(len(shape))))
    if sorted(perm) != list(range(len(shape))):
        raise RefusedError(f"perm {list(perm)} does not fit {list(shape)}")
    moving = [axis for axis in perm if shape[axis] != 1]
    if moving == sorted(moving):
        return _reshaped(name, scope, tuple(shape[axis] for axis in perm))
    if call.inputs[0] in scope.inputs and scope.readers[name] == 1:
        given = _transposed_input(name, scope, perm)
        if given is not None:
            return given
    return transposed(name, scope, perm)


def split(call: OnnxCall, scope: Scope) -> tuple[Result, ...]:
    """Split of an axis, in equal or given parts: one result for each output.

    A part of nothing is a constant without elements.
    """
    name = scope.activation(call)
    shape = scope.shapes[name]
    axis = axis_within(call.integer("axis", 0), len(shape))
    given = scope.integers(call, 1, "split") if call.has_input(1) else None
    bounds = part_bounds(call, given, shape[axis])

    def part(start: int, stop: int) -> Result:
        if start == stop:
            return np.zeros((*shape[:axis], 0, *shape[axis + 1 :]), np.float32)
        if axis == 1 and scope.held(name) == shape:
            return _channels(name, shape, start, stop)
        return sliced(name, scope, {axis: slice(start, stop)})

    return tuple(part(*ends) for ends in itertools.pairwise(bounds))


def slice_channels(call: OnnxCall, scope: Scope) -> Result:
    """Slice of any axes but the batch; channels that lie together stay where they are."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    starts, ends, axes, steps = _slice_bounds(call, scope)
    if 0 in steps:
        raise RefusedError("a step is 0")
    cuts = {
        axis_within(axis, len(shape)): slice(first, last, step)
        for first, last, axis, step in zip(starts, ends, axes, steps, strict=True)
    }
    ranges = {axis: range(*cut.indices(shape[axis])) for axis, cut in cuts.items()}
    if not all(ranges.values()):
        left = [len(ranges.get(axis, range(extent))) for axis, extent in enumerate(shape)]
        return np.zeros(left, np.float32)
    moves = {axis for axis, taken in ranges.items() if taken != range(shape[axis])}
    if scope.held(name) == shape and moves <= {1} and ranges.get(1, range(1)).step == 1:
        taken = ranges.get(1, range(shape[1]))
        return _channels(name, shape, taken.start, taken.stop)
    return sliced(name, scope, cuts)


def _channels(name: str, shape: Shape, start: int, stop: int) -> Lowered:
    """A range of channels; all of them are the operand itself."""
    chain: tuple[Operator, ...] = (Slice(start=start, stop=stop),)
    return Lowered(() if (start, stop) == (0, shape[1]) else chain, (name,))


def _slice_bounds(call: OnnxCall, scope: Scope) -> tuple[tuple[int, ...], ...]:
    """Starts, ends, axes and steps: inputs from opset 10 on, attributes before."""
    if call.opset < _SLICE_INPUTS_SINCE:
        given = [call.integers(what) for what in ("starts", "ends", "axes")]
    else:
        given = [
            scope.integers(call, index, what) if call.has_input(index) else None
            for index, what in enumerate(("starts", "ends", "axes", "steps"), start=1)
        ]
    starts, ends, axes, steps = (*given, None)[:4]
    if starts is None or ends is None:
        raise RefusedError("starts or ends are missing")
    many = len(starts)
    bounds = (starts, ends, axes or tuple(range(many)), steps or (1,) * many)
    if any(len(each) != many for each in bounds):
        raise RefusedError(f"starts, ends, axes and steps {bounds} are not of one length")
    return bounds


def part_bounds(call: OnnxCall, given: tuple[int, ...] | None, extent: int) -> list[int]:
    """Where each part of a Split begins, and where the last one ends.

    Args:
        call: the Split.
        given: the extents of the parts where an input has them.
        extent: of the axis.

    Raises:
        RefusedError: the parts do not divide the axis.
    """
    sizes = call.integers("split") if given is None else given
    if sizes is None:
        parts = len(call.outputs)
        if call.integer("num_outputs", parts) != parts:
            raise RefusedError(f"num_outputs is not {parts}, the number of its outputs")
        size = -(-extent // parts)
        sizes = tuple(min(size, extent - at * size) for at in range(parts))
    bounds = [0, *itertools.accumulate(sizes)]
    if bounds[-1] != extent or sorted(bounds) != bounds:
        raise RefusedError(f"parts {list(sizes)} do not divide {extent}")
    return bounds


def target_shape(shape: Shape, wanted: tuple[int, ...], allow_zero: bool) -> Shape:
    """The shape that ONNX's Reshape means: 0 copies the axis, -1 is what is left.

    Raises:
        RefusedError: the elements do not fit.
    """
    if any(e == 0 and not allow_zero and a >= len(shape) for a, e in enumerate(wanted)):
        raise RefusedError(f"shape {list(wanted)} copies an axis that {list(shape)} lacks")
    copied = [shape[a] if e == 0 and not allow_zero else e for a, e in enumerate(wanted)]
    total, known = math.prod(shape), math.prod(e for e in copied if e != -1)
    if copied.count(-1) > 1 or min(copied, default=0) < -1:
        raise RefusedError(f"shape {list(wanted)} is not a shape")
    if copied.count(-1) == 1 and known:
        copied[copied.index(-1)] = total // known
    if math.prod(copied) != total:
        raise RefusedError(f"cannot reshape {list(shape)} to {list(wanted)}")
    return tuple(copied)


def flat_shape(shape: Shape, axis: int) -> Shape:
    """The two extents that ONNX's Flatten leaves."""
    cut = len(shape) if axis == len(shape) else axis_within(axis, len(shape))
    return (math.prod(shape[:cut]), math.prod(shape[cut:]))


def axes_of(call: OnnxCall, operand: Array | None) -> list[int] | None:
    """Axes from the input (opset 13 on) or the attribute; None where neither is given."""
    if operand is not None:
        return [int(axis) for axis in operand.reshape(-1)]
    given = call.integers("axes")
    return None if given is None else list(given)


def _reshaped(name: str, scope: Scope, shape: Shape) -> Lowered:
    return Lowered((Reshape(shape=held_shape(shape, scope.batch)[1:]),), (name,), shape)


def _transposed_input(name: str, scope: Scope, perm: tuple[int, ...]) -> Lowered | None:
    """The user gives the input transposed; None where its first axis would be another one."""
    given = scope.inputs[name]
    added = len(given.shape) - len(perm)
    order = (*range(added), *(axis + added for axis in perm))
    shape = tuple(scope.shapes[name][axis] for axis in perm)
    held = tuple(given.shape[axis] for axis in order)
    if (perm[0] != 0 and not added) or held != held_shape(shape, scope.batch):
        return None
    axes = tuple(given.axes[axis] for axis in order)
    scope.inputs[name] = replace(given, shape=held, axes=axes)
    scope.shapes[name] = shape
    return Lowered((), (name,))
