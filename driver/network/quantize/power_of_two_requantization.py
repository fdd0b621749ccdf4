"""Integer parameters whose requantization is exactly a shift: no multiplier behind the sums.

With input scale si and output scale so, the weight scale of channel c is (so / si) * 2^-s[c]. Then
sum * si * weight_scale / so = sum * 2^-s[c], so the result is `sum >> s[c]` for any si and so, on
hardware that can only shift. The largest s that keeps the weights within int8 costs at most one bit
of their range.

A shift that all channels of a block share is an immediate operand: one cycle less for every output
vector than one that is read from a register. It costs weights of the smaller channels their low
bits, so a layer has such shifts only if data say that no result shows it
(`quantize.refining`). Here every channel has its own, but for weights of 16 bits, which have
bits to spare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.ir import FloatArray
from driver.network.integer.qir import INT8_MAX, INT8_MIN, MAX_WIDE, Int32Array, WeightArray
from driver.network.quantize.weight_chunks import bands

MAX_SHIFT: Final = 30
MAX_MUL: Final = 127
ENOUGH_SHIFT: Final = 10
"""From here on the rounding of weights no longer shows in int8 results: bits that biases may have
instead."""
_PLANE_BITS: Final = 8
ACC_LIMIT: Final = 1 << 31
LARGEST_INPUT: Final = 128
_BEYOND: Final = 4.0
"""Of the largest result: more than any rounding away from both ends of it."""
_WORSE_BY: Final = 0.97
_SAME_POWER: Final = 1e-6
"""How much of a power of two a scale may miss and still be that power."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerParameters:
    """Weights, biases with their rounding, shifts and maybe factors, per output channel."""

    weight: WeightArray
    bias: Int32Array
    shift: Int32Array
    factor: Int32Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBits:
    """How weights are stored, and what that leaves to the other parameters of a layer.

    Attributes:
        dtype: of a weight.
        most: its largest magnitude.
        planes: of int8 that hold it; each has biases in tiles, in units of 256 in the high one.
        shares_shifts: whether the channels of a block always share a shift.
    """

    dtype: type[np.int8 | np.int16]
    most: int
    planes: int
    shares_shifts: bool

    @property
    def enough_shift(self) -> int:
        """ENOUGH_SHIFT, with steps finer by as much as the weights have more bits."""
        return ENOUGH_SHIFT + _PLANE_BITS * (self.planes - 1)

    def most_bias(self, block: int) -> int:
        """The largest bias that one tile a plane expresses."""
        return most_bias(block) << _PLANE_BITS * (self.planes - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestMagnitudes:
    """The largest magnitudes of what a layer reads and of what it makes; 128 in 8 bits."""

    operand: int = LARGEST_INPUT
    result: int = LARGEST_INPUT

    @property
    def is_wide(self) -> bool:
        """Whether one of the two has 16 bits."""
        return max(self.operand, self.result) > LARGEST_INPUT


INT8: Final = LargestMagnitudes()
BYTES: Final = WeightBits(dtype=np.int8, most=MAX_MUL, planes=1, shares_shifts=False)
WIDE: Final = WeightBits(dtype=np.int16, most=MAX_WIDE, planes=2, shares_shifts=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumParameters:
    """a * mul_a + b * mul_b, shifted, at the output scale that makes the larger gain exact."""

    mul_a: int
    mul_b: int
    shift: int
    out_scale: float


def least_out_scale(weight: FloatArray, in_scale: float, most: int = MAX_MUL) -> float:
    """The smallest output scale at which no weight is above `most` with a shift of 0."""
    largest = max(weight.max(initial=0.0), -weight.min(initial=0.0))
    return float(largest) * in_scale / most


def most_bias(block: int) -> int:
    """The largest bias that the products of one vector with a constant one express."""
    return MAX_MUL * MAX_MUL * (block - 1) + MAX_MUL // 2


def layer_parameters(
    weight: FloatArray,
    bias: FloatArray,
    *,
    in_scale: float,
    out_scale: float,
    block: int,
    max_shift: int = MAX_SHIFT,
    bits: WeightBits = BYTES,
    largest: LargestMagnitudes = INT8,
) -> LayerParameters:
    """Integer parameters of a layer; `weight` is [Co, ...], `bias` [Co] in real units.

    Every shift is the largest within 0..`max_shift` at which the weights fit, the sum of the worst
    input stays within int32, and (as long as it is above what is enough) the bias fits its tiles.
    A bias that saturates every result is the smallest that does. A limit of 15 instead of 30 costs
    weights their low bits where all of them together move the result by a few steps, which does not
    show.

    Raises:
        OverflowError: even without a shift the worst sum leaves int32.
    """
    rows = _Rows(weight.reshape(weight.shape[0], -1), in_scale / out_scale, block)
    offset = bias.astype(np.float64) / out_scale
    offsets = rows.map(lambda part, at: within_reach(part, offset[at], largest))
    shift = rows.map(lambda part, at: _shifts(part, offsets[at], block, max_shift, bits, largest))
    whole = rows.map(lambda part, at: np.rint(part * np.exp2(shift[at, None])).astype(bits.dtype))
    return LayerParameters(
        weight=whole.reshape(weight.shape),
        bias=_biases(offsets, shift).astype(np.int32),
        shift=shift.astype(np.int32),
    )


def sum_parameters(scale_a: float, scale_b: float, out_scale: float) -> SumParameters:
    """Multipliers of a residual addition at an output scale of at least `out_scale`.

    The operand with the larger scale gets its exact gain by moving the output scale up a little;
    among the multipliers that move it by at most a few percent, the one that suits the other
    operand best is taken.
    """
    big, small = max(scale_a, scale_b), min(scale_a, scale_b)
    out_scale = max(out_scale, big / MAX_MUL)
    shift = int(_largest_shifts(np.array([big / out_scale]))[0])
    top = max(1, int(big / out_scale * 2.0**shift))
    candidates = range(max(1, int(np.ceil(top * _WORSE_BY))), top + 1)
    ratio = small / big
    mul_big = min(candidates, key=lambda m: (_relative_error(m * ratio), -m))
    mul_small = max(1, round(mul_big * ratio))
    mul_a, mul_b = (mul_big, mul_small) if scale_a >= scale_b else (mul_small, mul_big)
    return SumParameters(
        mul_a=mul_a, mul_b=mul_b, shift=shift, out_scale=big * 2.0**shift / mul_big
    )


def product_parameters(in_scale: float, terms: int, *, out_scale: float) -> tuple[int, float]:
    """The shift of sums of products of two activations, and the scale of what it leaves.

    Nothing but the shift is free, so the scale is the smallest `in_scale` * 2^shift that is at
    least `out_scale`, for shifts within 0..30.

    Args:
        in_scale: the real value of 1 in the sums.
        terms: products in a sum.

    Raises:
        OverflowError: the worst sum leaves int32.
    """
    shift = max(0, math.ceil(math.log2(out_scale / in_scale) - _SAME_POWER))
    shift = min(shift, MAX_SHIFT)
    if terms * LARGEST_INPUT**2 + (1 << shift >> 1) >= ACC_LIMIT:
        raise OverflowError("its worst sum does not fit into the 32-bit accumulator")
    return shift, in_scale * 2.0**shift


def rescale_parameters(in_scale: float, out_scale: float) -> tuple[int, int]:
    """A multiplier and a shift with mul / 2^shift nearest to in_scale / out_scale, at most 1."""
    ratio = min(in_scale / out_scale, 1.0)
    shift = int(_largest_shifts(np.array([ratio]))[0])
    return max(1, round(ratio * 2.0**shift)), shift


def mean_parameters(
    divisor: FloatArray, elements: int, *, in_scale: float, out_scale: float
) -> tuple[Int32Array, int, float]:
    """Multipliers [OH, OW], shift and output scale of an average; the smallest divisor is exact.

    `elements` is the most that one window holds: its worst sum stays within int32.

    Raises:
        OverflowError: even without a shift the worst sum leaves int32.
    """
    least = float(divisor.min())
    out_scale = max(out_scale, in_scale / least / MAX_MUL)
    gain = in_scale / least / out_scale
    shift = int(_largest_shifts(np.array([gain]))[0])
    while gain * 2.0**shift * elements * LARGEST_INPUT >= ACC_LIMIT / 2:
        if shift == 0:
            raise OverflowError("its worst sum does not fit into the 32-bit accumulator")
        shift -= 1
    top = max(1, int(gain * 2.0**shift))
    mul = np.rint(top * least / divisor.astype(np.float64)).astype(np.int32)
    return mul, shift, in_scale * 2.0**shift / (least * top)


def bounds(lo: float, hi: float, scale: float, largest: int = LARGEST_INPUT) -> tuple[int, int]:
    """The integer bounds of a clip at a scale: within int8, or -`largest`..`largest` beyond it."""
    ends = (-largest, largest) if largest > LARGEST_INPUT else (INT8_MIN, INT8_MAX)
    low, high = (int(np.clip(np.rint(np.clip(b / scale, -1e6, 1e6)), *ends)) for b in (lo, hi))
    return low, high


def of_blocks(values: NDArray[Any], block: int, together: np.ufunc = np.minimum) -> NDArray[Any]:
    """For every channel what all channels of its block make together: the smallest, of shifts."""
    starts = np.arange(0, len(values), block)
    return np.repeat(together.reduceat(values, starts), block)[: len(values)]


def _largest_shifts(
    top: NDArray[np.float64], max_shift: int = MAX_SHIFT, most: int = MAX_MUL
) -> NDArray[np.int64]:
    """The largest s in 0..max_shift with top * 2^s <= most, elementwise."""
    with np.errstate(divide="ignore"):
        shift = np.floor(np.log2(most / top))
    shift = np.clip(shift, 0, max_shift)
    shift -= (top * np.exp2(shift) > most) & (shift > 0)
    return shift.astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Weights [Co, K] in units of the result's scale, in float64, some blocks of them at a time."""

    weight: FloatArray
    scale: float
    block: int

    def parts(self) -> Iterator[tuple[NDArray[np.float64], slice]]:
        """Rows, and which ones they are."""
        for band in bands(self.weight, self.block):
            yield self.weight[band].astype(np.float64) * self.scale, band

    def map(self, work: Callable[[NDArray[np.float64], slice], NDArray[Any]]) -> NDArray[Any]:
        """What `work` makes of every row."""
        made = [work(part, band) for part, band in self.parts()]
        return made[0] if len(made) == 1 else np.concatenate(made)


def _shifts(
    rows: NDArray[np.float64],
    offsets: NDArray[np.float64],
    block: int,
    max_shift: int,
    bits: WeightBits,
    largest: LargestMagnitudes,
) -> NDArray[np.int64]:
    """The largest shift of every channel or block, within 0..`max_shift`.

    Raises:
        OverflowError: even without a shift a worst sum leaves int32.
    """

    def together(shift: NDArray[np.int64]) -> NDArray[np.int64]:
        return of_blocks(shift, block) if bits.shares_shifts else shift

    shift = together(_largest_shifts(np.abs(rows).max(axis=1), max_shift, bits.most))
    while (over := _overflows(rows, offsets, shift, largest.operand)).any():
        if (shift[over] == 0).any():
            raise OverflowError("its worst sum does not fit into the 32-bit accumulator")
        shift = together(shift - over)
    while (far := _far_biases(offsets, shift, block, bits, largest.operand)).any():
        shift = together(shift - far)
    return shift


def within_reach(
    rows: NDArray[np.float64], offsets: NDArray[np.float64], largest: LargestMagnitudes = INT8
) -> NDArray[np.float64]:
    """Biases, none so far from zero that it saturates whatever the sums are and by more than that.

    The far ones would take many tiles, or all of the accumulator's bits.
    """
    reach = largest.operand * np.abs(rows).sum(axis=1) + _BEYOND * largest.result
    return np.clip(offsets, -reach, reach)


def _biases(offsets: NDArray[Any], shift: NDArray[np.int64]) -> NDArray[np.float64]:
    """Biases in units of the accumulator, with what makes the shift round to nearest."""
    half = np.where(shift > 0, np.exp2(shift - 1.0), 0.0)
    return np.asarray(np.rint(offsets * np.exp2(shift)) + half, np.float64)


def _far_biases(
    offsets: NDArray[Any],
    shift: NDArray[np.int64],
    block: int,
    bits: WeightBits,
    largest: int,
) -> NDArray[np.bool_]:
    """Which channels could have a smaller bias at no loss that shows."""
    is_wide = largest > LARGEST_INPUT
    most = WIDE.most_bias(block) if is_wide else bits.most_bias(block)
    enough = bits.enough_shift + (math.ceil(math.log2(largest / LARGEST_INPUT)) if is_wide else 0)
    far = (np.abs(_biases(offsets, shift)) > most) & (shift > enough)
    return np.asarray(far, np.bool_)


def _overflows(
    rows: NDArray[Any], offsets: NDArray[Any], shift: NDArray[np.int64], largest: int
) -> NDArray[np.bool_]:
    """Which channels could leave int32 on the worst input."""
    weights = np.abs(np.rint(rows * np.exp2(shift)[:, None])).sum(axis=1)
    worst = largest * weights + np.abs(_biases(offsets, shift))
    return np.asarray(worst >= ACC_LIMIT, np.bool_)


def _relative_error(exact: float) -> float:
    return abs(max(1, round(exact)) - exact) / exact
