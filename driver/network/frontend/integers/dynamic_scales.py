"""Scales that data decide while a network runs: they become static, and must cancel.

    q, s, z = DynamicQuantizeLinear(x);  y = Cast(MatMulInteger(q, w, z)) * s

is the network `y = x w`, whatever s is. So s is taken as 1 and q as x; every name that is a
multiple of such a scale, or in units of one, is known, and only operators that undo it may read it.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from driver.network.frontend.call import OnnxCall, RefusedError, Scope

Units: TypeAlias = tuple[str, ...]
"""The dynamic quantizations whose scales are a factor of a name's values, sorted."""

MOVES: Final = frozenset(
    {"Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements"}
    | {"GatherND", "Identity", "MaxPool", "Pad", "Reshape", "Resize", "ReverseSequence", "Slice"}
    | {"SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze"}
)
"""Operators with the same meaning on integers as on the reals behind them."""

_KEEP: Final = MOVES | {"Cast"}
_MAKES: Final = "DynamicQuantizeLinear"
_AGREEING: Final = {
    "ConvInteger": ((0, 2), (1, 3)),
    "MatMulInteger": ((0, 2), (1, 3)),
    "MatMulIntegerToFloat": ((0, 2, 4), (1, 3, 5)),
    "DequantizeLinear": ((0, 1, 2),),
}
"""The inputs that belong to one quantization: integers, their scale, their zero point."""
_SUMS: Final = frozenset({"ConvInteger", "MatMulInteger"})


def after(call: OnnxCall, scope: Scope) -> Units:
    """The units of a call's results.

    Raises:
        RefusedError: it needs the number that a dynamic scale is.
    """
    given = [scope.units.get(name, ()) for name in call.inputs]
    if call.operator == _MAKES and not any(given):
        return call.outputs[:1]
    if not any(given) or (call.operator in _KEEP and not any(given[1:])):
        return next(iter(given), ())
    if call.operator in _AGREEING and _agree(call, given):
        return tuple(sorted((*given[0], *given[1]))) if call.operator in _SUMS else ()
    if call.operator == "Mul" and len(given) == 2:
        product = _multiplied(call, scope, given)
        if product is not None:
            return product
    raise RefusedError(
        "needs the number that the scale of a DynamicQuantizeLinear has; only what multiplies the"
        " integers made with it is supported"
    )


def _agree(call: OnnxCall, given: list[Units]) -> bool:
    """Whether integers, scales and zero points come from the same quantizations."""
    return all(
        given[index] == given[group[0]]
        for group in _AGREEING[call.operator]
        for index in group
        if call.has_input(index)
    )


def _multiplied(call: OnnxCall, scope: Scope, given: list[Units]) -> Units | None:
    """The units of a product: of scales, those of both; of integers and scales, what is left."""
    scales = [scope.is_constant(name) for name in call.inputs]
    if all(scales):
        return tuple(sorted((*given[0], *given[1])))
    if not any(scales):
        return None
    counted, factors = (given[1], given[0]) if scales[0] else (given[0], given[1])
    left = list(counted)
    for factor in factors:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)
