"""Integer arithmetic of every operator on logical tensors [N, C, ...]: the definition of right.

Sums are int32 and wrap as the accelerator's do. Products go through BLAS in floating point where
that is exact: no sum of some of the products may leave 2^24 in float32, 2^53 in float64.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.columns import (
    correlate_groups,
    correlate_phases,
    multiplied,
    padded,
    patches,
    pooled,
    weighted,
)
from driver.network.graph.ir import FloatArray, Window
from driver.network.integer.qir import (
    INT8_MAX,
    INT8_MIN,
    Int8Array,
    Int32Array,
    LayerArray,
    WeightArray,
    result_type,
)

_EXACT_FLOAT32_SUM: Final = 1 << 24


def conv2d(
    x: LayerArray,
    weight: WeightArray,
    bias: Int32Array,
    shift: Int32Array,
    *,
    window: Window,
    groups: int = 1,
    lo: int,
    hi: int,
    factor: Int32Array | None = None,
) -> LayerArray:
    """[N, Co, OH, OW] of x [N, Ci, H, W] and weight [Co, Ci/groups, Kh, Kw].

    int8, or int16 if int8 does not hold `lo` and `hi`.
    """
    total = correlate_groups(x, exact(weight, _largest(x)), window, groups)
    return _by_channel(total, bias, factor, shift, lo, hi)


def conv2d_transpose(
    x: Int8Array,
    weight: Int8Array,
    bias: Int32Array,
    shift: Int32Array,
    *,
    pad: tuple[int, int, int, int],
    lo: int,
    hi: int,
    factor: Int32Array | None = None,
) -> Int8Array:
    """int8 [N, Co, Sh*H', Sw*W'] of x [N, Ci, H, W] and weight [Co, Sh, Sw, Ci, Kh, Kw]."""
    total = correlate_phases(x, exact(weight), pad)
    return _by_channel(total, bias, factor, shift, lo, hi)


def dense(
    x: LayerArray,
    weight: WeightArray,
    bias: Int32Array,
    shift: Int32Array,
    *,
    lo: int,
    hi: int,
    factor: Int32Array | None = None,
) -> LayerArray:
    """[N, Co] of x [N, Ci] and weight [Co, Ci], of the type that `conv2d` makes."""
    return _by_channel(products(x, weight), bias, factor, shift, lo, hi)


def products(x: LayerArray, weight: WeightArray) -> NDArray[Any]:
    """The sums [N, Co] of x [N, Ci] and weight [Co, Ci], as whole numbers in a float type."""
    exactly = _exact_type(weight.shape[1] * _largest(weight), _largest(x))
    return weighted(x.astype(exactly), weight)


def matmul(a: Int8Array, b: Int8Array, *, groups: int, shift: int) -> Int8Array:
    """int8 [N, G*I, J] of a [N, G*K, I] and b [N, G*K, J]."""
    exactly = _exact_type(a.shape[1] // groups * _largest(a), _largest(b))
    total = multiplied(a.astype(exactly), b.astype(exactly), groups)
    return requantized(total, np.asarray(half(shift)), shift, INT8_MIN, INT8_MAX)


def requantized(
    total: NDArray[Any],
    bias: NDArray[Any],
    shift: NDArray[Any] | int,
    lo: int,
    hi: int,
    factor: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """`narrowed` ((total + bias) * factor) >> shift with all of it in wrapping int32."""
    acc = wrapped(total)
    acc += np.asarray(bias, np.int32)
    if factor is not None:
        acc *= factor
    acc >>= shift
    return narrowed(acc, lo, hi)


def narrowed(acc: NDArray[Any], lo: int, hi: int) -> NDArray[Any]:
    """clip(acc, lo, hi) in the type that holds these bounds; `acc` is spent."""
    return np.clip(acc, lo, hi, out=acc).astype(result_type(lo, hi).value)


def add(
    a: Int8Array, b: Int8Array, *, mul_a: int, mul_b: int, shift: int, lo: int, hi: int
) -> Int8Array:
    """int8 of the shape of `a` and `b`."""
    total = a.astype(np.int64) * mul_a + b.astype(np.int64) * mul_b
    return requantized(total, np.asarray(half(shift)), shift, lo, hi)


def affine(
    x: Int8Array,
    weight: Int32Array,
    bias: Int32Array,
    shift: Int32Array,
    *,
    lo: int,
    hi: int,
    factor: Int32Array | None = None,
) -> Int8Array:
    """int8 of the shape of `x` [N, C, ...]; the parameters are per channel [C]."""
    total = x.astype(np.int64) * weight.reshape(-1, *(1,) * (x.ndim - 2))
    return _by_channel(total, bias, factor, shift, lo, hi)


def rescale(x: Int8Array, *, mul: int, shift: int) -> Int8Array:
    """int8 of the shape of `x`."""
    total = x.astype(np.int64) * mul
    return requantized(total, np.asarray(half(shift)), shift, INT8_MIN, INT8_MAX)


def max_pool2d(x: NDArray[Any], *, window: Window) -> NDArray[Any]:
    """[N, C, OH, OW] of int8 or uint8; padding is the least of the type."""
    return np.asarray(pooled(padded(x, window, np.iinfo(x.dtype).min), window, np.maximum))


def avg_pool2d(
    x: Int8Array, mul: Int32Array, *, window: Window, shift: int, lo: int, hi: int
) -> Int8Array:
    """int8 [N, C, OH, OW]; `mul` is [OH, OW]."""
    total = pooled(padded(x, window).astype(np.int64), window, np.add)
    return requantized(total * mul, np.asarray(half(shift)), shift, lo, hi)


def lookup(x: Int8Array, table: Int8Array) -> Int8Array:
    """table[x + 128] of the shape of `x` [N, C, ...]; `table` is [256], or [C, 256]."""
    entry = x.astype(np.int64) + 128
    if table.ndim == 1:
        return np.asarray(table[entry])
    rows = np.arange(x.shape[1]).reshape(-1, *(1,) * (x.ndim - 2))
    return np.asarray(table[rows, entry])


def product(
    a: Int8Array,
    b: Int8Array,
    table: Int32Array,
    *,
    shift: int,
    lo: int = INT8_MIN,
    hi: int = INT8_MAX,
) -> Int8Array:
    """int8 of the shape of `a` and `b`: a times the table's entry for b."""
    total = a.astype(np.int64) * table[b.astype(np.int64) + 128]
    return requantized(total, np.asarray(half(shift)), shift, lo, hi)


def quantize(x: FloatArray, *, inv_scale: float, offset: float = 0.0) -> Int8Array:
    """int8 of the shape of `x`: rounded half to even; -128 for no number.

    The product and the sum with `offset` are float32, each rounded by itself.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.asarray(x, np.float32) * np.float32(inv_scale) + np.float32(offset)
        above = np.where(steps > INT8_MIN, steps, np.float32(INT8_MIN))
    return np.asarray(np.rint(np.minimum(above, np.float32(INT8_MAX))), np.int8)


def window_channels(x: Int8Array, window: Window) -> Int8Array:
    """int8 [N, Kh*Kw*C, OH, OW]: every window of an already padded image, its channels innermost.

    Channel (kh*Kw + kw)*C + ci is pixel (oh*stride + kh*dilation, ...) of channel ci.
    """
    seen = patches(x, window)
    n, c, oh, ow, kh, kw = seen.shape
    return seen.transpose(0, 4, 5, 1, 2, 3).reshape(n, kh * kw * c, oh, ow)


def dequantize(x: Int8Array, *, scale: float, offset: float = 0.0) -> FloatArray:
    """float32 of the shape of `x`; the product and the sum are each rounded by itself."""
    product = x.astype(np.float32) * np.float32(scale)
    return product + np.float32(offset) if offset else product


def softmax(x: Int8Array, table: FloatArray) -> FloatArray:
    """float32 [N, C]; the sum is made in channel order, one float32 addition at a time."""
    steps = x.max(axis=1, keepdims=True).astype(np.int32) - x.astype(np.int32)
    powers = table[steps]
    total = np.zeros(x.shape[0], np.float32)
    for channel in range(x.shape[1]):
        total = total + powers[:, channel]
    return np.asarray(powers / total[:, None], np.float32)


def _by_channel(
    total: NDArray[Any],
    bias: Int32Array,
    factor: Int32Array | None,
    shift: Int32Array,
    lo: int,
    hi: int,
) -> NDArray[Any]:
    """`requantized` sums [N, Co, ...] by what each of the channels [Co] has."""
    lanes = (-1, *(1,) * (total.ndim - 2))
    factors = None if factor is None else factor.reshape(lanes)
    return requantized(total, bias.reshape(lanes), shift.reshape(lanes), lo, hi, factors)


def half(shift: int) -> int:
    """What makes `>> shift` round to nearest."""
    return 1 << (shift - 1) if shift else 0


def wrapped(total: NDArray[Any]) -> Int32Array:
    """Whole numbers of any type as int32, modulo 2^32; a fresh array."""
    if total.dtype == np.float64:
        total = total.astype(np.int64)
    return np.array(total, np.int32)


def exact(weight: WeightArray, largest: int = -INT8_MIN) -> NDArray[Any]:
    """The weights [Co, ...] in the smallest float type in which their products sum exactly.

    `largest` is the largest magnitude of what they are multiplied by.
    """
    wider = np.int16 if weight.dtype == np.int8 else np.int32
    magnitudes = np.abs(weight.reshape(len(weight), -1), dtype=wider)
    total = int(magnitudes.sum(axis=1, dtype=np.int64).max(initial=0))
    return weight.astype(_exact_type(total, largest))


def _exact_type(magnitudes: int, largest: int) -> type[np.floating[Any]]:
    """The smallest float type for sums of products with numbers whose magnitudes have that sum."""
    return np.float32 if magnitudes * largest <= _EXACT_FLOAT32_SUM else np.float64


def _largest(values: NDArray[Any]) -> int:
    """The largest magnitude of numbers of that type."""
    return -int(np.iinfo(values.dtype).min)
