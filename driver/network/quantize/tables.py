"""Tables of int8 functions: one entry for every int8, exact to half a step of the result."""

from __future__ import annotations

import math

import numpy as np

from driver.network.graph.functions import Reals, evaluate
from driver.network.graph.ir import Slopes, Unary
from driver.network.integer.qir import INT8_MAX, INT8_MIN, Int8Array, Int32Array

_LARGEST_ENTRY = 1 << 23
"""Times 128, with the rounding, an int32 still."""
_LARGEST_SHIFT = 30


def int8_values() -> Reals:
    """Every int8 in the order of a table's entries."""
    return np.arange(INT8_MIN, INT8_MAX + 1, dtype=np.float64)


def unary_table(op: Unary, in_scale: float, out_scale: float) -> Int8Array:
    """int8 [256]: round_half_even(f(q * in_scale) / out_scale), clipped; 0 where f has no value."""
    return _int8(evaluate(op.function, int8_values() * in_scale, op.parameters), out_scale)


def slopes_table(op: Slopes, in_scale: float, out_scale: float) -> Int8Array:
    """int8 [C, 256]: as `unary_table`, a row for each channel's slope."""
    x = int8_values() * in_scale
    return _int8(np.where(x < 0, op.slope.astype(np.float64)[:, None] * x, x), out_scale)


def factor_table(
    scale_a: float, scale_b: float, out_scale: float, *, divides: bool
) -> tuple[Int32Array, int]:
    """int32 [256] and a shift: (a * table[b + 128]) >> shift is a*b, or a/b, in out_scale.

    As fine as an int32 product allows. Dividing by 0 gives the largest factor of all.
    """
    q = int8_values()
    with np.errstate(divide="ignore"):
        factor = scale_a / out_scale * (1 / (q * scale_b) if divides else q * scale_b)
    largest = float(np.abs(factor[np.isfinite(factor)]).max())
    shift = math.floor(math.log2(_LARGEST_ENTRY / largest)) if largest else 0
    shift = min(max(shift, 0), _LARGEST_SHIFT)
    entries = np.clip(np.rint(factor * 2.0**shift), -_LARGEST_ENTRY, _LARGEST_ENTRY)
    return entries.astype(np.int32), shift


def _int8(values: Reals, scale: float) -> Int8Array:
    with np.errstate(over="ignore"):
        steps = np.where(np.isnan(values), 0, values) / scale
    return np.asarray(np.clip(np.rint(steps), INT8_MIN, INT8_MAX), np.int8)
