"""Elements at places: constant ones are a move, those that the data decide a column for each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from driver.network.frontend.batch_layout import held_shape
from driver.network.frontend.call import (
    Array,
    Lowered,
    OnnxCall,
    RefusedError,
    Rule,
    Scope,
    axis_within,
)
from driver.network.frontend.operators.joining import concat
from driver.network.frontend.operators.moves import NOTHING, moved, require_room
from driver.network.frontend.operators.moves import gather as gather_constant
from driver.network.graph.ir import Gather, Operator, Reshape, Shape, Take


def gather(call: OnnxCall, scope: Scope) -> Lowered:
    """Gather along an axis: of an activation or a constant, at constant places or at data."""
    if scope.is_constant(call.inputs[1]):
        return gather_constant(call, scope)
    places = scope.activation(call, 1)
    if scope.is_constant(call.inputs[0]):
        return _of_table(call, scope, places)
    return _of_data(call, scope, places)


def _of_table(call: OnnxCall, scope: Scope, places: str) -> Lowered:
    """Rows of a constant, such as an embedding's, for every place."""
    data = scope.weights(call, 0, "data")
    axis = axis_within(call.integer("axis", 0), data.ndim)
    before, after = data.shape[:axis], data.shape[axis + 1 :]
    if scope.batch != 1 and before:
        raise RefusedError(f"takes entries of axis {axis} of {list(data.shape)} for each sample")
    table = np.ascontiguousarray(np.moveaxis(data, axis, -1).reshape(-1, data.shape[axis]))
    _note_reach(places, scope, data.shape[axis])
    return _taken(Take(table=table), (), places, before, after, scope, call)


def _of_data(call: OnnxCall, scope: Scope, places: str) -> Lowered:
    """Entries of an activation, all of whose elements belong to one sample."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    axis = axis_within(call.integer("axis", 0), len(shape))
    if scope.batch != 1:
        raise RefusedError(f"takes entries of {list(shape)} that the data decide, across samples")
    before, after = shape[:axis], shape[axis + 1 :]
    rest = math.prod(before) * math.prod(after)

    def columns(x: Array) -> Array:
        return np.moveaxis(x, axis, -1).reshape(1, rest, shape[axis])

    source = scope.beside("columns", moved(name, scope, columns), call)
    return _taken(Take(), (source,), places, before, after, scope, call)


def _taken(
    op: Take,
    operands: tuple[str, ...],
    places: str,
    before: Shape,
    after: Shape,
    scope: Scope,
    call: OnnxCall,
) -> Lowered:
    """The columns [*before, *after] for every place, each place where ONNX has it."""
    given = scope.shapes[places]
    whole = (*before, *given, *after)
    require_room(given, whole)
    many = math.prod(given) // scope.batch
    flat = scope.beside(
        "places", Lowered((Reshape(shape=(many,)),), (places,), (scope.batch, many)), call
    )
    extents = (math.prod(before), math.prod(after), many)
    order = np.arange(math.prod(extents), dtype=np.int32).reshape(extents).transpose(0, 2, 1)
    form = held_shape(whole, scope.batch)[1:]
    move: Operator = Gather(index=np.ascontiguousarray(order).reshape(form))
    if extents[1] == 1:
        move = Reshape(shape=form)
    return Lowered((op, move), (flat, *operands), whole)


def _note_reach(places: str, scope: Scope, count: int) -> None:
    """The largest place of an input of the network: what samples made up for it keep to."""
    if places in scope.inputs:
        scope.ranges[places] = max(scope.ranges.get(places, 0.0), float(count - 1))


def gather_nd(call: OnnxCall, scope: Scope) -> Lowered:
    """GatherND at constant places."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    places = _whole_places(call, scope)
    batches, depth = call.integer("batch_dims", 0), places.shape[-1]
    if scope.batch != 1:
        raise RefusedError(f"takes entries of the batch of {list(shape)}")
    if batches + depth > len(shape) or places.shape[:batches] != shape[:batches]:
        raise RefusedError(f"indices {list(places.shape)} do not fit {list(shape)}")
    reach = np.array(shape[batches : batches + depth])
    _check_within(places, reach, shape)

    return moved(name, scope, lambda x: entries_at(x, places, batches))


def entries_at(x: Array, places: Array, batches: int) -> Array:
    """GatherND: entries of `x` at `places` [..., depth], the first axes of both going together."""
    parts = x.reshape(-1, *x.shape[batches:])
    each = places.reshape(len(parts), *places.shape[batches:])
    found = [part[tuple(np.moveaxis(at, -1, 0))] for part, at in zip(parts, each, strict=True)]
    return np.stack(found).reshape(*places.shape[:-1], *x.shape[batches + places.shape[-1] :])


def scatter_nd(call: OnnxCall, scope: Scope) -> Lowered:
    """ScatterND at constant places: entries of one tensor in the place of some of another."""
    shape = scope.shape_at(call, 0)
    places = _whole_places(call, scope)
    depth = places.shape[-1]
    if depth > len(shape):
        raise RefusedError(f"indices {list(places.shape)} do not fit {list(shape)}")
    reach = np.array(shape[:depth])
    _check_within(places, reach, shape)
    at = tuple(np.moveaxis(places % reach, -1, 0))
    return _scattered(call, scope, at, (*places.shape[:-1], *shape[depth:]))


def scatter_elements(call: OnnxCall, scope: Scope) -> Lowered:
    """ScatterElements at constant places along an axis; Scatter is its old name."""
    shape = scope.shape_at(call, 0)
    places = _whole_places(call, scope)
    axis = axis_within(call.integer("axis", 0), len(shape))
    if places.ndim != len(shape):
        raise RefusedError(f"indices {list(places.shape)} do not fit {list(shape)}")
    _check_within(places, np.array(shape[axis]), shape)
    at = [np.asarray(grid) for grid in np.indices(places.shape)]
    at[axis] = places % shape[axis]
    return _scattered(call, scope, tuple(at), places.shape)


def _scattered(call: OnnxCall, scope: Scope, at: tuple[Array, ...], updates: Shape) -> Lowered:
    """The first operand with the third one's elements at places of it; the last one wins."""
    if call.text("reduction", "none") != "none":
        raise RefusedError(f"reduction {call.text('reduction', '')!r}; only none is supported")
    shape = scope.shape_at(call, 0)
    if scope.batch != 1:
        raise RefusedError(f"changes entries of the batch of {list(shape)}")
    if scope.shape_at(call, 2) != updates:
        raise RefusedError(f"updates {list(scope.shape_at(call, 2))} are not {list(updates)}")
    require_room(shape, (math.prod(shape) + math.prod(updates),))
    size = math.prod(shape)
    order = np.arange(size, dtype=np.int32).reshape(shape)
    order[at] = size + np.arange(math.prod(updates), dtype=np.int32).reshape(updates)
    parts = tuple(_row(call, scope, index) for index in (0, 2))
    row = concat(replace(call, inputs=parts, attrs={"axis": 0}), scope)
    name = scope.beside("row", row, call)
    return moved(name, scope, lambda places: places.reshape(-1)[order])


def _row(call: OnnxCall, scope: Scope, index: int) -> str:
    """An operand with one axis."""
    size = math.prod(scope.shape_at(call, index))
    if scope.is_constant(call.inputs[index]):
        made = f"{call.outputs[0]}.part{index}"
        scope.constants[made] = scope.constants[call.inputs[index]].reshape(-1)
        return made
    name = scope.activation(call, index)
    return scope.beside(f"part{index}", Lowered((Reshape(shape=(size,)),), (name,), (size,)), call)


def _whole_places(call: OnnxCall, scope: Scope) -> Array:
    """The constant integers at the second input."""
    places = scope.constant(call, 1, "indices")
    if places.dtype.kind not in "iu" or not places.ndim or not places.size:
        raise RefusedError(f"indices {call.inputs[1]!r} are {places.dtype}{list(places.shape)}")
    return places.astype(np.int64)


def _check_within(places: Array, reach: Array, shape: Shape) -> None:
    if ((places < -reach) | (places >= reach)).any():
        raise RefusedError(f"an index is outside {list(shape)}")


def compress(call: OnnxCall, scope: Scope) -> Lowered:
    """Compress by a constant condition: the entries along an axis, or of all, that it names."""
    name = scope.activation(call)
    condition = scope.constant(call, 1, "condition").reshape(-1).astype(bool)
    taken = np.flatnonzero(condition)
    shape = scope.shapes[name]
    axis = axis_within(call.integer("axis", 0), len(shape)) if "axis" in call.attrs else None
    if scope.batch != 1 and not axis:
        raise RefusedError(f"takes a part of the batch of {list(shape)}")
    if taken.size and taken[-1] >= (math.prod(shape) if axis is None else shape[axis]):
        raise RefusedError(f"condition {list(condition.shape)} does not fit {list(shape)}")
    return moved(name, scope, lambda x: np.take(x, taken, axis))


def trilu(call: OnnxCall, scope: Scope) -> Lowered:
    """Trilu: the elements above or below a diagonal, zeros elsewhere."""
    name = scope.activation(call)
    given = scope.integers(call, 1, "k") if call.has_input(1) else (0,)
    cut = np.triu if call.integer("upper", 1) else np.tril

    def move(places: Array) -> Array:
        kept = cut(np.ones(places.shape[-2:], bool), given[0])
        return np.where(kept, places, NOTHING)

    if len(scope.shapes[name]) < (2 if scope.batch == 1 else 3):
        raise RefusedError(f"input {list(scope.shapes[name])} is no matrix for each sample")
    return moved(name, scope, move)


def reverse_sequence(call: OnnxCall, scope: Scope) -> Lowered:
    """ReverseSequence of constant lengths."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    lengths = scope.integers(call, 1, "sequence_lens")
    entry = axis_within(call.integer("batch_axis", 1), len(shape))
    axis = axis_within(call.integer("time_axis", 0), len(shape))
    if scope.batch != 1 or entry == axis or len(lengths) != shape[entry]:
        raise RefusedError(f"sequence_lens {list(lengths)} do not fit {list(shape)}")
    order = np.tile(np.arange(shape[axis]), (shape[entry], 1))
    for row, length in zip(order, lengths, strict=True):
        row[:length] = row[:length][::-1]

    def move(places: Array) -> Array:
        rows = np.moveaxis(places, (entry, axis), (0, 1))
        turned = np.stack([part[at] for part, at in zip(rows, order, strict=True)])
        return np.moveaxis(turned, (0, 1), (entry, axis))

    return moved(name, scope, move)


RULES: Final[Mapping[str, Rule]] = {
    "Compress": compress,
    "Gather": gather,
    "GatherND": gather_nd,
    "ReverseSequence": reverse_sequence,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Trilu": trilu,
}
"""What each operator of this kind becomes."""
