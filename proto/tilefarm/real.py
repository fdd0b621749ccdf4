"""Functions of a float32 as operations that round once, in a fixed order: the same bits anywhere.

A function is written in `Words`, which whoever computes it brings along: a compiler makes
instructions of them, numpy arrays. Every `+`, `-`, `*` and `/` rounds to float32 by itself, and
nothing is fused. Results are within 1e-6 of the real ones, or within 3e-7 of their size.

NaN and the infinities give what numpy gives for them, and so ONNX's reference: NaN wherever an
operand is NaN and the result depends on it. Comparisons are false for NaN, and so are `shrink` and
`thresholded_relu` 0 there, as ONNX defines them. Which zero a result of 0 is, +0 or -0, may differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

Real: TypeAlias = Any
"""A float32, or many: whatever the words are about. It has the operators `+`, `-`, `*` and `/`."""


class Words(Protocol):
    """What functions are made of besides arithmetic."""

    def number(self, value: float) -> Real:
        """The constant that is nearest to a value."""

    def less(self, a: Real, b: Real) -> Any:
        """The truth value of a < b."""

    def chosen(self, condition: Any, then: Real, otherwise: Real) -> Real:
        """`then` where the condition holds, `otherwise` elsewhere."""

    def is_nan(self, x: Real) -> Any:
        """The truth value of x being NaN."""

    def larger(self, a: Real, b: Real) -> Real:
        """The first where a > b, otherwise the second, also where one is NaN.

        So a bound comes first and what it bounds second, whose NaN stays then: one instruction.
        """

    def smaller(self, a: Real, b: Real) -> Real:
        """The first where a < b, otherwise the second, also where one is NaN; see `larger`."""

    def round_even(self, x: Real) -> Real:
        """The nearest integer, halves to the even one, for magnitudes up to 2^22."""

    def sqrt(self, x: Real) -> Real:
        """The square root, rounded as IEEE 754 says."""

    def power_of_two(self, k: Real) -> Real:
        """2^k for an integer k of -126 to 127, and 0 for -127; anything for NaN."""

    def exponent(self, x: Real) -> Real:
        """The integer k with 2^k <= x < 2^(k+1), for a positive x that is not denormal."""


Function: TypeAlias = Callable[..., Real]
"""Of the words, a value, and as many parameters as it has."""

_LN2_HIGH: Final = 0.693359375
_LN2_LOW: Final = math.log(2) - _LN2_HIGH
"""ln 2 in two parts, of which the first has so few digits that its multiples are exact."""

_EXP_TERMS: Final = tuple(
    2 * term
    for term in (
        1.0,
        0.9999997024780382,
        0.4999914046422739,
        0.1666764656303283,
        0.0418991625734320,
        0.0082900867484516,
    )
)
"""Of 2 e^r for |r| <= ln 2 / 2, relatively within 9.3e-8: the least that a polynomial of degree 5
is off by that is right at 0."""

_LOG_TERMS: Final = tuple(2 / (2 * n + 1) for n in range(5))
"""Of ln((1 + s) / (1 - s)) = 2s + 2/3 s^3 + 2/5 s^5 + ..."""

_ERF_TERMS: Final = (0.0, 0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_ERF_SLOPE: Final = 0.3275911
"""Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: within 1.5e-7."""

_WHOLE: Final = float(1 << 23)
"""From here on a float32 has no fraction."""

_LEAST: Final = 2.0**-149
"""The smallest float32 above 0."""

LOWEST: Final = -3.4028234663852886e38
"""The least float32 that is finite."""

_LARGEST_POWER: Final = 8


def within(w: Words, x: Real, lo: float, hi: float) -> Real:
    """min(max(x, lo), hi), NaN for NaN."""
    return w.smaller(w.number(hi), w.larger(w.number(lo), x))


def maximum(w: Words, a: Real, b: Real) -> Real:
    """The larger, or NaN where one of them is NaN.

    `larger` gives b where one is; so the choice of a constant is left, and no other one of a.
    """
    return w.chosen(w.is_nan(a), w.number(math.nan), w.larger(a, b))


def minimum(w: Words, a: Real, b: Real) -> Real:
    """The smaller, or NaN where one of them is NaN."""
    return w.chosen(w.is_nan(a), w.number(math.nan), w.smaller(a, b))


EXTREMES: Final[Mapping[str, Function]] = {"maximum": maximum, "minimum": minimum}
"""Name -> the function of two values that is one of them, NaN where one is."""


def exp(w: Words, x: Real) -> Real:
    """2^(k-1) * 2 e^r with x = k ln 2 + r; 0 for what is not above 2^-125, without denormals.

    Of NaN r is NaN and its product with any power, too.
    """
    x = within(w, x, -87.5, 89.0)
    k = w.round_even(x * (1 / math.log(2)))
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    return _polynomial(r, _EXP_TERMS) * w.power_of_two(k - 1.0)


def log(w: Words, x: Real) -> Real:
    """K ln 2 + ln m with x = 2^k m and m near 1; minus infinity for 0, NaN for what is below."""
    tiny = w.less(x, w.number(2.0**-100))
    huge = w.less(w.number(2.0**100), x)
    normal = w.chosen(tiny, x * 2.0**64, w.chosen(huge, x * 2.0**-64, x))
    moved = w.chosen(tiny, w.number(-64.0), w.chosen(huge, w.number(64.0), w.number(0.0)))
    positive = w.larger(normal, w.number(2.0**-120))
    k = w.exponent(positive)
    m = positive * w.power_of_two(k * -1.0)
    upper = w.less(w.number(math.sqrt(2)), m)
    m, k = w.chosen(upper, m * 0.5, m), w.chosen(upper, k + 1.0, k) + moved
    s = (m - 1.0) / (m + 1.0)
    found = (s * _polynomial(s * s, _LOG_TERMS) + k * _LN2_LOW) + k * _LN2_HIGH
    above = w.chosen(w.less(x, w.number(math.inf)), found, x)
    below = w.sqrt(x) - math.inf  # minus infinity for 0; a root of what is below is NaN
    return w.chosen(w.less(w.number(0.0), x), above, below)


def absolute(w: Words, x: Real) -> Real:
    """X where x is positive, otherwise 0 - x, which of -0 is 0."""
    zero = w.number(0.0)
    return w.chosen(w.less(zero, x), x, zero - x)


def sign(w: Words, x: Real) -> Real:
    """-1 or 1, and x where it is 0 or NaN."""
    zero = w.number(0.0)
    above = w.chosen(w.less(zero, x), w.number(1.0), x)
    return w.chosen(w.less(x, zero), w.number(-1.0), above)


def rounded(w: Words, x: Real) -> Real:
    """The nearest integer, halves to the even one."""
    whole = w.number(_WHOLE)
    size = absolute(w, x)
    size = w.chosen(w.less(size, whole), (size + whole) - whole, size)
    return w.chosen(w.less(x, w.number(0.0)), size * -1.0, size)


def floor(w: Words, x: Real) -> Real:
    """The largest integer that is not above x."""
    near = rounded(w, x)
    return w.chosen(w.less(x, near), near - 1.0, near)


def ceil(w: Words, x: Real) -> Real:
    """The smallest integer that is not below x."""
    near = rounded(w, x)
    return w.chosen(w.less(near, x), near + 1.0, near)


def trunc(w: Words, x: Real) -> Real:
    """The integer between 0 and x that is nearest to x."""
    size = floor(w, absolute(w, x))
    return w.chosen(w.less(x, w.number(0.0)), size * -1.0, size)


def positive(w: Words, x: Real) -> Real:
    """1 where x is above 0, otherwise 0."""
    return w.chosen(w.less(w.number(0.0), x), w.number(1.0), w.number(0.0))


def zero(w: Words, x: Real) -> Real:
    """1 where x is 0, otherwise 0, also where x is NaN."""
    return w.chosen(w.less(absolute(w, x), w.number(_LEAST)), w.number(1.0), w.number(0.0))


def nan(w: Words, x: Real) -> Real:
    """1 where x is NaN, otherwise 0."""
    return w.chosen(w.is_nan(x), w.number(1.0), w.number(0.0))


def wrap(w: Words, x: Real, lo: float, span: float) -> Real:
    """X within lo up to lo + span, a multiple of which is taken away; `span` is a power of two."""
    return x - floor(w, (x - lo) * (1 / span)) * span


def sigmoid(w: Words, x: Real) -> Real:
    """1 / (1 + exp(-x))"""
    return w.number(1.0) / (exp(w, x * -1.0) + 1.0)


def tanh(w: Words, x: Real) -> Real:
    """(1 - exp(-2|x|)) / (1 + exp(-2|x|)), with the sign of x."""
    power = exp(w, absolute(w, x) * -2.0)
    size = (w.number(1.0) - power) / (power + 1.0)
    return w.chosen(w.less(x, w.number(0.0)), size * -1.0, size)


def erf(w: Words, x: Real) -> Real:
    """The error function: 1 - p(t) exp(-x^2) with t = 1 / (1 + 0.3275911 |x|), and its sign."""
    size = absolute(w, x)
    t = w.number(1.0) / (size * _ERF_SLOPE + 1.0)
    found = w.number(1.0) - _polynomial(t, _ERF_TERMS) * exp(w, (size * size) * -1.0)
    return w.chosen(w.less(x, w.number(0.0)), found * -1.0, found)


def softplus(w: Words, x: Real) -> Real:
    """max(x, 0) + ln(1 + exp(-|x|))"""
    return w.larger(w.number(0.0), x) + log(w, exp(w, absolute(w, x) * -1.0) + 1.0)


def power(w: Words, x: Real, exponent: float) -> Real:
    """X to a small whole number, to 1/2, or one over these; see `is_exact`.

    To 1/2 it is the root, as numpy has it, but one over it is infinite for -0 and 0 for minus
    infinity, which are no roots.
    """
    if exponent == -0.5:
        is_infinite = w.less(x, w.number(LOWEST))
        return w.number(1.0) / w.chosen(is_infinite, w.number(math.inf), w.sqrt(x + 0.0))
    if exponent < 0:
        return w.number(1.0) / power(w, x, -exponent)
    if exponent == 0.5:
        return w.sqrt(x)
    product = w.number(1.0)
    for _ in range(int(exponent)):
        product = product * x
    return product


def _elu(w: Words, x: Real, alpha: float) -> Real:
    return w.chosen(w.less(w.number(0.0), x), x, (exp(w, x) - 1.0) * alpha)


def _celu(w: Words, x: Real, alpha: float) -> Real:
    return w.chosen(w.less(w.number(0.0), x), x, (exp(w, x * (1 / alpha)) - 1.0) * alpha)


def _shrink(w: Words, x: Real, bias: float, edge: float) -> Real:
    below, above = w.less(x, w.number(-edge)), w.less(w.number(edge), x)
    return w.chosen(below, x + bias, w.chosen(above, x - bias, w.number(0.0)))


def _gelu_tanh(w: Words, x: Real) -> Real:
    inner = (x * x * x * 0.044715 + x) * math.sqrt(2 / math.pi)
    return x * 0.5 * (tanh(w, inner) + 1.0)


FUNCTIONS: Final[Mapping[str, Function]] = {
    "abs": absolute,
    "ceil": ceil,
    "celu": _celu,
    "elu": _elu,
    "erf": erf,
    "exp": exp,
    "floor": floor,
    "gelu": lambda w, x: x * 0.5 * (erf(w, x * math.sqrt(0.5)) + 1.0),
    "gelu_tanh": _gelu_tanh,
    "hard_sigmoid": lambda w, x, a, b: within(w, x * a + b, 0.0, 1.0),
    "hard_swish": lambda w, x: x * within(w, x * (1 / 6) + 0.5, 0.0, 1.0),
    "leaky_relu": lambda w, x, a: w.chosen(w.less(x, w.number(0.0)), x * a, x),
    "log": log,
    "mish": lambda w, x: x * tanh(w, softplus(w, x)),
    "nan": nan,
    "neg": lambda _w, x: x * -1.0,
    "positive": positive,
    "power": power,
    "reciprocal": lambda w, x: w.number(1.0) / x,
    "round": rounded,
    "same": lambda _w, x: x,
    "selu": lambda w, x, a, b: _elu(w, x, a) * b,
    "shrink": _shrink,
    "sigmoid": sigmoid,
    "sign": sign,
    "softplus": softplus,
    "softsign": lambda w, x: x / (absolute(w, x) + 1.0),
    "sqrt": lambda w, x: w.sqrt(x),
    "swish": lambda w, x: x * sigmoid(w, x),
    "tanh": tanh,
    "thresholded_relu": lambda w, x, a: w.chosen(w.less(w.number(a), x), x, w.number(0.0)),
    "trunc": trunc,
    "wrap": wrap,
    "zero": zero,
}
"""Name -> function of a value and of its parameters, if it has any."""

COMBINATIONS: Final[Mapping[str, Function]] = {
    "add": lambda _w, a, b: a + b,
    "sub": lambda _w, a, b: a - b,
    "mul": lambda _w, a, b: a * b,
    "div": lambda _w, a, b: a / b,
    "max": maximum,
    "min": minimum,
    "slope": lambda w, a, b: w.chosen(w.less(a, w.number(0.0)), a * b, a),
}
"""Name -> function of two values; `slope` is a where that is not negative, otherwise a * b."""

_MOST_SUMS: Final = 64
"""Of neighbours, side by side: vectors enough to hide a latency."""

_FEWEST_SUMS: Final = 4


def sums_of_neighbours(count: int) -> int:
    """How many of `count` numbers in a row are combined side by side, 1 if in order.

    Number i is the next term of sum i % n. Then each of the first n / 2 sums takes the one that is
    n / 2 further, and so on, until one is left.
    """
    together = _MOST_SUMS
    while 2 * together > count:
        together //= 2
    return together if together >= _FEWEST_SUMS else 1


def is_exact(function: str, parameters: Sequence[float]) -> bool:
    """Whether a function of that name is among FUNCTIONS, with these parameters."""
    if function != "power":
        return function in FUNCTIONS
    size = abs(parameters[0])
    return size == 0.5 or (size.is_integer() and 0 < size <= _LARGEST_POWER)


def _polynomial(x: Real, terms: Sequence[float]) -> Real:
    """terms[0] + terms[1] * x + terms[2] * x^2 + ..., from the highest power down."""
    total = x * terms[-1]
    for term in reversed(terms[1:-1]):
        total = (total + term) * x
    return total + terms[0]
