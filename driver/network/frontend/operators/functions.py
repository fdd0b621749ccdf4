"""Operators that compute one number from one number, each a function with a few parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Rule, Scope
from driver.network.frontend.operators.channel_affine import (
    can_be_repeated,
    of_a_sample,
    with_constants,
)
from driver.network.graph.ir import Add, Clip, Product, Slopes, Unary

_SELU: Final = (1.67326319217681884765625, 1.05070102214813232421875)

PLAIN: Final[Mapping[str, str]] = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "HardSwish": "hard_swish",
    "Log": "log",
    "Mish": "mish",
    "Neg": "neg",
    "Reciprocal": "reciprocal",
    "Round": "round",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
"""Operators without parameters, by the names of `graph.functions`."""

WITH_PARAMETERS: Final[Mapping[str, tuple[str, tuple[tuple[str, float], ...]]]] = {
    "Celu": ("celu", (("alpha", 1.0),)),
    "Elu": ("elu", (("alpha", 1.0),)),
    "HardSigmoid": ("hard_sigmoid", (("alpha", 0.2), ("beta", 0.5))),
    "LeakyRelu": ("leaky_relu", (("alpha", 0.01),)),
    "Selu": ("selu", (("alpha", _SELU[0]), ("gamma", _SELU[1]))),
    "Shrink": ("shrink", (("bias", 0.0), ("lambd", 0.5))),
    "ThresholdedRelu": ("thresholded_relu", (("alpha", 1.0),)),
}
"""Operators with parameters: the function, its attributes and what they are when absent."""


def unary(call: OnnxCall, scope: Scope) -> Lowered:
    """Any of the operators above."""
    return Lowered((function_of(call),), (scope.activation(call),))


def function_of(call: OnnxCall) -> Unary:
    """The function that one of the operators above is."""
    function, given = WITH_PARAMETERS.get(call.operator) or (PLAIN[call.operator], ())
    return Unary(function=function, parameters=tuple(call.number(*each) for each in given))


def gelu(call: OnnxCall, scope: Scope) -> Lowered:
    """Gelu, exact or by a hyperbolic tangent."""
    kind = call.text("approximate", "none")
    if kind not in ("none", "tanh"):
        raise RefusedError(f"approximate {kind!r} is unknown")
    function = "gelu" if kind == "none" else "gelu_tanh"
    return Lowered((Unary(function=function),), (scope.activation(call),))


def prelu(call: OnnxCall, scope: Scope) -> Lowered:
    """PRelu with one constant slope, one for each channel, or in any other place.

    The last is max(x, 0) + slope * min(x, 0).
    """
    name = scope.activation(call)
    slope, shape = scope.weights(call, 1, "slope"), scope.shapes[name]
    if slope.size == 1:
        one = (float(slope.reshape(-1)[0]),)
        return Lowered((Unary(function="leaky_relu", parameters=one),), (name,))
    aligned = (1,) * (len(shape) - slope.ndim) + slope.shape
    if aligned == (1, shape[1], *(1,) * (len(shape) - 2)) and scope.held(name) == shape:
        return Lowered((Slopes(slope=np.ascontiguousarray(slope.reshape(-1))),), (name,))
    if not can_be_repeated(slope, shape):
        raise RefusedError(f"slope {list(slope.shape)} does not fit {list(shape)}")
    sample = of_a_sample(slope, shape, scope.batch)
    negative = (Clip(lo=-math.inf, hi=0.0), *with_constants(scope.held(name), sample, 0.0))
    below = scope.beside("below", Lowered(negative, (name,), shape), call)
    above = scope.beside("above", Lowered((Clip(lo=0.0, hi=math.inf),), (name,), shape), call)
    return Lowered((Add(),), (above, below), shape)


def power(call: OnnxCall, scope: Scope) -> Lowered:
    """Pow with one constant exponent; see `combined` for several."""
    name = scope.activation(call)
    one = (float(scope.weights(call, 1, "exponent").reshape(-1)[0]),)
    return Lowered((Unary(function="power", parameters=one),), (name,))


def swish(call: OnnxCall, scope: Scope) -> Lowered:
    """Swish: x times the sigmoid of alpha x."""
    name = scope.activation(call)
    alpha = call.number("alpha", 1.0)
    if alpha == 1:
        return Lowered((Unary(function="swish"),), (name,))
    gate = (*with_constants(scope.held(name), alpha, 0.0), Unary(function="sigmoid"))
    opened = scope.beside("gate", Lowered(gate, (name,), scope.shapes[name]), call)
    return Lowered((Product(),), (name, opened), scope.shapes[name])


RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys((*PLAIN, *WITH_PARAMETERS), unary),
    "Gelu": gelu,
    "PRelu": prelu,
    "Pow": power,
    "Swish": swish,
}
"""What each operator of this kind becomes."""
