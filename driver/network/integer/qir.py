"""The integer network: operators with integer parameters over int8 tensors with scales.

An int8 tensor q with scale s stands for the reals q * s. Every operator here has the meaning of its
namesake in `tilefarm.workload.OPERATORS`, on logical tensors [N, C, ...] instead of blocked ones.
`>>` is arithmetic, and rounding is already inside the biases of convolution, dense and affine.
Where these have a `factor` [Co], their sums with the bias are multiplied by it before the shift;
they are quantized so that no product leaves int32, whatever the input. Weights of int16 are high *
256 + low with two int8 in the network that runs; such a layer has no factor, and neither is there a
convolution in groups with such weights. Between convolutions and dense layers tensors may be of
int16 too: those that are clipped at bounds beyond int8 (`result_type`).

That is for machines that shift sums. For those that multiply in float32 a network has the operators
of `integer.qlinear` instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType

from driver.network.graph.ir import (
    FloatArray,
    GraphInput,
    GraphOutput,
    IndexArray,
    Operator,
    Shape,
    Window,
)
from driver.network.integer.qlinear import QLinearOperator

Int8Array: TypeAlias = NDArray[np.int8]
Int16Array: TypeAlias = NDArray[np.int16]
Int32Array: TypeAlias = NDArray[np.int32]

WeightArray: TypeAlias = Int8Array | Int16Array
LayerArray: TypeAlias = Int8Array | Int16Array
"""What a convolution or a dense layer reads and makes."""

INT8_MIN, INT8_MAX = -128, 127
MAX_WIDE: Final = 256 * INT8_MAX + INT8_MAX
"""The largest magnitude of a number of 16 bits: neither its high nor its low part leaves int8."""


def result_type(lo: int, hi: int) -> DType:
    """The type of what a layer clips to lo..hi: int8 if that holds it, else int16."""
    return DType.INT8 if lo >= INT8_MIN and hi <= INT8_MAX else DType.INT16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QConv2d:
    """clip((conv(x, weight [Co, Ci/groups, Kh, Kw]) + bias [Co]) >> shift [Co], lo, hi)"""

    weight: WeightArray
    bias: Int32Array
    shift: Int32Array
    window: Window
    groups: int = 1
    lo: int = INT8_MIN
    hi: int = INT8_MAX
    factor: Int32Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QConvTranspose2d:
    """A convolution of stride 1 for each phase, weight [Co, Sh, Sw, Ci, Kh, Kw].

    out[Sh*y + p, Sw*x + q] = clip((conv(x, weight[:, p, q]) + bias [Co]) >> shift [Co], lo, hi)
    """

    weight: Int8Array
    bias: Int32Array
    shift: Int32Array
    pad: tuple[int, int, int, int]
    lo: int = INT8_MIN
    hi: int = INT8_MAX
    factor: Int32Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QDense:
    """clip((x [N, Ci] @ weight [Co, Ci] transposed + bias [Co]) >> shift [Co], lo, hi)"""

    weight: WeightArray
    bias: Int32Array
    shift: Int32Array
    lo: int = INT8_MIN
    hi: int = INT8_MAX
    factor: Int32Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QMatMul:
    """clip((sum over k of a[n, g*K + k, i] * b[n, g*K + k, j] + round) >> shift, -128, 127)

    a [N, G*K, I] and b [N, G*K, J] make [N, G*I, J], channel g*I + i; round is 1 << (shift-1), or 0
    for shift 0.
    """

    groups: int
    shift: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QAdd:
    """clip((a * mul_a + b * mul_b + round) >> shift, lo, hi); |multipliers| are within 1..127"""

    mul_a: int
    mul_b: int
    shift: int
    lo: int = INT8_MIN
    hi: int = INT8_MAX


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QAffine:
    """clip((x * weight [C] + bias [C]) >> shift [C], lo, hi); |weight| is at most 127"""

    weight: Int32Array
    bias: Int32Array
    shift: Int32Array
    lo: int = INT8_MIN
    hi: int = INT8_MAX
    factor: Int32Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QRescale:
    """clip((x * mul + round) >> shift, -128, 127): the same values at another scale"""

    mul: int
    shift: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QLookup:
    """table[x + 128]; `table` is [256], or [C, 256] with a row for each channel"""

    table: Int8Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QProduct:
    """clip((a * table[b + 128] + round) >> shift, -128, 127); |table| is at most 2^23"""

    table: Int32Array
    shift: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QGather:
    """Elements of each sample by row-major places in it, as `index` [...] says; -1 is `fill`"""

    index: IndexArray
    fill: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QMaxPool2d:
    """The largest element under the window; padding is the least of the type."""

    window: Window


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QAvgPool2d:
    """clip((sum under the window * mul [OH, OW] + round) >> shift, lo, hi); padding is 0"""

    window: Window
    mul: Int32Array
    shift: int
    lo: int = INT8_MIN
    hi: int = INT8_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class QConcat:
    """Tensors of one scale next to one another along the channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QSlice:
    """Channels `start` up to, not including, `stop`."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QReshape:
    """The same elements in row-major order, int8 or float32; `shape` is without the batch axis."""

    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QSoftmax:
    """int8 [N, C] -> float32: table[max - x] / sum of these, table[k] = float32(exp(-k * scale))"""

    table: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantize:
    """float32 -> int8: clip(round_half_even(x * inv_scale + offset), -128, 127)"""

    inv_scale: float
    offset: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dequantize:
    """int8 -> float32: float32(x) * scale + offset"""

    scale: float
    offset: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Real:
    """A float operator itself: float32 -> float32, as the calls of `real_calls` compute it.

    `why` says why it is not in integers.
    """

    op: Operator
    why: str


QuantOperator: TypeAlias = (
    QConv2d
    | QConvTranspose2d
    | QDense
    | QMatMul
    | QAdd
    | QAffine
    | QRescale
    | QLookup
    | QProduct
    | QGather
    | QMaxPool2d
    | QAvgPool2d
    | QConcat
    | QSlice
    | QReshape
    | QSoftmax
    | Quantize
    | Dequantize
    | Real
    | QLinearOperator
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantNode:
    """One integer operator between named tensors."""

    name: str
    op: QuantOperator
    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantTensor:
    """Logical shape and element type; `scale` is the real value of 1, None for float32.

    `middle` is what the file's tensor has more than this one: the real value of 0. `largest` is the
    largest magnitude of an element: sums of layers that read it stay within int32 up to there. In
    ONNX's own arithmetic the integer `zero` stands for 0.
    """

    shape: Shape
    dtype: DType
    scale: float | None = None
    middle: float = 0.0
    largest: int = -INT8_MIN
    zero: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantGraph:
    """An integer network from float32 inputs to float32 outputs."""

    name: str
    inputs: tuple[GraphInput, ...]
    outputs: tuple[GraphOutput, ...]
    nodes: tuple[QuantNode, ...]
    tensors: Mapping[str, QuantTensor] = field(repr=False)

    @property
    def batch(self) -> int:
        """Samples that one run of the network takes."""
        return self.inputs[0].shape[0]

    @property
    def is_in_onnx_arithmetic(self) -> bool:
        """Whether it has operators of `integer.qlinear`, which processors alone compute."""
        return any(isinstance(node.op, QLinearOperator) for node in self.nodes)
