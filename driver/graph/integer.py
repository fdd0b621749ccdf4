"""Integer arithmetic of every operator on logical tensors [N, C, ...]: the definition of right.

Sums are int32 and wrap as the accelerator's do. Products go through BLAS in floating point where
that is exact: a sum of n products of int8 needs n * 2^14 <= 2^24 in float32, 2^53 in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.graph.columns import correlate, padded, patches
from driver.graph.ir import FloatArray, Window
from driver.graph.qir import INT8_MAX, INT8_MIN, Int8Array, Int32Array

_EXACT_FLOAT32_TERMS = (1 << 24) // (128 * 128)


def conv2d(
    x: Int8Array,
    weight: Int8Array,
    bias: Int32Array,
    shift: Int32Array,
    *,
    window: Window,
    lo: int,
    hi: int,
) -> Int8Array:
    """int8 [N, Co, OH, OW] of x [N, Ci, H, W] and weight [Co, Ci, Kh, Kw]."""
    total = correlate(x, _exact(weight), window)
    return requantized(total, bias[:, None, None], shift[:, None, None], lo, hi)


def dense(
    x: Int8Array, weight: Int8Array, bias: Int32Array, shift: Int32Array, *, lo: int, hi: int
) -> Int8Array:
    """int8 [N, Co] of x [N, Ci] and weight [Co, Ci]."""
    kernel = _exact(weight)
    return requantized(x.astype(kernel.dtype) @ kernel.T, bias, shift, lo, hi)


def requantized(
    total: NDArray[Any], bias: NDArray[Any], shift: NDArray[Any] | int, lo: int, hi: int
) -> Int8Array:
    """int8(clip((total + bias) >> shift, lo, hi)) with the sum in wrapping int32."""
    acc = _wrapped(total)
    acc += np.asarray(bias, np.int32)
    acc >>= shift
    return np.clip(acc, lo, hi, out=acc).astype(np.int8)


def add(
    a: Int8Array, b: Int8Array, *, mul_a: int, mul_b: int, shift: int, lo: int, hi: int
) -> Int8Array:
    """int8 of the shape of `a` and `b`."""
    total = a.astype(np.int64) * mul_a + b.astype(np.int64) * mul_b
    return requantized(total, np.asarray(half(shift)), shift, lo, hi)


def affine(
    x: Int8Array, mul: Int32Array, addend: Int32Array, shift: Int32Array, *, lo: int, hi: int
) -> Int8Array:
    """int8 of the shape of `x` [N, C, ...]; the parameters are per channel [C]."""
    lanes = (-1, *(1,) * (x.ndim - 2))
    total = x.astype(np.int64) * mul.reshape(lanes)
    return requantized(total, addend.reshape(lanes), shift.reshape(lanes), lo, hi)


def max_pool2d(x: Int8Array, *, window: Window) -> Int8Array:
    """int8 [N, C, OH, OW]."""
    return np.asarray(patches(padded(x, window, INT8_MIN), window).max(axis=(4, 5)), np.int8)


def avg_pool2d(
    x: Int8Array, mul: Int32Array, *, window: Window, shift: int, lo: int, hi: int
) -> Int8Array:
    """int8 [N, C, OH, OW]; `mul` is [OH, OW]."""
    total = patches(padded(x, window), window).sum(axis=(4, 5), dtype=np.int64)
    return requantized(total * mul, np.asarray(half(shift)), shift, lo, hi)


def quantize(x: FloatArray, *, inv_scale: float) -> Int8Array:
    """int8 of the shape of `x`: one float32 product, rounded half to even."""
    steps = np.rint(np.asarray(x, np.float32) * np.float32(inv_scale))
    return np.asarray(np.clip(steps, INT8_MIN, INT8_MAX), np.int8)


def dequantize(x: Int8Array, *, scale: float) -> FloatArray:
    """float32 of the shape of `x`."""
    return x.astype(np.float32) * np.float32(scale)


def softmax(x: Int8Array, table: FloatArray) -> FloatArray:
    """float32 [N, C]; the sum is made in channel order, one float32 addition at a time."""
    steps = x.max(axis=1, keepdims=True).astype(np.int32) - x.astype(np.int32)
    powers = table[steps]
    total = np.zeros(x.shape[0], np.float32)
    for channel in range(x.shape[1]):
        total = total + powers[:, channel]
    return np.asarray(powers / total[:, None], np.float32)


def half(shift: int) -> int:
    """What makes `>> shift` round to nearest."""
    return 1 << (shift - 1) if shift else 0


def _wrapped(total: NDArray[Any]) -> Int32Array:
    """Whole numbers of any type as int32, modulo 2^32; a fresh array."""
    if total.dtype == np.float64:
        total = total.astype(np.int64)
    return np.array(total, np.int32)


def _exact(weight: Int8Array) -> NDArray[Any]:
    """The weights in the smallest float type in which their products sum exactly."""
    terms = weight[0].size
    return weight.astype(np.float32 if terms <= _EXACT_FLOAT32_TERMS else np.float64)
