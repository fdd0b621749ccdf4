"""Functions of one number by their names, in float64: what tables of int8 are made from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Reals: TypeAlias = NDArray[np.float64]
Function: TypeAlias = Callable[..., Reals]
"""Of the values and of so many parameters as it has."""


def erf(x: Reals) -> Reals:
    """The error function."""
    return np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def sigmoid(x: Reals) -> Reals:
    """1 / (1 + exp(-x)), without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


def softplus(x: Reals) -> Reals:
    """ln(1 + exp(x)), without overflow."""
    return np.asarray(np.logaddexp(0, x))


def gelu_tanh(x: Reals) -> Reals:
    """The approximation of `gelu` by a hyperbolic tangent."""
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def _elu(x: Reals, alpha: float) -> Reals:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _shrink(x: Reals, bias: float, edge: float) -> Reals:
    return np.where(x < -edge, x + bias, np.where(x > edge, x - bias, 0))


FUNCTIONS: Final[Mapping[str, Function]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "celu": lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0) / a)),
    "cos": np.cos,
    "cosh": np.cosh,
    "elu": _elu,
    "erf": erf,
    "exp": np.exp,
    "floor": np.floor,
    "gelu": lambda x: 0.5 * x * (1 + erf(x * np.sqrt(0.5))),
    "gelu_tanh": gelu_tanh,
    "hard_sigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "leaky_relu": lambda x, a: np.where(x < 0, a * x, x),
    "log": np.log,
    "mish": lambda x: x * np.tanh(softplus(x)),
    "nan": np.isnan,
    "neg": lambda x: -x,
    "positive": lambda x: x > 0,
    "power": lambda x, a: np.power(x, a),
    "reciprocal": lambda x: 1 / x,
    "round": np.rint,
    "selu": lambda x, a, b: b * _elu(x, a),
    "shrink": _shrink,
    "sigmoid": sigmoid,
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "softplus": softplus,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "sqrt": np.sqrt,
    "swish": lambda x: x * sigmoid(x),
    "tan": np.tan,
    "tanh": np.tanh,
    "thresholded_relu": lambda x, a: np.where(x > a, x, 0),
    "trunc": np.trunc,
    "wrap": lambda x, lo, span: x - span * np.floor((x - lo) / span),
    "zero": lambda x: x == 0,
}
"""Name -> function of the values and of its parameters, if it has any.

`nan`, `positive` and `zero` are 1 where it is so and 0 elsewhere; `wrap` brings whole numbers into
lo up to lo + span, as integers of few bits do.
"""


def evaluate(function: str, x: NDArray[np.floating], parameters: Sequence[float]) -> Reals:
    """The function of every element; NaN or an infinity where it has no value."""
    with np.errstate(all="ignore"):
        found = FUNCTIONS[function](np.asarray(x, np.float64), *parameters)
    return np.asarray(found, np.float64)
