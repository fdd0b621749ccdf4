"""The words of `tilefarm.real` on numpy arrays: what a compiled kernel computes, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilefarm.real import COMBINATIONS, FUNCTIONS

FloatArray: TypeAlias = NDArray[np.float32]


class ArrayWords:
    """Float32 arrays; see `tilefarm.real.Words`."""

    def number(self, value: float) -> FloatArray:
        return np.asarray(value, np.float32)

    def less(self, a: FloatArray, b: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(np.less(a, b))

    def chosen(
        self, condition: NDArray[np.bool_], then: FloatArray, otherwise: FloatArray
    ) -> FloatArray:
        return np.where(condition, then, otherwise)

    def is_nan(self, x: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(np.isnan(x))

    def larger(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return np.where(a > b, a, b)

    def smaller(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return np.where(a < b, a, b)

    def round_even(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.rint(x))

    def sqrt(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(x))

    def power_of_two(self, k: FloatArray) -> FloatArray:
        return ((k.astype(np.int32) + 127) << 23).view(np.float32)

    def exponent(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.frexp(x)[1] - 1, np.float32)


WORDS: Final = ArrayWords()


def applied(function: str, x: FloatArray, parameters: Sequence[float] = ()) -> FloatArray:
    """A function of `tilefarm.real.FUNCTIONS` of every element."""
    return _quietly(FUNCTIONS[function], x, *parameters)


def combined(function: str, a: FloatArray, b: FloatArray) -> FloatArray:
    """One of `tilefarm.real.COMBINATIONS` of the elements of two arrays, repeated as numpy does."""
    return _quietly(COMBINATIONS[function], a, b)


def _quietly(function: Callable[..., Any], *values: Any) -> FloatArray:
    """Overflow and division by zero have results like any other."""
    with np.errstate(all="ignore"):
        return np.asarray(function(WORDS, *values), np.float32)
