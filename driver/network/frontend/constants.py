"""Nodes whose operands are all known are computed at import: shape arithmetic, reshaped weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import onnx

from driver.network.frontend.call import Array, OnnxCall, RefusedError, Scope, axis_within
from driver.network.frontend.constant_rules import COMPUTED, require_room
from driver.network.frontend.file import tensor_array
from driver.network.frontend.integers.stored import dequantized, quantized
from driver.network.frontend.operators.functions import PLAIN, WITH_PARAMETERS, function_of
from driver.network.frontend.operators.gathering import entries_at
from driver.network.frontend.operators.reshapes import (
    axes_of,
    flat_shape,
    part_bounds,
    target_shape,
)
from driver.network.graph.functions import evaluate

_OF_SHAPES: Final = frozenset({"Shape", "Size"})


def constant_results(call: OnnxCall, scope: Scope) -> tuple[Array, ...] | None:
    """The values of a node that needs no activation; None where it needs one, or is no rule here.

    Raises:
        RefusedError: its operands do not fit.
    """
    if call.operator in _OF_SHAPES:
        shape = _shape(call, scope)
        return None if shape is None else (shape,)
    names = [name for name in call.inputs if name]
    if call.operator == "CastLike" and scope.is_constant(names[0]):
        return (_cast_like(names, scope),)
    if call.operator not in CONSTANT_OPERATORS:
        return None
    if not all(scope.is_constant(name) for name in names):
        return None
    if not names and call.operator != "Constant":
        return None
    operands = [scope.constants.get(name, _NOTHING) for name in call.inputs]
    try:
        with np.errstate(all="ignore"):
            if call.operator == "Split":
                return _split(call, operands)
            return (np.asarray(_RULES[call.operator](call, operands)),)
    except (ValueError, IndexError, TypeError, KeyError, OverflowError, MemoryError) as error:
        raise RefusedError(f"cannot be computed at import: {error}") from None


def _cast_like(names: Sequence[str], scope: Scope) -> Array:
    """A constant in the type of another tensor; activations are float32."""
    like = scope.constants.get(names[-1])
    return scope.constants[names[0]].astype(np.float32 if like is None else like.dtype)


_NOTHING: Final = np.zeros(0, np.int64)


def _shape(call: OnnxCall, scope: Scope) -> Array | None:
    name = call.inputs[0] if call.has_input(0) else ""
    known = scope.constants[name].shape if name in scope.constants else None
    shape = known if known is not None else scope.shapes.get(scope.resolved(name))
    if shape is None:
        return None
    if call.operator == "Size":
        return np.array(math.prod(shape), np.int64)
    end = call.attrs.get("end")
    return np.array(shape[call.integer("start", 0) : end], np.int64)


def _constant(call: OnnxCall, _: list[Array]) -> Array:
    for name in ("value_float", "value_floats"):
        if name in call.attrs:
            return np.array(call.attrs[name], np.float32)
    for name in ("value_int", "value_ints"):
        if name in call.attrs:
            return np.array(call.attrs[name], np.int64)
    if "value" not in call.attrs:
        raise RefusedError(f"has no numeric value but {sorted(call.attrs)}")
    return tensor_array(call.attrs["value"])


def _reshape(call: OnnxCall, operands: list[Array]) -> Array:
    x = operands[0]
    wanted = operands[1] if len(operands) > 1 else np.array(call.integers("shape"))
    shape = target_shape(x.shape, tuple(int(v) for v in wanted), bool(call.integer("allowzero", 0)))
    return x.reshape(shape)


def _squeeze(call: OnnxCall, operands: list[Array]) -> Array:
    axes = axes_of(call, operands[1] if len(operands) > 1 else None)
    return np.squeeze(operands[0], axis=None if axes is None else tuple(axes))


def _unsqueeze(call: OnnxCall, operands: list[Array]) -> Array:
    axes = axes_of(call, operands[1] if len(operands) > 1 else None)
    return np.expand_dims(operands[0], tuple(axes or ()))


def _slice(call: OnnxCall, operands: list[Array]) -> Array:
    x = operands[0]
    if len(operands) > 2:
        starts, ends = operands[1], operands[2]
        axes = operands[3] if len(operands) > 3 and operands[3].size else np.arange(len(starts))
        steps = operands[4] if len(operands) > 4 else np.ones(len(starts), np.int64)
    else:
        starts, ends = np.array(call.integers("starts")), np.array(call.integers("ends"))
        axes = np.array(call.integers("axes") or range(len(starts)))
        steps = np.ones(len(starts), np.int64)
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        index[int(axis)] = slice(int(start), int(end), int(step))
    return x[tuple(index)]


def _split(call: OnnxCall, operands: list[Array]) -> tuple[Array, ...]:
    x = operands[0]
    axis = axis_within(call.integer("axis", 0), x.ndim)
    given = tuple(int(size) for size in operands[1]) if call.has_input(1) else None
    bounds = part_bounds(call, given, x.shape[axis])
    return tuple(np.split(x, bounds[1:-1], axis=axis))


def _cast(call: OnnxCall, operands: list[Array]) -> Array:
    wanted = onnx.helper.tensor_dtype_to_np_dtype(call.integer("to", 1))
    values = np.asarray(operands[0], wanted)
    return values.astype(np.float32) if wanted.name == "bfloat16" else values


def _divide(_: OnnxCall, operands: list[Array]) -> Array:
    a, b = operands
    if a.dtype.kind in "iu":
        if (b == 0).any():
            raise RefusedError("divides by zero")
        return np.asarray(np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)), a.dtype)
    return np.asarray(a / b, a.dtype)


def _filled(call: OnnxCall, operands: list[Array]) -> Array:
    shape = tuple(int(v) for v in operands[0])
    require_room(shape)
    value = call.attrs.get("value")
    fill = np.zeros(1, np.float32) if value is None else tensor_array(value)
    return np.full(shape, fill.reshape(-1)[0], fill.dtype)


def _function(call: OnnxCall, operands: list[Array]) -> Array:
    (x,) = operands
    function = function_of(call)
    return evaluate(function.function, x, function.parameters).astype(x.dtype)


_RULES: Final[Mapping[str, Callable[[OnnxCall, list[Array]], Array]]] = {
    **dict.fromkeys((*PLAIN, *WITH_PARAMETERS), _function),
    **COMPUTED,
    "Constant": _constant,
    "DequantizeLinear": dequantized,
    "QuantizeLinear": quantized,
    "Identity": lambda _, x: x[0],
    "Dropout": lambda _, x: x[0],
    "Reshape": _reshape,
    "Flatten": lambda call, x: x[0].reshape(flat_shape(x[0].shape, call.integer("axis", 1))),
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": lambda call, x: np.transpose(x[0], call.integers("perm")),
    "Concat": lambda call, x: np.concatenate(x, axis=call.integer("axis", 0)),
    "Gather": lambda call, x: np.take(x[0], x[1].astype(np.int64), axis=call.integer("axis", 0)),
    "GatherND": lambda call, x: entries_at(
        x[0], x[1].astype(np.int64), call.integer("batch_dims", 0)
    ),
    "Slice": _slice,
    "Cast": _cast,
    "ConstantOfShape": _filled,
    "Add": lambda _, x: x[0] + x[1],
    "Sub": lambda _, x: x[0] - x[1],
    "Mul": lambda _, x: x[0] * x[1],
    "Div": _divide,
    "MatMul": lambda _, x: x[0] @ x[1],
    "Neg": lambda _, x: -x[0],
    "Relu": lambda _, x: np.maximum(x[0], 0),
}

CONSTANT_OPERATORS: Final = frozenset((*_RULES, *_OF_SHAPES, "Split"))
"""The operators that are computed at import where their inputs are known."""
