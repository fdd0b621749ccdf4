"""Operators on quantized values: the float operator behind each, between grids.

    q = QLinearConv(x, .., w, .., y's grid, b)   becomes   clip(Conv(x, weight, bias), lo, hi)

Domain `com.microsoft` has further ones, see `frontend.operators.microsoft`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from driver.network.frontend.call import (
    Lowered,
    OnnxCall,
    RefusedError,
    Rule,
    Scope,
    WholeConstant,
)
from driver.network.frontend.integers import qdq_pairs as quantized
from driver.network.frontend.integers.grids import grid_at, noted, read_as
from driver.network.frontend.integers.stored import dequantized
from driver.network.frontend.integers.whole_weights import in_whole_numbers, note_whole
from driver.network.frontend.operators import matrices, windows

_CONV_BIAS: Final = 8


def conv(call: OnnxCall, scope: Scope) -> Lowered:
    """QLinearConv(x, scale, zero, w, scale, zero, scale, zero[, b])."""
    if call.integer("channels_last", 0):
        raise RefusedError("channels_last is not supported")
    check_parameters(call, scope, (1, 4, 6))
    x = operand(call, scope, 0)
    weight = weights(call, scope, 3, axis=0)
    rule = in_whole_numbers(windows.conv)
    return between_grids(call, scope, rule, [x, weight, *bias(call, scope, _CONV_BIAS)], 6)


def matmul(call: OnnxCall, scope: Scope) -> Lowered:
    """QLinearMatMul(a, scale, zero, b, scale, zero, scale, zero)."""
    check_parameters(call, scope, (1, 4, 6))
    factors = [operand(call, scope, 0), operand(call, scope, 3, axis=-1)]
    return between_grids(call, scope, in_whole_numbers(matrices.matmul), factors, 6)


def check_parameters(call: OnnxCall, scope: Scope, indices: Sequence[int]) -> None:
    """Refuses scales at these inputs, each before its zero point, with every reason at once.

    Raises:
        RefusedError: one is missing, not a constant, or no number that is positive and finite.
    """
    reasons = []
    for index in indices:
        try:
            quantized.positive_scale(call, scope, index)
            if call.has_input(index + 1):
                scope.constant(call, index + 1, "zero point")
        except RefusedError as reason:
            reasons.append(str(reason))
    if reasons:
        raise RefusedError("; ".join(reasons))


def between_grids(
    call: OnnxCall,
    scope: Scope,
    rule: Rule,
    inputs: Sequence[str],
    grid_index: int,
) -> Lowered:
    """The float operator on `inputs`, clipped to the grid whose scale is input `grid_index`."""
    grid = quantized.grid_of(call, scope, grid_index)
    lowered = rule(replace(call, inputs=tuple(inputs)), scope)
    clip = quantized.clip_onto(call.outputs[0], scope, grid)
    return replace(lowered, chain=(*lowered.chain, clip))


def operand(call: OnnxCall, scope: Scope, index: int, axis: int = 0) -> str:
    """A name for the reals at that input, whose scale and zero point follow it.

    Args:
        axis: of a constant, along which scales may differ.
    """
    if scope.is_constant(call.inputs[index]):
        return weights(call, scope, index, axis)
    dtype = grid_at(call, scope, index).dtype
    return read_as(call, scope, index, quantized.grid_of(call, scope, index + 1, dtype))


def weights(call: OnnxCall, scope: Scope, index: int, axis: int) -> str:
    """A name for the reals of the constant at that input, whose scale and zero point follow it."""
    axis = axis if scope.constant(call, index + 1, "scale").size > 1 else 0
    operands = [scope.constant(call, index, "weight"), scope.constant(call, index + 1, "scale")]
    if call.has_input(index + 2):
        operands.append(scope.constant(call, index + 2, "zero point"))
    names = call.inputs[index : index + 3]
    meant = replace(call, operator="DequantizeLinear", inputs=names, attrs={"axis": axis})
    made = noted(call, scope, f"constant{index}", dequantized(meant, operands))
    note_whole(made, meant, operands, scope)
    return made


def bias(call: OnnxCall, scope: Scope, index: int) -> list[str]:
    """A name for the reals of an int32 bias, whose scale is that of the sums; or nothing.

    The scales of what is summed are inputs 1 and 4.
    """
    if not call.has_input(index):
        return []
    steps = scope.constant(call, index, "bias")
    if steps.dtype != np.int32:
        raise RefusedError(f"bias {call.inputs[index]!r} is {steps.dtype}, not int32")
    scale = quantized.positive_scale(call, scope, 1) * quantized.positive_scale(call, scope, 4)
    alpha = call.number("alpha", 1.0)
    reals = np.asarray(steps * scale.reshape(-1) * alpha, np.float32)
    made = noted(call, scope, "bias", reals)
    scope.whole[made] = WholeConstant(steps.astype(np.int64), scale.reshape(-1) * np.float32(alpha))
    return [made]


RULES: Final[Mapping[str, Rule]] = {
    "QLinearConv": conv,
    "QLinearMatMul": matmul,
}
"""What each of ONNX's own operators on quantized values becomes."""
