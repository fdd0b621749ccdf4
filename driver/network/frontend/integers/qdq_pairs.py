"""QuantizeLinear and DequantizeLinear of activations: the float network behind, and its ranges.

    x -> QuantizeLinear -> DequantizeLinear -> Conv   becomes   clip(x, lo, hi) -> Conv

where lo and hi are the ends of the pair's grid and the range of the clipped tensor is given instead
of calibrated. Quantizers leave a ReLU out where the grid begins at zero, so the clip is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from driver.network.frontend.call import Array, Lowered, OnnxCall, RefusedError, Rule, Scope
from driver.network.frontend.integers.grids import give_range, grid_at, noted, read_as
from driver.network.frontend.integers.stored import QuantizationParameters, positive, steps_of
from driver.network.frontend.operators import binary
from driver.network.graph import ir
from driver.network.graph.grid import Grid
from driver.network.graph.ir import FloatArray, Shape


def quantize_linear(call: OnnxCall, scope: Scope) -> Lowered:
    """QuantizeLinear: a clip to the ends of the grid, whose range is given.

    Where scales differ within the tensor, what is made stands for whole numbers.
    """
    name = scope.activation(call)
    steps = _steps(call, scope, scope.shapes[name])
    if (grid := steps.grid) is not None:
        return on_grid(call, scope, grid, name)
    counted = _changed(call, scope, name, "Mul", 1 / steps.scale)
    counted = _changed(call, scope, scope.beside("steps", counted, call), "Add", steps.zero)
    clip = clip_onto(call.outputs[0], scope, Grid(1.0, 0, steps.dtype))
    return Lowered((*counted.chain, clip), counted.operands, counted.shape)


def dequantize_linear(call: OnnxCall, scope: Scope) -> Lowered:
    """DequantizeLinear: another name for the reals, if they were made on the same grid."""
    before = grid_at(call, scope)
    steps = _steps(call, scope, scope.shapes[scope.activation(call)], before.dtype)
    if (grid := steps.grid) is not None:
        return Lowered((), (read_as(call, scope, 0, grid),))
    counted = read_as(call, scope, 0, Grid(1.0, 0, before.dtype))
    counted = scope.beside("steps", _changed(call, scope, counted, "Sub", steps.zero), call)
    return _changed(call, scope, counted, "Mul", steps.scale)


def on_grid(call: OnnxCall, scope: Scope, grid: Grid, name: str) -> Lowered:
    """The activation `name` brought to a grid; the same one again is the same tensor."""
    result = call.outputs[0]
    scope.grids[result] = grid
    made = scope.pairs.get((name, grid))
    if made is not None:
        return Lowered((), (made,))
    if scope.keeps_integers:
        scope.pairs[name, grid] = result
        return Lowered((clip_onto(result, scope, grid),), (name,))
    if _is_within(name, scope, grid):
        give_range(scope, name, grid)
        scope.pairs[name, grid] = name
        return Lowered((), (name,))
    scope.pairs[name, grid] = result
    return Lowered((clip_onto(result, scope, grid),), (name,))


def clip_onto(result: str, scope: Scope, grid: Grid) -> ir.Clip | ir.FakeQuantize:
    """What brings values into a grid, and the note that the tensor `result` holds them.

    Where the network keeps the file's integers it is rounding too.
    """
    scope.grids[result] = grid
    scope.pairs[result, grid] = result
    give_range(scope, result, grid)
    if scope.keeps_integers:
        scope.rounded[result] = grid
        return ir.FakeQuantize(grid=grid)
    return ir.Clip(lo=grid.lo, hi=grid.hi)


def grid_of(call: OnnxCall, scope: Scope, index: int, dtype: str | None = None) -> Grid:
    """The grid whose scale is that input, and whose zero point is the next.

    Args:
        dtype: of the integers, where they are there already.

    Raises:
        RefusedError: it is not of one positive scale and of integers.
    """
    zero = scope.constant(call, index + 1, "zero point") if call.has_input(index + 1) else None
    meant = replace(call, inputs=("", *call.inputs[index : index + 1]), attrs={})
    scale = scope.weights(call, index, "scale")
    grid = steps_of(meant, scale, zero, (scale.size,), dtype).grid if scale.size == 1 else None
    if grid is None:
        raise RefusedError(
            f"scale {list(scale.shape)} of an activation; only one for the whole tensor"
        )
    return grid


def positive_scale(call: OnnxCall, scope: Scope, index: int) -> FloatArray:
    """The constant scales at that input, none of them zero, negative or NaN."""
    return positive(scope.weights(call, index, "scale"), repr(call.inputs[index]))


def _steps(
    call: OnnxCall, scope: Scope, shape: Shape, dtype: str | None = None
) -> QuantizationParameters:
    """The steps of an activation of `shape`; of the type `dtype`, if there are integers already."""
    zero = scope.constant(call, 2, "zero point") if call.has_input(2) else None
    return steps_of(call, scope.weights(call, 1, "scale"), zero, shape, dtype)


def _changed(call: OnnxCall, scope: Scope, name: str, operator: str, values: Array) -> Lowered:
    """An activation plus, minus or times a constant."""
    rules = {"Add": binary.add, "Sub": binary.subtract, "Mul": binary.multiply}
    constant = noted(call, scope, operator, np.asarray(values, np.float32))
    return rules[operator](replace(call, inputs=(name, constant)), scope)


def _is_within(name: str, scope: Scope, grid: Grid) -> bool:
    """Whether a tensor has no values beyond a grid's ends: it was clipped to them before.

    An input of the network is taken as the file describes it.
    """
    if scope.pairs.get((name, grid)) == name:
        return True
    maker = scope.maker(name)
    if maker is None:
        return True
    if isinstance(maker.op, ir.Softmax):
        return not maker.op.log
    moves = isinstance(maker.op, ir.Concat | ir.Gather | ir.MaxPool2d | ir.Reshape | ir.Slice)
    return moves and all(_is_within(source, scope, grid) for source in maker.inputs)


RULES: Final[Mapping[str, Rule]] = {
    "DequantizeLinear": dequantize_linear,
    "QuantizeLinear": quantize_linear,
}
"""What each operator of this kind becomes."""
