"""Concat along any axis: what it joins becomes the channels; constants become tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from driver.network.frontend.batch_layout import held_shape
from driver.network.frontend.call import Array, Lowered, OnnxCall, RefusedError, Scope, axis_within
from driver.network.frontend.operators.channel_affine import with_constants
from driver.network.frontend.operators.moves import NOTHING
from driver.network.graph.ir import Concat, Gather, Reshape, Shape


def concat(call: OnnxCall, scope: Scope) -> Lowered:
    """Concat of activations and constants along any axis.

    Along the channels it is one of the graph's. Where nothing varies before the axis, this becomes
    the channels; otherwise all elements do, and a gather brings them into their order.
    """
    call = _of_something(call, scope)
    names = [scope.resolved(name) for name in call.inputs]
    shapes = [scope.shape_at(call, index) for index in range(len(names))]
    axis = axis_within(call.integer("axis", 0), len(shapes[0]))
    whole = _whole(shapes, axis)
    if axis == 0 and scope.batch != 1:
        raise RefusedError(f"joins batches: {[list(shape) for shape in shapes]}")
    if len(names) == 1:
        return Lowered((), (scope.activation(call),))
    held = held_shape(whole, scope.batch)
    if axis == 1 and held == whole:
        parts = [_part(call, scope, index, shape[1:]) for index, shape in enumerate(shapes)]
        return Lowered((Concat(),), tuple(parts), whole)
    if math.prod(whole[:axis]) == scope.batch:
        parts = [_part(call, scope, index, shape[axis:]) for index, shape in enumerate(shapes)]
        return Lowered((Concat(),), tuple(parts), whole)
    samples = [(1, *shape[1:]) if scope.batch != 1 else shape for shape in shapes]
    parts = [_part(call, scope, at, (math.prod(each),)) for at, each in enumerate(samples)]
    order = Gather(index=_order(samples, axis).reshape(held[1:]))
    return Lowered((Concat(), order), tuple(parts), whole)


def _of_something(call: OnnxCall, scope: Scope) -> OnnxCall:
    """The call without constants that have no elements; they add nothing."""
    kept = [
        name for name in call.inputs if name not in scope.constants or scope.constants[name].size
    ]
    return replace(call, inputs=tuple(kept))


def _whole(shapes: Sequence[Shape], axis: int) -> Shape:
    first = shapes[0]
    rest = (first[:axis], first[axis + 1 :])
    if any(len(s) != len(first) or (s[:axis], s[axis + 1 :]) != rest for s in shapes):
        raise RefusedError(f"joins {[list(shape) for shape in shapes]} along axis {axis}")
    return (*rest[0], sum(shape[axis] for shape in shapes), *rest[1])


def _part(call: OnnxCall, scope: Scope, index: int, sample: Shape) -> str:
    """One operand, held as [N, *sample]."""
    if scope.is_constant(call.inputs[index]):
        return _constant_part(call, scope, index, sample)
    name = scope.activation(call, index)
    if scope.held(name)[1:] == sample:
        return name
    reshaped = Lowered((Reshape(shape=sample),), (name,), (scope.batch, *sample))
    return scope.beside(f"part{index}", reshaped, call)


def _constant_part(call: OnnxCall, scope: Scope, index: int, sample: Shape) -> str:
    """A constant for each sample: zeros of an activation's shape, and its values added."""
    values = scope.weights(call, index, f"input {index}")
    if scope.batch != 1:
        if (values != values[:1]).any():
            raise RefusedError(f"input {index} has constants of its own for every sample")
        values = values[:1]
    of = next(at for at, name in enumerate(call.inputs) if not scope.is_constant(name))
    zeros = Gather(index=np.full(sample, NOTHING, np.int32))
    added = with_constants((scope.batch, *sample), 0.0, values.reshape(sample))
    chain = (zeros, *added)
    name = scope.activation(call, of)
    return scope.beside(f"constant{index}", Lowered(chain, (name,), (scope.batch, *sample)), call)


def _order(samples: Sequence[Shape], axis: int) -> Array:
    """Where the elements of the result lie among those of all operands, one after another."""
    starts = np.cumsum([0, *map(math.prod, samples)])
    places = [
        np.arange(start, start + math.prod(shape), dtype=np.int32).reshape(shape)
        for start, shape in zip(starts, samples, strict=False)
    ]
    return np.concatenate(places, axis=axis)
