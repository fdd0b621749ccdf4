"""Operators between integers and sums of 32 bits: dynamic quantization, integer layers, casts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import onnx

from driver.network.frontend.call import Array, Lowered, OnnxCall, RefusedError, Rule, Scope
from driver.network.frontend.integers.grids import grid_at, noted, read_as
from driver.network.frontend.integers.plain_integers import truncated, wrapped
from driver.network.frontend.integers.whole_weights import (
    dynamically_rounded,
    is_dynamic,
    with_sums,
)
from driver.network.frontend.operators import arithmetic, matrices, windows
from driver.network.frontend.operators.comparisons import truth
from driver.network.graph.grid import BOUNDS, Grid


def dynamic_quantize_linear(call: OnnxCall, scope: Scope) -> Lowered:
    """DynamicQuantizeLinear: the reals themselves, in units of a scale that is taken as 1.

    Their range is calibrated as any other, so the scale becomes static; where the network keeps the
    file's integers, the scale is that of each sample.
    """
    scope.grids[call.outputs[0]] = Grid(1.0, 0, "uint8")
    origin = call.outputs[:1]
    for name, value in zip(call.outputs[1:], (np.float32(1), np.uint8(0)), strict=False):
        scope.constants[name] = np.asarray(value)
        scope.units[name] = origin
    return Lowered((), (dynamically_rounded(call, scope),))


def conv_integer(call: OnnxCall, scope: Scope) -> Lowered:
    """ConvInteger(x, w[, zero points]): the reals of x with whole numbers as weights."""
    x, grid = _operand(call, scope, 0)
    weight = noted(call, scope, "weight", _whole_weights(call, scope, axis=0))
    return _summed(call, scope, windows.conv, (x, weight), grid.scale)


def matmul_integer(call: OnnxCall, scope: Scope) -> Lowered:
    """MatMulInteger(a, b[, zero points]); b may be a constant."""
    a, grid = _operand(call, scope, 0)
    if scope.is_constant(call.inputs[1]):
        b, scale = noted(call, scope, "weight", _whole_weights(call, scope, axis=-1)), 1.0
    else:
        b, of_b = _operand(call, scope, 1)
        scale = of_b.scale
    return _summed(call, scope, matrices.matmul, (a, b), grid.scale * scale)


def cast(call: OnnxCall, scope: Scope) -> Lowered:
    """Cast of integers and reals to one another, and to truth values."""
    grid = scope.grids.get(call.inputs[0])
    number = call.integer("to", 0)
    wanted = str(onnx.TensorProto.DataType.Name(number)).lower() if number else ""
    has_scale = bool(scope.units.get(call.inputs[0]))
    if wanted in BOUNDS and not has_scale and (grid is None or grid.is_whole):
        return _to_whole(call, scope, grid, wanted)
    if grid is None:
        return arithmetic.cast(call, scope)
    lowest, highest = BOUNDS[grid.dtype]
    if wanted in BOUNDS:
        if not BOUNDS[wanted][0] <= lowest <= highest <= BOUNDS[wanted][1]:
            raise RefusedError(f"casts {grid.dtype} to {wanted}, which lacks some of its values")
        scope.grids[call.outputs[0]] = replace(grid, dtype=wanted)
        return Lowered((), (scope.activation(call),))
    if wanted not in ("float", "float16", "bfloat16", "double"):
        raise RefusedError(f"casts {grid.dtype} to {wanted}")
    return Lowered((), (read_as(call, scope, 0, Grid(1.0, 0, grid.dtype)),))


def _to_whole(call: OnnxCall, scope: Scope, before: Grid | None, wanted: str) -> Lowered:
    """Cast to an integer type: of reals without their fraction, of integers within the type."""
    name = scope.activation(call)
    if before is not None and before.dtype == wanted:
        scope.grids[call.outputs[0]] = before
        return Lowered((), (name,))
    scope.grids[call.outputs[0]] = Grid(1.0, 0, wanted)
    if wanted == "bool":
        return truth(call, scope)
    if before is None:
        return Lowered(truncated(wanted), (name,))
    (lowest, highest), (least, most) = BOUNDS[before.dtype], BOUNDS[wanted]
    fits = least <= lowest <= highest <= most
    return Lowered(() if fits else wrapped(wanted, may_be_negative=False), (name,))


def _operand(call: OnnxCall, scope: Scope, index: int) -> tuple[str, Grid]:
    """The reals behind the integers at that input, and their grid with the zero point given."""
    grid = grid_at(call, scope, index)
    zero = scope.constant(call, index + 2, "zero point") if call.has_input(index + 2) else None
    if zero is not None and zero.size != 1:
        raise RefusedError(f"zero point {list(zero.shape)} of an activation is not one number")
    grid = replace(grid, zero=0 if zero is None else int(zero.reshape(-1)[0]))
    return read_as(call, scope, index, grid), grid


def _whole_weights(call: OnnxCall, scope: Scope, axis: int) -> Array:
    """The constant second input less its zero point, of which there may be one along an axis."""
    values = scope.constant(call, 1, "weight")
    if values.dtype.name not in BOUNDS:
        raise RefusedError(f"weight {call.inputs[1]!r} is {values.dtype}, not integers")
    if not call.has_input(3):
        return values.astype(np.float32)
    zero = scope.constant(call, 3, "zero point")
    if zero.size != 1:
        if zero.shape != values.shape[axis:][:1]:
            raise RefusedError(
                f"zero points {list(zero.shape)} do not fit weight {list(values.shape)}"
            )
        zero = zero.reshape(-1, *(1,) * (values.ndim - 1)) if axis == 0 else zero
    return np.asarray(values.astype(np.int64) - zero.astype(np.int64), np.float32)


def _summed(
    call: OnnxCall,
    scope: Scope,
    rule: Rule,
    inputs: tuple[str, str],
    scale: float,
) -> Lowered:
    """A layer on reals, whose results stand for sums of 32 bits in steps of `scale`."""
    lowered = rule(replace(call, inputs=inputs), scope)
    if scope.keeps_integers:
        lowered, scale = with_sums(lowered, step=None if is_dynamic(call, scope) else scale), 1.0
    scope.grids[call.outputs[0]] = Grid(scale, 0, "int32")
    return lowered


RULES: Final[Mapping[str, Rule]] = {
    "Cast": cast,
    "ConvInteger": conv_integer,
    "DynamicQuantizeLinear": dynamic_quantize_linear,
    "MatMulInteger": matmul_integer,
}
"""What each operator of this kind becomes."""
