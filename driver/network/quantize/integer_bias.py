"""Integer layers with other weights and biases, whatever these are called in each kind of layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.network.integer.qir import QAffine, QConv2d, QConvTranspose2d, QDense, QuantOperator
from driver.network.quantize.power_of_two_requantization import ACC_LIMIT, LARGEST_INPUT

Biased: TypeAlias = QConv2d | QConvTranspose2d | QDense | QAffine
"""The integer operators with weights and a bias for each channel of the result."""

_MOST_SUM: Final = ACC_LIMIT - 1


def has_wide_weights(op: QuantOperator) -> bool:
    """Whether it is a layer whose weights have 16 bits."""
    return isinstance(op, QConv2d | QDense) and op.weight.dtype == np.int16


def weight_rows(op: Biased) -> NDArray[np.int64]:
    """[Co, ...]: the weights of each channel of the result in a row."""
    weight = op.weight
    return weight.reshape(len(weight), -1).astype(np.int64)


def with_weights(op: Biased, weight: NDArray[Any], shift: NDArray[Any]) -> Biased:
    """The layer with these whole weights of 8 bits, in the form of its own, and shifts [Co]."""
    stored: Any = weight.astype(np.int32 if isinstance(op, QAffine) else np.int8)
    return replace(op, weight=stored.reshape(op.weight.shape), shift=shift.astype(np.int32))


def fits_int32(op: Biased, largest: int = LARGEST_INPUT) -> bool:
    """Whether the sums stay within int32 whatever the operand, and there is room for the bias.

    `largest` is the largest magnitude in an operand.
    """
    return bool((_room(op, largest) >= np.abs(op.bias.astype(np.int64))).all())


def gain(op: Biased) -> NDArray[np.float64]:
    """[Co]: what the accumulator's 1 is in steps of the result."""
    factor = 1 if op.factor is None else op.factor
    return np.asarray(factor * np.exp2(-op.shift.astype(np.float64)))


def rounding(op: Biased) -> NDArray[np.float64]:
    """[Co]: the part of the bias that makes the shift round to nearest."""
    return np.where(op.shift > 0, np.rint(0.5 / gain(op)), 0.0)


def with_bias(op: Biased, bias: NDArray[Any], largest: int = LARGEST_INPUT) -> Biased:
    """The layer with these biases [Co], rounded, and such that the worst sum stays within int32.

    So does its product with the factor. `largest` is the largest magnitude in an operand.
    """
    room = _room(op, largest)
    held = np.clip(np.rint(bias), -room, room).astype(np.int32)
    return replace(op, bias=held)


def _room(op: Biased, largest: int) -> NDArray[np.int64]:
    """[Co]: the largest magnitude of a bias with which the worst sum stays within int32."""
    most = _MOST_SUM // (1 if op.factor is None else op.factor)
    sizes = np.abs(op.weight.reshape(len(op.shift), -1))
    return np.asarray(most - largest * sizes.sum(axis=1, dtype=np.int64))
