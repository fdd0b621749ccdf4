"""Batch normalization, clips, and what changes nothing."""

from __future__ import annotations

import math

import numpy as np

from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Scope
from driver.network.frontend.operators.channel_affine import with_constants
from driver.network.frontend.operators.normalizing import instance_norm
from driver.network.graph.ir import Clip

_CLIP_INPUTS_SINCE = 11
_FLOAT_TYPES = (1, 10, 11, 16)
"""What ONNX calls float32, float16, double and bfloat16."""


def batch_norm(call: OnnxCall, scope: Scope) -> Lowered:
    """BatchNormalization at inference: one multiplication and one addition per channel.

    In training mode a batch of one is normalized by itself, as exporters write the weights of
    networks that standardize them.
    """
    name = scope.activation(call)
    if not call.integer("spatial", 1):
        raise RefusedError("only inference over channels is supported")
    if call.integer("training_mode", 0):
        if scope.shapes[name][0] != 1:
            raise RefusedError("training mode is supported for one sample only")
        return instance_norm(call, scope)
    parts = [
        scope.weights(call, i, what).astype(np.float64)
        for i, what in enumerate(("scale", "B", "mean", "var"), start=1)
    ]
    shape = scope.shapes[name]
    channels = shape[1:2]
    if any(part.shape != channels for part in parts):
        shapes = [list(part.shape) for part in parts]
        raise RefusedError(f"parameters {shapes} do not fit input {list(shape)}")
    scale, offset, mean, variance = parts
    spread = variance + call.number("epsilon", 1e-5)
    if (spread <= 0).any():
        raise RefusedError("var + epsilon is not positive")
    lanes = (-1, *(1,) * (len(shape) - 2))
    mul = (scale / np.sqrt(spread)).reshape(lanes)
    add = offset.reshape(lanes) - mean.reshape(lanes) * mul
    return Lowered(with_constants(scope.held(name), mul, add), (name,))


def relu(call: OnnxCall, scope: Scope) -> Lowered:
    """Relu."""
    return Lowered((Clip(lo=0.0, hi=math.inf),), (scope.activation(call),))


def clip(call: OnnxCall, scope: Scope) -> Lowered:
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


def same(call: OnnxCall, scope: Scope) -> Lowered:
    """Identity: another name."""
    return Lowered((), (scope.activation(call),))


def dropout(call: OnnxCall, scope: Scope) -> Lowered:
    """Dropout at inference: another name."""
    if call.has_input(2) and bool(np.any(scope.constant(call, 2, "training_mode"))):
        raise RefusedError("training mode is not supported")
    return Lowered((), (scope.activation(call),))


def cast(call: OnnxCall, scope: Scope) -> Lowered:
    """Cast of an activation between float types: another name."""
    if call.integer("to", 0) not in _FLOAT_TYPES:
        raise RefusedError("casts an activation to a type that is not floating point")
    return Lowered((), (scope.activation(call),))


def cast_like(call: OnnxCall, scope: Scope) -> Lowered:
    """CastLike of an activation to a float type, such as that of any activation: another name."""
    like = scope.constants.get(call.inputs[1])
    if like is not None and like.dtype.name not in ("float16", "float32", "float64"):
        raise RefusedError(f"casts an activation to {like.dtype}")
    return Lowered((), (scope.activation(call),))


def _bound(call: OnnxCall, scope: Scope, index: int, what: str, default: float) -> float:
    if not call.has_input(index):
        return default
    values = scope.constant(call, index, what)
    if values.size != 1:
        raise RefusedError(f"{what} {list(values.shape)} is not one number")
    return float(values.reshape(-1)[0])
