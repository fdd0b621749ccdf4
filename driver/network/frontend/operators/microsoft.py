"""Operators of the domain `com.microsoft`, which ONNX Runtime's quantizers and optimizers write."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Rule, Scope
from driver.network.frontend.integers import qdq_pairs
from driver.network.frontend.integers.qlinear import (
    between_grids,
    bias,
    check_parameters,
    conv,
    operand,
    weights,
)
from driver.network.frontend.integers.whole_weights import dynamically_rounded, in_whole_numbers
from driver.network.frontend.operators import (
    binary,
    functions,
    joining,
    matrices,
    reductions,
    windows,
)
from driver.network.graph.ir import Clip, Operator, Unary

_GEMM: Final = in_whole_numbers(matrices.gemm)


def gemm(call: OnnxCall, scope: Scope) -> Lowered:
    """QGemm(a, scale, zero, b, scale, zero[, c, scale, zero]); without the last two it is real."""
    check_parameters(call, scope, (1, 4, 7) if call.has_input(7) else (1, 4))
    x = operand(call, scope, 0)
    weight = weights(call, scope, 3, axis=0 if call.integer("transB", 0) else -1)
    inputs = [x, weight, *bias(call, scope, 6)]
    if call.has_input(7):
        return between_grids(call, scope, _GEMM, inputs, 7)
    return _GEMM(replace(call, inputs=tuple(inputs)), scope)


def of_one(rule: Rule, operator: str) -> Rule:
    """An operator (x, scale, zero, scale, zero) on one tensor: the float one between grids."""

    def taken(call: OnnxCall, scope: Scope) -> Lowered:
        if call.integer("channels_last", 0):
            raise RefusedError("channels_last is not supported")
        check_parameters(call, scope, (1, 3))
        meant = replace(call, operator=operator)
        return between_grids(meant, scope, rule, [operand(call, scope, 0)], 3)

    return taken


def of_two(rule: Rule) -> Rule:
    """An operator (a, scale, zero, b, scale, zero, scale, zero); one of them may be a constant."""

    def taken(call: OnnxCall, scope: Scope) -> Lowered:
        check_parameters(call, scope, (1, 4, 6))
        return between_grids(call, scope, rule, [operand(call, scope, i) for i in (0, 3)], 6)

    return taken


def concat(call: OnnxCall, scope: Scope) -> Lowered:
    """QLinearConcat(scale, zero, and for each part: x, scale, zero)."""
    parts = [operand(call, scope, index) for index in range(2, len(call.inputs), 3)]
    return between_grids(call, scope, joining.concat, parts, 0)


def softmax(call: OnnxCall, scope: Scope) -> Lowered:
    """QLinearSoftmax(x, scale, zero, scale, zero), with the meaning of the set in `opset`."""
    meant = replace(call, opset=call.integer("opset", call.opset))
    return between_grids(meant, scope, reductions.softmax, [operand(call, scope, 0)], 3)


def dynamic_matmul(call: OnnxCall, scope: Scope) -> Lowered:
    """DynamicQuantizeMatMul(a, b, scale[, zero, bias]) of a real a, whose range is calibrated."""
    weight = weights(_reading(call, 1, 2, 3), scope, 0, axis=-1)
    return _biased_matmul(call, scope, dynamically_rounded(call, scope), weight, 4)


def matmul_to_float(call: OnnxCall, scope: Scope) -> Lowered:
    """MatMulIntegerToFloat(a, b, scale, scale[, zero, zero, bias]) with a constant b."""
    x = operand(_reading(call, 0, 2, 4), scope, 0)
    weight = weights(_reading(call, 1, 3, 5), scope, 0, axis=-1)
    return _biased_matmul(call, scope, x, weight, 6)


def fused_conv(call: OnnxCall, scope: Scope) -> Lowered:
    """FusedConv(x, w[, bias]) with a function of its results."""
    if call.has_input(3):
        raise RefusedError("adds a fourth input")
    lowered = windows.conv(call, scope)
    return replace(lowered, chain=(*lowered.chain, *_activation(call)))


def gelu(call: OnnxCall, scope: Scope) -> Lowered:
    """Gelu(x), BiasGelu(x, bias) and FastGelu(x[, bias]), the last by a hyperbolic tangent."""
    kind = b"tanh" if call.operator == "FastGelu" else b"none"
    x = call.inputs[0]
    if call.has_input(1):
        x = scope.beside("biased", binary.add(call, scope), call)
    return functions.gelu(replace(call, inputs=(x,), attrs={"approximate": kind}), scope)


def _reading(call: OnnxCall, *indices: int) -> OnnxCall:
    """The call with only these of its inputs; absent ones at the end are left out."""
    return replace(call, inputs=tuple(call.inputs[i] for i in indices if call.has_input(i)))


def _biased_matmul(call: OnnxCall, scope: Scope, a: str, b: str, bias_index: int) -> Lowered:
    product = in_whole_numbers(matrices.matmul)(replace(call, inputs=(a, b)), scope)
    if not call.has_input(bias_index):
        return product
    name = scope.beside("product", product, call)
    return binary.add(replace(call, inputs=(name, call.inputs[bias_index])), scope)


def _activation(call: OnnxCall) -> tuple[Operator, ...]:
    """The function that the attribute `activation` names."""
    name = call.text("activation", "")
    numbers = [float(value) for value in call.attrs.get("activation_params", ())]
    if not name:
        return ()
    if name in ("Relu", "Clip"):
        lo, hi = numbers if name == "Clip" and len(numbers) == 2 else (0.0, math.inf)
        return (Clip(lo=lo, hi=hi),)
    if name in functions.PLAIN:
        return (Unary(function=functions.PLAIN[name]),)
    function, parameters = functions.WITH_PARAMETERS.get(name, ("", ()))
    if not function or len(parameters) != len(numbers):
        raise RefusedError(f"activation {name!r} with {len(numbers)} parameters is not supported")
    return (Unary(function=function, parameters=tuple(numbers)),)


RULES: Final[Mapping[str, Rule]] = {
    "BiasGelu": gelu,
    "DequantizeLinear": qdq_pairs.dequantize_linear,
    "DynamicQuantizeMatMul": dynamic_matmul,
    "FastGelu": gelu,
    "FusedConv": fused_conv,
    "Gelu": gelu,
    "MatMulIntegerToFloat": matmul_to_float,
    "QGemm": gemm,
    "QLinearAdd": of_two(binary.add),
    "QLinearAveragePool": of_one(windows.average_pool, "AveragePool"),
    "QLinearConcat": concat,
    "QLinearConv": conv,
    "QLinearGlobalAveragePool": of_one(windows.global_average_pool, "GlobalAveragePool"),
    "QLinearLeakyRelu": of_one(functions.unary, "LeakyRelu"),
    "QLinearMul": of_two(binary.multiply),
    "QLinearReduceMean": of_one(reductions.reduction, "ReduceMean"),
    "QLinearSigmoid": of_one(functions.unary, "Sigmoid"),
    "QLinearSoftmax": softmax,
    "QuantizeLinear": qdq_pairs.quantize_linear,
}
"""What each operator of the domain becomes."""
