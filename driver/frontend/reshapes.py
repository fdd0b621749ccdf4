"""Operators that only rename axes: what Reshape, Flatten, Squeeze and Transpose come to."""

from __future__ import annotations

import math

from driver.frontend.call import Array, Call, Lowered, RefusedError, Scope, axis_within
from driver.graph.ir import GraphInput, Reshape, Shape


def reshape(call: Call, scope: Scope) -> Lowered:
    """Reshape with a constant shape (attribute before opset 5)."""
    name = scope.activation(call)
    wanted = scope.integers(call, 1, "shape")
    allow_zero = bool(call.integer("allowzero", 0))
    return _reshaped(name, scope, target_shape(scope.shapes[name], wanted, allow_zero))


def flatten(call: Call, scope: Scope) -> Lowered:
    """Flatten: [prod before axis, prod from axis on]."""
    name = scope.activation(call)
    return _reshaped(name, scope, flat_shape(scope.shapes[name], call.integer("axis", 1)))


def squeeze(call: Call, scope: Scope) -> Lowered:
    """Squeeze of axes of extent 1."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    given = axes_of(call, scope.constant(call, 1, "axes") if call.has_input(1) else None)
    axes = [a for a, e in enumerate(shape) if e == 1 and a] if given is None else given
    gone = {axis_within(axis, len(shape)) for axis in axes}
    if any(shape[axis] != 1 for axis in gone):
        raise RefusedError(f"squeezes axes {sorted(gone)} of {list(shape)}")
    return _reshaped(name, scope, tuple(e for a, e in enumerate(shape) if a not in gone))


def unsqueeze(call: Call, scope: Scope) -> Lowered:
    """Unsqueeze: new axes of extent 1."""
    name = scope.activation(call)
    axes = axes_of(call, scope.constant(call, 1, "axes") if call.has_input(1) else None) or []
    rank = len(scope.shapes[name]) + len(axes)
    new = {axis_within(axis, rank) for axis in axes}
    if len(new) < len(axes):
        raise RefusedError(f"axes {axes} name one axis twice")
    old = iter(scope.shapes[name])
    return _reshaped(name, scope, tuple(1 if a in new else next(old) for a in range(rank)))


def transpose(call: Call, scope: Scope) -> Lowered:
    """A transpose that moves no element, or one of a whole input, which the loader then does."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    perm = call.integers("perm") or tuple(reversed(range(len(shape))))
    if sorted(perm) != list(range(len(shape))):
        raise RefusedError(f"perm {list(perm)} does not fit {list(shape)}")
    moved = [axis for axis in perm if shape[axis] != 1]
    if moved == sorted(moved):
        return _reshaped(name, scope, tuple(shape[axis] for axis in perm))
    if perm[0] == 0 and call.inputs[0] in scope.inputs and scope.readers[name] == 1:
        scope.inputs[name] = _transposed_input(scope.inputs[name], perm)
        scope.shapes[name] = scope.inputs[name].shape
        return Lowered((), (name,))
    raise RefusedError(
        f"perm {list(perm)} of {list(shape)} moves data; only at an input without other readers"
    )


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


def axes_of(call: Call, operand: Array | None) -> list[int] | None:
    """Axes from the input (opset 13 on) or the attribute; None where neither is given."""
    if operand is not None:
        return [int(axis) for axis in operand.reshape(-1)]
    given = call.integers("axes")
    return None if given is None else list(given)


def _reshaped(name: str, scope: Scope, shape: Shape) -> Lowered:
    before = scope.shapes[name]
    if shape[:1] != before[:1] or len(shape) < 2:
        raise RefusedError(f"changes the batch axis: {list(before)} becomes {list(shape)}")
    return Lowered((Reshape(shape=shape[1:]),), (name,))


def _transposed_input(given: GraphInput, perm: tuple[int, ...]) -> GraphInput:
    return GraphInput(
        name=given.name,
        shape=tuple(given.shape[axis] for axis in perm),
        axes=tuple(given.axes[axis] for axis in perm),
    )
