"""Operators of the integer network in ONNX's own arithmetic, for targets that compute in float32.

A tensor q of int8 or uint8 with scale s and zero point z stands for the reals (q - z) * s. Sums are
exact in int32, and become 8 bits by `Requantization`. That is what QLinearConv and QLinearMatMul
are by ONNX's definition. A float convolution between DequantizeLinear and QuantizeLinear has the
same definition here: ONNX leaves the order of its float32 sums open, and integers have none.

Every other operator between these two is just that: both of them and the float32 operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType

from driver.network.graph.grid import Grid
from driver.network.graph.ir import Add, FloatArray, Product, Window

UInt8Array: TypeAlias = NDArray[np.uint8]
ByteArray: TypeAlias = NDArray[np.int8] | UInt8Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requantization:
    """clip(round_half_even(float32(sum) * scale + addend) + zero, lo, hi) as `dtype`.

    The sum, the product and what is added to it are each rounded to float32 by themselves; if
    `dtype` is float32, that is the result. `scale` is [1] or one for every channel, and so is
    `addend`, which biases are that the file has in float32.
    """

    scale: FloatArray
    addend: FloatArray | None = None
    dtype: DType = DType.FLOAT32
    zero: int = 0
    lo: int = 0
    hi: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QLinearConv2d:
    """Sums of (x - x_zero) * (weight [Co, Ci/groups, Kh, Kw] - weight_zero [Co]), plus bias [Co].

    Padding is x_zero.
    """

    weight: ByteArray
    weight_zero: NDArray[np.int32]
    bias: NDArray[np.int32]
    x_zero: int
    window: Window
    groups: int
    to: Requantization


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QLinearConvTranspose2d:
    """The sums of `graph.ir.ConvTranspose2d`, weight [Co, Sh, Sw, Ci, Kh, Kw], in integers."""

    weight: ByteArray
    weight_zero: NDArray[np.int32]
    bias: NDArray[np.int32]
    x_zero: int
    pad: tuple[int, int, int, int]
    to: Requantization


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QLinearDense:
    """Sums of (x [N, Ci] - x_zero) * (weight [Co, Ci] - weight_zero [Co]), plus bias [Co]."""

    weight: ByteArray
    weight_zero: NDArray[np.int32]
    bias: NDArray[np.int32]
    x_zero: int
    to: Requantization


QLinearLayer: TypeAlias = QLinearConv2d | QLinearConvTranspose2d | QLinearDense


@dataclass(frozen=True, slots=True)
class DynamicGrid:
    """float32 [N, ...] -> float32 [N, 2]: scale and zero point of each sample.

    They are what ONNX's DynamicQuantizeLinear makes of it, of uint8: see `graph.grid.own_grid`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicQuantizeLinear:
    """float32 [N, C, ...] and grids [N, 2] -> uint8: QuantizeLinear, each sample by its own grid.

    `pad` (top, left, bottom, right) is around an image then, and has the zero point.
    """

    pad: tuple[int, int, int, int] = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DynamicLayer:
    """The layer on uint8 data and grids [N, 2] that data decide; it pads nothing.

    A sample's scale times `layer.to.scale` is what its sums are multiplied by, in place of that,
    and its zero point is what `layer.x_zero` is elsewhere, which has no meaning here.
    """

    layer: QLinearConv2d | QLinearDense


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QLinearMatMul:
    """Sums over k of (a[n, g*K + k, i] - a_zero) * (b[n, g*K + k, j] - b_zero).

    a [N, G*K, I] and b [N, G*K, J] make [N, G*I, J], channel g*I + i.
    """

    groups: int
    a_zero: int
    b_zero: int
    to: Requantization


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QLinearAvgPool2d:
    """Sums of x - x_zero under the window, padding is x_zero; the scale is [OH, OW]."""

    window: Window
    x_zero: int
    to: Requantization


@dataclass(frozen=True, slots=True, kw_only=True)
class QLinearBinary:
    """The operator on the reals of both operands in float32, on the grid `to` within lo..hi."""

    op: Add | Product
    a: Grid
    b: Grid
    to: Grid
    lo: int
    hi: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QLinearFused:
    """`binary` of what `layer` makes of the first operand, of 8 bits, and the second operand."""

    layer: QLinearLayer
    binary: QLinearBinary


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QLinearLookup:
    """table[x - least], least that of the type of x; `table` is [256] or [C, 256].

    Its entries are of 8 bits, or float32.
    """

    table: ByteArray | FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeLinear:
    """float32 -> int8 or uint8: clip(round_half_even(x / scale) + zero); the least for NaN."""

    grid: Grid


@dataclass(frozen=True, slots=True, kw_only=True)
class DequantizeLinear:
    """int8 or uint8 -> float32: (x - zero) * scale."""

    grid: Grid


QLinearOperator: TypeAlias = (
    QLinearLayer
    | DynamicGrid
    | DynamicQuantizeLinear
    | DynamicLayer
    | QLinearMatMul
    | QLinearAvgPool2d
    | QLinearBinary
    | QLinearFused
    | QLinearLookup
    | QuantizeLinear
    | DequantizeLinear
)
