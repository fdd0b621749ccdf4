"""Normalizations: of layers, instances, groups, by the root of the mean square, by a norm, LRN."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from driver.network.frontend.batch_layout import along
from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Rule, Scope, axis_within
from driver.network.frontend.operators.channel_affine import can_be_repeated, with_constants
from driver.network.graph import ir
from driver.network.graph.ir import FloatArray, Shape, Window

_EPSILON: Final = 1e-5
_GROUP_SCALES_CHANGED: Final = 21
_LEAST_NORM: Final = 1e-18
"""What a norm of zero counts as, so that zeros stay zeros."""


def layer_norm(call: OnnxCall, scope: Scope) -> Lowered:
    """LayerNormalization: over an axis and all behind it, constant scale and bias."""
    return _of_rest(call, scope, centered=True)


def rms_norm(call: OnnxCall, scope: Scope) -> Lowered:
    """RMSNormalization: as the former without the mean and the bias."""
    return _of_rest(call, scope, centered=False)


def _of_rest(call: OnnxCall, scope: Scope, *, centered: bool) -> Lowered:
    name = scope.activation(call)
    shape = scope.shapes[name]
    axis = axis_within(call.integer("axis", -1), len(shape))
    scale = scope.weights(call, 1, "scale")
    bias = scope.weights(call, 2, "bias") if call.has_input(2) else np.zeros((), np.float32)
    for what, values in (("scale", scale), ("bias", bias)):
        if not can_be_repeated(values, shape[axis:]):
            raise RefusedError(f"{what} {list(values.shape)} does not fit {list(shape[axis:])}")
    form = along(shape, tuple(range(axis, len(shape))), scope.batch)
    normal = ir.Normalize(axes=form.axes, epsilon=_epsilon(call), centered=centered)
    return Lowered((*form.before, normal, *with_constants(form.shape, scale, bias)), (name,), shape)


def instance_norm(call: OnnxCall, scope: Scope) -> Lowered:
    """InstanceNormalization: over each image of each channel."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    return _of_groups(name, scope, _channels(shape), _epsilon(call), _scales(call, scope, shape[1]))


def group_norm(call: OnnxCall, scope: Scope) -> Lowered:
    """GroupNormalization: over groups of channels; scales for each group before opset 21."""
    name = scope.activation(call)
    shape, groups = scope.shapes[name], call.integer("num_groups", 0)
    channels = _channels(shape)
    if groups < 1 or channels % groups:
        raise RefusedError(f"num_groups {groups} does not divide the channels of {list(shape)}")
    each = groups if call.opset < _GROUP_SCALES_CHANGED else channels
    scale, bias = _scales(call, scope, each)
    wide = (np.repeat(scale, channels // each), np.repeat(bias, channels // each))
    return _of_groups(name, scope, groups, _epsilon(call), wide)


def _of_groups(
    name: str, scope: Scope, groups: int, epsilon: float, parameters: tuple[FloatArray, FloatArray]
) -> Lowered:
    """The channels of an image in groups, each with a mean and a variance of its own."""
    shape = scope.shapes[name]
    rows = ir.Reshape(shape=(groups, math.prod(shape[1:]) // groups))
    normal = ir.Normalize(axes=(2,), epsilon=epsilon)
    lanes = (-1, *(1,) * (len(shape) - 2))
    scale, bias = (values.reshape(lanes) for values in parameters)
    scaled = with_constants((scope.batch, *shape[1:]), scale, bias)
    return Lowered((rows, normal, ir.Reshape(shape=shape[1:]), *scaled), (name,), shape)


def mean_variance_norm(call: OnnxCall, scope: Scope) -> Lowered:
    """MeanVarianceNormalization over given axes."""
    name = scope.activation(call)
    shape = scope.shapes[name]
    given = call.integers("axes") or (0, 2, 3)
    form = along(shape, tuple(axis_within(axis, len(shape)) for axis in given), scope.batch)
    normal = ir.Normalize(axes=tuple(sorted(form.axes)), epsilon=_LEAST_NORM)
    return Lowered((*form.before, normal), (name,), shape)


def lp_norm(call: OnnxCall, scope: Scope) -> Lowered:
    """LpNormalization: a division by the sum of magnitudes, or by the root of that of squares."""
    name = scope.activation(call)
    shape, power = scope.shapes[name], call.integer("p", 2)
    form = along(shape, (axis_within(call.integer("axis", -1), len(shape)),), scope.batch)
    if power == 2:
        many = form.shape[form.axes[0]]
        normal = ir.Normalize(axes=form.axes, epsilon=_LEAST_NORM, centered=False)
        unit = with_constants(form.shape, many**-0.5, 0.0)
        return Lowered((*form.before, normal, *unit), (name,), shape)
    if power != 1:
        raise RefusedError(f"p {power}; only 1 and 2 are supported")
    x = scope.beside("x", Lowered(form.before, (name,), form.shape), call)
    chain: tuple[ir.Operator, ...] = (
        ir.Unary(function="abs"),
        ir.Reduce(kind="sum", axes=form.axes),
        ir.Clip(lo=_LEAST_NORM, hi=math.inf),
    )
    norm = scope.beside("norm", Lowered(chain, (x,), None), call)
    return Lowered((ir.Product(divides=True),), (x, norm), shape)


def local_response(call: OnnxCall, scope: Scope) -> Lowered:
    """LRN: x times (bias + alpha / size * sum of the squares of `size` channels) to the -beta.

    The sum is a convolution of one pixel with ones in a band.
    """
    name = scope.activation(call)
    shape, size = scope.shapes[name], call.integer("size", 0)
    channels = _channels(shape)
    if size < 1:
        raise RefusedError(f"size {size}; at least 1 is needed")
    places = np.arange(channels)
    away = places[None] - places[:, None]
    band = (-((size - 1) // 2) <= away) & (away <= size // 2)
    weight = band * np.float32(call.number("alpha", 1e-4) / size)
    sums = ir.Conv2d(
        weight=np.ascontiguousarray(weight[:, :, None, None], np.float32),
        bias=np.full(channels, call.number("bias", 1.0), np.float32),
        window=Window(kernel=(1, 1)),
    )
    image = ir.Reshape(shape=(channels, math.prod(shape[2:]), 1))
    square = ir.Unary(function="power", parameters=(2.0,))
    root = ir.Unary(function="power", parameters=(-call.number("beta", 0.75),))
    chain = (image, square, sums, root, ir.Reshape(shape=shape[1:]))
    factors = scope.beside("factors", Lowered(chain, (name,), shape), call)
    return Lowered((ir.Product(),), (name, factors), shape)


def _channels(shape: Shape) -> int:
    if len(shape) < 3:
        raise RefusedError(f"input {list(shape)}; only [N, C, ...] is supported")
    return shape[1]


def _scales(call: OnnxCall, scope: Scope, many: int) -> tuple[FloatArray, FloatArray]:
    scale, bias = scope.weights(call, 1, "scale"), scope.weights(call, 2, "bias")
    if scale.shape != (many,) or bias.shape != (many,):
        raise RefusedError(
            f"scale {list(scale.shape)} and bias {list(bias.shape)}; [{many}] is needed"
        )
    return scale, bias


def _epsilon(call: OnnxCall) -> float:
    epsilon = call.number("epsilon", _EPSILON)
    if not 0 <= epsilon < math.inf:
        raise RefusedError(f"epsilon {epsilon} is not a small positive number")
    return epsilon


RULES: Final[Mapping[str, Rule]] = {
    "GroupNormalization": group_norm,
    "InstanceNormalization": instance_norm,
    "LRN": local_response,
    "LayerNormalization": layer_norm,
    "LpNormalization": lp_norm,
    "MeanVarianceNormalization": mean_variance_norm,
    "RMSNormalization": rms_norm,
}
"""What each operator of this kind becomes."""
