"""Arithmetic with a tensor of constants, written as steps: Mod, and Pow of several exponents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from driver.network.frontend.call import Array, OnnxCall, RefusedError
from driver.network.frontend.operators.moves import check_few
from driver.network.frontend.steps import FLOAT, Composition, Steps

_MOST_EXPONENTS: Final = 64
"""Each is a node of its own; networks have two or three."""


def modulo(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """Mod by constants: what a whole quotient leaves, its sign the divisor's or, with fmod, x's."""
    given = do.value(call.inputs[1])
    if given is None or not np.isfinite(given).all() or not given.all():
        raise RefusedError("its divisor must be constant and finite, and not 0")
    x, divisor = (do("Cast", name, to=FLOAT) for name in call.inputs[:2])
    quotient = do("Div", x, divisor)
    if call.integer("fmod", 0):
        whole = do("Mul", do("Sign", quotient), do("Floor", do("Abs", quotient)))
    else:
        whole = do("Floor", quotient)
    rest = do("Sub", x, do("Mul", whole, divisor))
    return (do("CastLike", rest, call.inputs[0]),)


def power(call: OnnxCall, do: Steps) -> tuple[str, ...] | None:
    """Pow of a constant, or to exponents that differ from place to place; one exponent is a rule.

    Every exponent takes its own places, so that no element sees a power that is not its own.
    """
    name, exponent = call.inputs[:2]
    exponents, base = do.value(exponent), do.value(name)
    if base is not None:
        return (_of_constant(do, base, exponent),)
    shape = do.shape(name)
    if exponents is None or (exponents.size == 1 and exponents.ndim <= len(shape)):
        return None
    whole = np.broadcast_shapes(shape, exponents.shape)
    check_few(whole)
    different = np.unique(exponents)
    if len(different) > _MOST_EXPONENTS:
        raise RefusedError(f"has {len(different)} exponents; at most {_MOST_EXPONENTS} are taken")
    row = do("Reshape", do("Expand", name, whole), [-1])
    given = np.broadcast_to(exponents, whole).reshape(-1)
    places = [np.flatnonzero(given == each) for each in different]
    parts = [
        do("Pow", do("Gather", row, at), each) for at, each in zip(places, different, strict=True)
    ]
    joined = do("Concat", *parts, axis=0)
    back = do("Gather", joined, np.argsort(np.concatenate(places)))
    return (do("Reshape", back, whole),)


def _of_constant(do: Steps, base: Array, exponent: str) -> str:
    """a^x is e^(x log a) for positive a."""
    if base.dtype.kind != "f" or not (base > 0).all():
        raise RefusedError("a base that is constant must be positive reals")
    power = do("Mul", do("Cast", exponent, to=FLOAT), np.log(base.astype(np.float64)))
    return do("Exp", power)


COMPOSITIONS: Final[Mapping[str, Composition]] = {"Mod": modulo, "Pow": power}
"""What each operator of this kind is written as."""
