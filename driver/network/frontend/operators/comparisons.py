"""Comparisons and what is made of their results: true is 1, and false is 0.

They are of differences, so that of NaN, or of infinities of one sign, Less, Greater and Equal are
false, and LessOrEqual and GreaterOrEqual, which are the opposites of the former, are true. In ONNX
equal infinities are Equal, and NaN is never at most or at least anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from driver.network.frontend.call import Lowered, OnnxCall, Result, Scope
from driver.network.frontend.operators import binary
from driver.network.frontend.operators.channel_affine import with_constants
from driver.network.graph.ir import Clip, Operator, Reshape, Softmax, Unary

_POSITIVE: Final = Unary(function="positive")
_ZERO: Final = Unary(function="zero")


def less(call: OnnxCall, scope: Scope) -> Lowered:
    """Less: whether b - a is above 0."""
    return _followed(binary.subtract(_exchanged(call), scope), _POSITIVE)


def greater(call: OnnxCall, scope: Scope) -> Lowered:
    """Greater: whether a - b is above 0."""
    return _followed(binary.subtract(call, scope), _POSITIVE)


def at_most(call: OnnxCall, scope: Scope) -> Lowered:
    """LessOrEqual: not Greater."""
    return _negated(greater(call, scope), call, scope)


def at_least(call: OnnxCall, scope: Scope) -> Lowered:
    """GreaterOrEqual: not Less."""
    return _negated(less(call, scope), call, scope)


def equal(call: OnnxCall, scope: Scope) -> Lowered:
    """Equal: whether a - b is 0."""
    return _followed(binary.subtract(call, scope), _ZERO)


def both(call: OnnxCall, scope: Scope) -> Lowered:
    """And: the product."""
    return binary.multiply(call, scope)


def either(call: OnnxCall, scope: Scope) -> Lowered:
    """Or: the sum, at most 1."""
    return _followed(binary.add(call, scope), Clip(lo=0.0, hi=1.0))


def one_of_two(call: OnnxCall, scope: Scope) -> Lowered:
    """Xor: the difference without its sign."""
    return _followed(binary.subtract(call, scope), Unary(function="abs"))


def negation(call: OnnxCall, scope: Scope) -> Lowered:
    """Not: 1 - x."""
    name = scope.activation(call)
    return Lowered(with_constants(scope.held(name), -1.0, 1.0), (name,), scope.shapes[name])


def truth(call: OnnxCall, scope: Scope) -> Lowered:
    """Cast to truth values: whether x is anything but 0."""
    name = scope.activation(call)
    return _negated(Lowered((_ZERO,), (name,), scope.shapes[name]), call, scope)


def is_nan(call: OnnxCall, scope: Scope) -> Result:
    """IsNaN: never of a softmax, for masks here are large numbers instead of infinities."""
    name = scope.activation(call)
    if _is_softmax(name, scope):
        return np.zeros(scope.shapes[name], np.bool_)
    return Lowered((Unary(function="nan"),), (name,))


def _is_softmax(name: str, scope: Scope) -> bool:
    made = scope.maker(name)
    if made is not None and isinstance(made.op, Reshape):
        return _is_softmax(made.inputs[0], scope)
    return made is not None and isinstance(made.op, Softmax) and not made.op.log


def _exchanged(call: OnnxCall) -> OnnxCall:
    return replace(call, inputs=call.inputs[::-1])


def _followed(found: Lowered, *chain: Operator) -> Lowered:
    return replace(found, chain=(*found.chain, *chain))


def _negated(found: Lowered, call: OnnxCall, scope: Scope) -> Lowered:
    name = scope.beside("opposite", found, call)
    return Lowered(with_constants(scope.held(name), -1.0, 1.0), (name,), scope.shapes[name])


RULES: Final[Mapping[str, Callable[[OnnxCall, Scope], Result]]] = {
    "And": both,
    "Equal": equal,
    "Greater": greater,
    "GreaterOrEqual": at_least,
    "IsNaN": is_nan,
    "Less": less,
    "LessOrEqual": at_most,
    "Not": negation,
    "Or": either,
    "Xor": one_of_two,
}
"""What each operator of this kind becomes."""
