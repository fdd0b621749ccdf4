"""Right answers of the operators in ONNX's own arithmetic, bit for bit."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType

from driver.network.graph.columns import (
    correlate_groups,
    correlate_phases,
    multiplied,
    padded,
    pooled,
)
from driver.network.graph.float_run import apply
from driver.network.graph.grid import (
    BOUNDS,
    Grid,
    by_sample,
    own_grid,
    steps_on_grids,
    whole_within,
)
from driver.network.graph.ir import FloatArray
from driver.network.integer.arithmetic import exact, wrapped
from driver.network.integer.qlinear import (
    DequantizeLinear,
    DynamicGrid,
    DynamicLayer,
    DynamicQuantizeLinear,
    QLinearAvgPool2d,
    QLinearBinary,
    QLinearConv2d,
    QLinearConvTranspose2d,
    QLinearDense,
    QLinearFused,
    QLinearLayer,
    QLinearLookup,
    QLinearMatMul,
    QLinearOperator,
    QuantizeLinear,
    Requantization,
)

Array: TypeAlias = NDArray[Any]

_LARGEST: Final = 255
"""The largest magnitude of 8 bits less a zero point of 8 bits."""


def apply_qlinear(op: QLinearOperator, *operands: Array) -> Array:
    """The result of one operator on logical tensors [N, C, ...]."""
    x = operands[0]
    match op:
        case QLinearConv2d() | QLinearConvTranspose2d() | QLinearDense():
            sums = _layer_sums(op, _centered(x, op.x_zero))
            return requantized(sums, _by_channel(op.to.scale, sums), op.to)
        case DynamicGrid():
            return own_grid(x)
        case DynamicQuantizeLinear(pad=pad):
            return dynamically_quantized(x, operands[1], pad)
        case DynamicLayer(layer=layer):
            scale, zero = by_sample(operands[1], x.ndim)
            sums = _layer_sums(layer, x.astype(np.int16) - zero.astype(np.int16))
            with np.errstate(all="ignore"):
                scales = scale * _by_channel(layer.to.scale, sums)
                return requantized(sums, scales, layer.to)
        case QLinearMatMul(groups=groups):
            a, b = _centered(x, op.a_zero), _centered(operands[1], op.b_zero)
            # no sum of that many products leaves 2^53
            product = multiplied(a.astype(np.float64), b.astype(np.float64), groups)
            return requantized(wrapped(product), op.to.scale, op.to)
        case QLinearAvgPool2d(window=window):
            steps = padded(_centered(x, op.x_zero), window).astype(np.int32)
            return requantized(pooled(steps, window, np.add), op.to.scale, op.to)
        case QLinearBinary():
            with np.errstate(all="ignore"):
                reals = apply(op.op, op.a.reals(x), op.b.reals(operands[1]))
            return np.clip(quantized(reals, op.to), op.lo, op.hi)
        case QLinearFused(layer=layer, binary=binary):
            return apply_qlinear(binary, apply_qlinear(layer, x), operands[1])
        case QLinearLookup(table=table):
            return _looked_up(x, table)
        case QuantizeLinear(grid=grid):
            return quantized(x, grid)
        case DequantizeLinear(grid=grid):
            return grid.reals(x)


def requantized(sums: NDArray[np.int32], scale: FloatArray, to: Requantization) -> Array:
    """Sums in the type of the result; `scale` broadcasts over them. Reals may leave float32."""
    with np.errstate(all="ignore"):
        reals = sums.astype(np.float32) * scale
        if to.addend is not None:
            reals += _by_channel(to.addend, sums)
    if to.dtype is DType.FLOAT32:
        return reals
    return _rounded(reals, to.zero, to.lo, to.hi).astype(to.dtype.value)


def quantized(x: FloatArray, grid: Grid) -> Array:
    """QuantizeLinear of ONNX; the least integer for NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.asarray(x, np.float32) / np.float32(grid.scale)
        return _rounded(steps, grid.zero, *BOUNDS[grid.dtype]).astype(grid.held)


def dynamically_quantized(x: FloatArray, grids: FloatArray, pad: tuple[int, ...] = ()) -> Array:
    """DynamicQuantizeLinear of ONNX on grids that are known; around an image are zero points."""
    steps = steps_on_grids(x, grids)
    if any(pad):
        top, left, bottom, right = pad
        steps = np.pad(steps, ((0, 0), (0, 0), (top, bottom), (left, right)))
    return (steps + by_sample(grids, x.ndim)[1].astype(np.int16)).astype(np.uint8)


def _rounded(steps: FloatArray, zero: int, lo: int, hi: int) -> Array:
    """Whole numbers, half to even, plus zero, within lo..hi; lo for NaN."""
    with np.errstate(invalid="ignore"):
        within = whole_within(steps, np.float32(lo - zero), np.float32(hi - zero))
    return within + np.float32(zero)


def _layer_sums(layer: QLinearLayer, x: NDArray[np.int16]) -> NDArray[np.int32]:
    """int32 [N, Co, ...]: sums and biases, of operands that are already less their zero point."""
    lanes = (-1, *(1,) * (layer.weight.ndim - 1))
    weight = layer.weight.astype(np.int16) - layer.weight_zero.reshape(lanes).astype(np.int16)
    kernel = exact(weight, _LARGEST)
    match layer:
        case QLinearConv2d(window=window, groups=groups):
            total = correlate_groups(x, kernel, window, groups)
        case QLinearConvTranspose2d(pad=pad):
            total = correlate_phases(x, kernel, pad)
        case QLinearDense():
            total = x.astype(kernel.dtype) @ kernel.T
    sums = wrapped(total)
    sums += _by_channel(layer.bias, sums)
    return sums


def _centered(x: Array, zero: int) -> NDArray[np.int16]:
    return x.astype(np.int16) - np.int16(zero)


def _by_channel(values: Array, sums: Array) -> Array:
    """Values [C] as they meet sums [N, C, ...]."""
    return values.reshape(-1, *(1,) * (sums.ndim - 2))


def _looked_up(x: Array, table: Array) -> Array:
    entry = x.astype(np.int64) - int(np.iinfo(x.dtype).min)
    if table.ndim == 1:
        return np.asarray(table[entry])
    rows = np.arange(x.shape[1]).reshape(-1, *(1,) * (x.ndim - 2))
    return np.asarray(table[rows, entry])
