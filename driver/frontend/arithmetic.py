"""Arithmetic on activations: layers without windows, per-channel constants, clips, softmax."""

from __future__ import annotations

import math

import numpy as np

from driver.frontend.call import Call, Lowered, RefusedError, Scope, axis_within
from driver.graph.ir import Add, Affine, Clip, Dense, FloatArray, Shape, Softmax

_SOFTMAX_AXIS_CHANGED = 13
_CLIP_INPUTS_SINCE = 11
_FLOAT_TYPES = (1, 10, 11)


def gemm(call: Call, scope: Scope) -> Lowered:
    """Gemm of an activation [N, K] with constant B and C."""
    name = scope.activation(call)
    if call.integer("transA", 0):
        raise RefusedError("transA exchanges the batch with the features")
    weight = scope.weights(call, 1, "B")
    if weight.ndim != 2:
        raise RefusedError(f"B {list(weight.shape)} is not a matrix")
    rows = weight if call.integer("transB", 0) else weight.T
    rows = rows * np.float32(call.number("alpha", 1.0))
    bias = np.zeros(rows.shape[0], np.float32)
    if call.has_input(2):
        addend = scope.weights(call, 2, "C") * np.float32(call.number("beta", 1.0))
        bias = channel_values(addend, (scope.shapes[name][0], rows.shape[0]))
    return Lowered((Dense(weight=np.ascontiguousarray(rows), bias=bias),), (name,))


def matmul(call: Call, scope: Scope) -> Lowered:
    """MatMul of an activation [N, K] with a constant matrix."""
    if all(scope.resolved(name) in scope.shapes for name in call.inputs):
        raise RefusedError("multiplies two activations; only a constant matrix is supported")
    name = scope.activation(call)
    weight = scope.weights(call, 1, "B")
    if len(scope.shapes[name]) != 2 or weight.ndim != 2:
        raise RefusedError(
            f"multiplies {list(scope.shapes[name])} by {list(weight.shape)}; only two axes each"
        )
    bias = np.zeros(weight.shape[1], np.float32)
    return Lowered((Dense(weight=np.ascontiguousarray(weight.T), bias=bias),), (name,))


def add(call: Call, scope: Scope) -> Lowered:
    """Add of two activations of one shape, or of an activation and a per-channel constant."""
    names = tuple(scope.resolved(name) for name in call.inputs)
    if len(names) == 2 and all(name in scope.shapes for name in names):
        return Lowered((Add(),), names)
    name, values, _ = _with_constant(call, scope)
    return Lowered((_affine(1.0, values, values.shape),), (name,))


def subtract(call: Call, scope: Scope) -> Lowered:
    """Sub with a per-channel constant on either side."""
    name, values, constant_first = _with_constant(call, scope)
    sign = -1.0 if constant_first else 1.0
    return Lowered((_affine(sign, -sign * values, values.shape),), (name,))


def multiply(call: Call, scope: Scope) -> Lowered:
    """Mul by a per-channel constant."""
    name, values, _ = _with_constant(call, scope)
    return Lowered((_affine(values, 0.0, values.shape),), (name,))


def divide(call: Call, scope: Scope) -> Lowered:
    """Div by a per-channel constant."""
    name, values, constant_first = _with_constant(call, scope)
    if constant_first:
        raise RefusedError("divides a constant by an activation")
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.float32(1) / values
    if not np.isfinite(inverse).all():
        raise RefusedError("divides by zero")
    return Lowered((_affine(inverse, 0.0, values.shape),), (name,))


def batch_norm(call: Call, scope: Scope) -> Lowered:
    """BatchNormalization at inference: one multiplication and one addition per channel."""
    name = scope.activation(call)
    if call.integer("training_mode", 0) or not call.integer("spatial", 1):
        raise RefusedError("only inference over channels is supported")
    parts = [
        scope.weights(call, i, what).astype(np.float64)
        for i, what in enumerate(("scale", "B", "mean", "var"), start=1)
    ]
    channels = scope.shapes[name][1:2]
    if any(part.shape != channels for part in parts):
        shapes = [list(part.shape) for part in parts]
        raise RefusedError(f"parameters {shapes} do not fit input {list(scope.shapes[name])}")
    scale, offset, mean, variance = parts
    spread = variance + call.number("epsilon", 1e-5)
    if (spread <= 0).any():
        raise RefusedError("var + epsilon is not positive")
    mul = scale / np.sqrt(spread)
    return Lowered((_affine(mul, offset - mean * mul, channels),), (name,))


def relu(call: Call, scope: Scope) -> Lowered:
    """Relu."""
    return Lowered((Clip(lo=0.0, hi=math.inf),), (scope.activation(call),))


def clip(call: Call, scope: Scope) -> Lowered:
    """Clip with bounds as attributes (before opset 11) or constant inputs."""
    name = scope.activation(call)
    if call.opset < _CLIP_INPUTS_SINCE:
        lo, hi = call.number("min", -math.inf), call.number("max", math.inf)
    else:
        lo = _bound(call, scope, 1, "min", -math.inf)
        hi = _bound(call, scope, 2, "max", math.inf)
    if math.isnan(lo) or math.isnan(hi):
        raise RefusedError("a bound is NaN")
    return Lowered((Clip(lo=min(lo, hi), hi=hi),), (name,))  # ONNX: max wins where min > max


def softmax(call: Call, scope: Scope) -> Lowered:
    """Softmax over the channels of [N, C]."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    axis = call.integer("axis", 1 if call.opset < _SOFTMAX_AXIS_CHANGED else -1)
    if axis_within(axis, len(shape)) != 1:
        raise RefusedError(f"axis {axis} of {list(shape)}; only channels (axis 1) are supported")
    return Lowered((Softmax(),), (name,))


def same(call: Call, scope: Scope) -> Lowered:
    """Identity: another name."""
    return Lowered((), (scope.activation(call),))


def dropout(call: Call, scope: Scope) -> Lowered:
    """Dropout at inference: another name."""
    if call.has_input(2) and bool(np.any(scope.constant(call, 2, "training_mode"))):
        raise RefusedError("training mode is not supported")
    return Lowered((), (scope.activation(call),))


def cast(call: Call, scope: Scope) -> Lowered:
    """Cast of an activation between float types: another name."""
    if call.integer("to", 0) not in _FLOAT_TYPES:
        raise RefusedError("casts an activation to a type that is not floating point")
    return Lowered((), (scope.activation(call),))


def channel_values(values: FloatArray, shape: Shape) -> FloatArray:
    """A constant that is broadcast to `shape` as one value per channel [C].

    Raises:
        RefusedError: it varies over another axis than axis 1.
    """
    if values.ndim > len(shape):
        raise RefusedError(f"constant {list(values.shape)} does not fit {list(shape)}")
    aligned = (1,) * (len(shape) - values.ndim) + values.shape
    others = [extent for axis, extent in enumerate(aligned) if axis != 1]
    if any(extent != 1 for extent in others) or aligned[1] not in (1, shape[1]):
        raise RefusedError(
            f"constant {list(values.shape)} on {list(shape)}; only one value per channel"
        )
    return np.ascontiguousarray(np.broadcast_to(values.reshape(-1), shape[1:2]), np.float32)


def _with_constant(call: Call, scope: Scope) -> tuple[str, FloatArray, bool]:
    """The activation, the constant per channel, and whether the constant comes first."""
    if len(call.inputs) != 2:
        raise RefusedError(f"has {len(call.inputs)} inputs instead of 2")
    constant_first = scope.is_constant(call.inputs[0])
    if not constant_first and not scope.is_constant(call.inputs[1]):
        raise RefusedError("combines two activations; only a constant operand is supported")
    name = scope.activation(call, 1 if constant_first else 0)
    values = scope.weights(call, 0 if constant_first else 1, "constant")
    return name, channel_values(values, scope.shapes[name]), constant_first


def _affine(mul: object, add: object, shape: Shape) -> Affine:
    mul32, add32 = (
        np.ascontiguousarray(np.broadcast_to(np.asarray(v, np.float32), shape)) for v in (mul, add)
    )
    return Affine(mul=mul32, add=add32)


def _bound(call: Call, scope: Scope, index: int, what: str, default: float) -> float:
    if not call.has_input(index):
        return default
    values = scope.constant(call, index, what)
    if values.size != 1:
        raise RefusedError(f"{what} {list(values.shape)} is not one number")
    return float(values.reshape(-1)[0])
