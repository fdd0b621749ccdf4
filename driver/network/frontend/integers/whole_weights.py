"""Layers in the file's own arithmetic: whole weights, and what makes reals of their sums.

    Conv(x, weight, bias)   becomes   ScaleSums(Conv2d(x, whole weights), bias, scales)

if x was rounded to a grid and the weights are integers in the file. A bias that is not stored in
steps of both scales is added to the reals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from driver.network.frontend.call import (
    Array,
    Lowered,
    OnnxCall,
    RefusedError,
    Rule,
    Scope,
    WholeConstant,
)
from driver.network.frontend.integers.grids import noted
from driver.network.frontend.integers.stored import parameters_of
from driver.network.graph.ir import Affine, FakeQuantize, FloatArray, Layer, MatMul, ScaleSums

_SAME_SCALE: Final = 1e-5
"""How far the scale of a bias may be from the product of both scales: files round it to float32."""
_MOVES: Final = frozenset({"Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze", "Flatten"})


def note_whole(name: str, call: OnnxCall, operands: list[Array], scope: Scope) -> None:
    """Notes which integers a constant is, that is a call of DequantizeLinear's result."""
    parameters = parameters_of(call, operands)
    steps = operands[0].astype(np.int64) - parameters.zero
    scale = np.broadcast_to(parameters.scale, parameters.scale.shape or (1,) * steps.ndim)
    scope.whole[name] = WholeConstant(steps, scale)


def pass_on_whole(call: OnnxCall, scope: Scope) -> None:
    """Notes which integers a constant is that has just been computed."""
    if not scope.keeps_integers:
        return
    if call.operator == "DequantizeLinear":
        operands = [scope.constants[name] for name in call.inputs if name]
        note_whole(call.outputs[0], call, operands, scope)
    whole = scope.whole.get(call.inputs[0]) if call.operator in _MOVES else None
    if whole is None:
        return
    result = scope.constants[call.outputs[0]]
    if call.operator == "Transpose":
        axes = call.integers("perm")
        moved = WholeConstant(whole.steps.transpose(axes), whole.scale.transpose(axes))
    elif whole.scale.size == 1:
        scale = whole.scale.reshape((1,) * result.ndim)
        moved = WholeConstant(whole.steps.reshape(result.shape), scale)
    else:
        return
    scope.whole[call.outputs[0]] = moved


def dynamically_rounded(call: OnnxCall, scope: Scope) -> str:
    """The activation at the first input, on the grid of each sample if integers are kept."""
    name = scope.activation(call)
    if not scope.keeps_integers:
        return name
    if scope.batch != 1:
        raise RefusedError(
            f"quantizes all {scope.batch} samples by one range; export it for one sample"
        )
    made = scope.beside("rounded", Lowered((FakeQuantize(),), (name,)), call)
    scope.dynamic.add(made)
    return made


def is_dynamic(call: OnnxCall, scope: Scope) -> bool:
    """Whether the data decide the scale of the activation at the first input."""
    return scope.resolved(call.inputs[0]) in scope.dynamic


def in_whole_numbers(rule: Rule) -> Rule:
    """The rule of a layer, whose weights stay whole if the network keeps the file's integers."""

    def taken(call: OnnxCall, scope: Scope) -> Lowered:
        lowered = _in_whole_numbers(rule, call, scope) if scope.keeps_integers else None
        return rule(call, scope) if lowered is None else lowered

    return taken


def with_sums(
    lowered: Lowered,
    *,
    step: float | None,
    bias: NDArray[np.int32] | None = None,
    scale: FloatArray | None = None,
) -> Lowered:
    """The layer or product among these operators, with the scale of its sums behind it."""
    at, channels = _layer_among(lowered)
    sums = ScaleSums(
        bias=np.zeros(channels, np.int32) if bias is None else bias,
        scale=np.ones(channels, np.float32) if scale is None else scale,
        step=step,
    )
    chain = lowered.chain
    return replace(lowered, chain=(*chain[: at + 1], sums, *chain[at + 1 :]))


def _layer_among(lowered: Lowered) -> tuple[int, int]:
    """Where the layer or the product is among the operators, and how many channels it makes."""
    for at, op in enumerate(lowered.chain):
        if isinstance(op, Layer):
            return at, len(op.weight)
        if isinstance(op, MatMul):
            return at, 1
    raise ValueError("makes no sums")


def _in_whole_numbers(rule: Rule, call: OnnxCall, scope: Scope) -> Lowered | None:
    """The layer with whole weights; None where something in it is not."""
    name, whole = scope.resolved(call.inputs[0]), scope.whole.get(call.inputs[1])
    grid = scope.rounded.get(name)
    dynamic = name in scope.dynamic
    if whole is None or (grid is None and not dynamic):
        return None
    weight = noted(call, scope, "whole", whole.steps.astype(np.float32))
    meant = replace(call, inputs=(name, weight), attrs={**call.attrs, "alpha": 1.0})
    lowered = rule(meant, scope)
    _, channels = _layer_among(lowered)
    step = 1.0 if dynamic or grid is None else grid.scale
    factor = np.float32(call.number("alpha", 1.0)) * np.float32(step)
    scale = _per_channel(factor * whole.scale, whole.steps.shape, _axis(call), channels)
    if scale is None:
        return None
    step_of_x = None if dynamic else step
    if not call.has_input(2):
        return with_sums(lowered, step=step_of_x, scale=scale)
    steps = _whole_bias(call, scope, scale)
    if steps is not None:
        return with_sums(lowered, step=step_of_x, bias=steps, scale=scale)
    reals = _real_bias(call, scope, channels)
    if reals is None:
        return None
    scaled = with_sums(lowered, step=step_of_x, scale=scale)
    at, _ = _layer_among(scaled)
    added = Affine(weight=np.ones_like(scale), bias=reals)
    return replace(scaled, chain=(*scaled.chain[: at + 2], added, *scaled.chain[at + 2 :]))


def _axis(call: OnnxCall) -> int:
    """Along which axis of the weights their scales may differ."""
    if call.operator in ("Conv", "QLinearConv"):
        return 0
    if call.operator in ("Gemm", "QGemm"):
        return 0 if call.integer("transB", 0) else 1
    return 1 if call.operator == "ConvTranspose" else -1


def _per_channel(
    scale: FloatArray, shape: tuple[int, ...], axis: int, channels: int
) -> FloatArray | None:
    """A scale for every channel of the result; None where they differ within one."""
    if scale.size not in (1, shape[axis]) or scale.shape[axis] != scale.size:
        return None
    return np.tile(scale.reshape(-1), channels // scale.size).astype(np.float32)


def _whole_bias(call: OnnxCall, scope: Scope, scale: FloatArray) -> NDArray[np.int32] | None:
    """The bias in steps of the sums, if it is stored so."""
    whole = scope.whole.get(call.inputs[2])
    if whole is None or whole.steps.size not in (1, len(scale)) or is_dynamic(call, scope):
        return None
    off = np.abs(whole.scale.reshape(-1).astype(np.float64) / scale - 1)
    if call.number("beta", 1.0) != 1 or (off > _SAME_SCALE).any():
        return None
    return np.zeros(len(scale), np.int32) + whole.steps.reshape(-1).astype(np.int32)


def _real_bias(call: OnnxCall, scope: Scope, channels: int) -> FloatArray | None:
    """The bias, if it is one number for each channel."""
    values = scope.constants.get(call.inputs[2])
    if values is None or values.size not in (1, channels):
        return None
    reals = values.reshape(-1).astype(np.float32) * np.float32(call.number("beta", 1.0))
    return np.zeros(channels, np.float32) + reals
