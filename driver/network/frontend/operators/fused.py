"""What ONNX Runtime's optimizer makes one operator of, as the steps that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from driver.network.frontend.call import OnnxCall, RefusedError
from driver.network.frontend.steps import Composition, Steps, operand

_ALPHA: Final = 1.702
_EPSILON: Final = 1e-12
_SUM_AT: Final = 3
"""Which output of a normalization is the sum that it normalizes."""


def quick_gelu(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """QuickGelu: x times the sigmoid of alpha x."""
    x = call.inputs[0]
    return (do("Mul", x, do("Sigmoid", do("Mul", x, call.number("alpha", _ALPHA)))),)


def fused_matmul(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """FusedMatMul: alpha a b, each of which may be transposed."""
    if call.integer("transBatchA", 0) or call.integer("transBatchB", 0):
        raise RefusedError("turns axes of the batch; export the model without optimizing it")
    a, b = (
        _turned(do, name) if call.integer(attribute, 0) else name
        for name, attribute in zip(call.inputs, ("transA", "transB"), strict=False)
    )
    product = do("MatMul", a, b)
    alpha = call.number("alpha", 1.0)
    return (product if alpha == 1 else do("Mul", product, alpha),)


def _turned(do: Steps, name: str) -> str:
    """With its last two axes exchanged."""
    rank = len(do.shape(name))
    return name if rank < 2 else do("Transpose", name, perm=[*range(rank - 2), rank - 1, rank - 2])


def simplified_norm(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """SimplifiedLayerNormalization: what ONNX calls RMSNormalization."""
    attrs = {name: call.attrs[name] for name in ("axis", "epsilon") if name in call.attrs}
    return (do("RMSNormalization", *call.inputs, **attrs),)


def skip_norm(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """SkipLayerNormalization(x, skip, scale[, offset, bias]): the norm of x + skip + bias."""
    return _of_sum(call, do, "LayerNormalization", call.inputs[2:4], operand(call, 4))


def simplified_skip_norm(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """SkipSimplifiedLayerNormalization(x, skip, scale[, bias])."""
    return _of_sum(call, do, "RMSNormalization", call.inputs[2:3], operand(call, 3))


def _of_sum(
    call: OnnxCall, do: Steps, norm: str, scales: tuple[str, ...], bias: str
) -> tuple[str, ...]:
    total = do("Add", *call.inputs[:2])
    total = do("Add", total, bias) if bias else total
    given = [name for name in scales if name]
    made = do(norm, total, *given, axis=-1, epsilon=call.number("epsilon", _EPSILON))
    return (made, *("",) * (_SUM_AT - 1), total)


COMPOSITIONS: Final[Mapping[str, Composition]] = {
    "SimplifiedLayerNormalization": simplified_norm,
    "com.microsoft.FusedMatMul": fused_matmul,
    "com.microsoft.QuickGelu": quick_gelu,
    "com.microsoft.SkipLayerNormalization": skip_norm,
    "com.microsoft.SkipSimplifiedLayerNormalization": simplified_skip_norm,
}
"""What each operator of this kind is written as, those of another domain behind its name."""
