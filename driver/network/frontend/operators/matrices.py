"""MatMul, Gemm and Einsum of activations and constants."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np

from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Scope
from driver.network.frontend.operators import binary
from driver.network.frontend.operators.contraction import Factor, Labels, contracted
from driver.network.graph.ir import FloatArray, Shape

_FURTHER: Final = "..."
"""Axes of an equation that have no name."""


def matmul(call: OnnxCall, scope: Scope) -> Lowered:
    """MatMul as numpy does it: leading axes are repeated to fit, vectors are taken as matrices."""
    a, b = (_operand(call, scope, index) for index in (0, 1))
    first, second, result = _matmul_labels(_shape(a, scope), _shape(b, scope))
    return contracted(Factor(a, first), Factor(b, second), result, call, scope)


def gemm(call: OnnxCall, scope: Scope) -> Lowered:
    """Gemm: alpha * A * B + beta * C, A and B transposed or not."""
    a, b = (_operand(call, scope, index) for index in (0, 1))
    shapes = [_shape(each, scope) for each in (a, b)]
    if any(len(shape) != 2 for shape in shapes):
        raise RefusedError(f"multiplies {list(shapes[0])} by {list(shapes[1])}, not matrices")
    first = ("k", "m") if call.integer("transA", 0) else ("m", "k")
    second = ("n", "k") if call.integer("transB", 0) else ("k", "n")
    alpha, beta = (call.number(name, 1.0) for name in ("alpha", "beta"))
    scale = alpha if alpha > 0 else 1.0
    product = contracted(Factor(a, first), Factor(b, second), ("m", "n"), call, scope, scale)
    if alpha != scale:
        product = _times(scope.beside("sums", product, call), alpha, call, scope)
    if not call.has_input(2) or beta == 0:
        return product
    total = scope.beside("product", product, call)
    return binary.add(replace(call, inputs=(total, _addend(call, scope, beta))), scope)


def einsum(call: OnnxCall, scope: Scope) -> Lowered:
    """Einsum of two operands that sums over what both of them have; "..." are further axes."""
    equation = call.text("equation", "").replace(" ", "")
    axes = r"((?:[a-zA-Z]|\.{3})*)"
    found = re.fullmatch(rf"{axes},{axes}(?:->{axes})?", equation)
    if found is None or len(call.inputs) != 2:
        raise RefusedError(f"equation {equation!r}; only two operands of named axes are supported")
    first, second = (_axes(text) for text in found.groups()[:2])
    result = _implied(first + second) if found[3] is None else _axes(found[3])
    if any(len({*each}) != len(each) for each in (first, second, result)):
        raise RefusedError(f"equation {equation!r} names one axis twice")
    if not {*result} <= {*first, *second}:
        raise RefusedError(f"equation {equation!r} makes an axis that no operand has")
    a, b = (_operand(call, scope, index) for index in (0, 1))
    ahead, behind = (_further(_shape(x, scope), n, equation) for x, n in ((a, first), (b, second)))
    if _FURTHER not in result and (ahead or behind):
        raise RefusedError(f"equation {equation!r} sums over axes that it does not name")
    around = max(len(ahead), len(behind))
    return contracted(
        Factor(a, _spelled(first, _leading(ahead, behind, around))),
        Factor(b, _spelled(second, _leading(behind, ahead, around))),
        _spelled(result, tuple(range(around))),
        call,
        scope,
    )


def _axes(text: str) -> list[str]:
    return re.findall(r"[a-zA-Z]|\.{3}", text)


def _implied(names: list[str]) -> list[str]:
    """The axes of a result that an equation does not give: further ones, and those named once."""
    once = sorted(name for name in {*names} - {_FURTHER} if names.count(name) == 1)
    return [_FURTHER, *once] if _FURTHER in names else once


def _further(shape: Shape, names: list[str], equation: str) -> Shape:
    """The extents of the axes of an operand that have no name."""
    count = len(shape) - sum(name != _FURTHER for name in names)
    if count < 0 or (count and _FURTHER not in names):
        raise RefusedError(f"equation {equation!r} does not fit {list(shape)}")
    start = names.index(_FURTHER) if count else 0
    return shape[start : start + count]


def _spelled(names: list[str], further: Labels) -> Labels:
    """Labels of all axes, those without a name by their number."""
    return tuple(label for name in names for label in (further if name == _FURTHER else (name,)))


def _operand(call: OnnxCall, scope: Scope, index: int) -> str | FloatArray:
    """An activation's name, or a constant."""
    if scope.is_constant(call.inputs[index]):
        return scope.weights(call, index, "AB"[index])
    return scope.activation(call, index)


def _shape(operand: str | FloatArray, scope: Scope) -> Shape:
    return scope.shapes[operand] if isinstance(operand, str) else operand.shape


def _matmul_labels(a: Shape, b: Shape) -> tuple[Labels, Labels, Labels]:
    """Labels of both operands and the result; leading axes have their number."""
    if not a or not b:
        raise RefusedError("multiplies a number; only vectors, matrices and more axes")
    around = max(len(a), len(b), 2) - 2
    first, second = _leading(a[:-2], b[:-2], around), _leading(b[:-2], a[:-2], around)
    rows: Labels = ("m",) if len(a) > 1 else ()
    columns: Labels = ("n",) if len(b) > 1 else ()
    inner = ("k", *columns) if columns else ("k",)
    return (*first, *rows, "k"), (*second, *inner), (*range(around), *rows, *columns)


def _leading(shape: Shape, other: Shape, around: int) -> Labels:
    """Labels of leading axes, None for one that is repeated to fit the other operand's."""
    ahead = (1,) * (around - len(other)) + other
    start = around - len(shape)
    return tuple(
        None if extent == 1 < ahead[start + at] else start + at for at, extent in enumerate(shape)
    )


def _addend(call: OnnxCall, scope: Scope, beta: float) -> str:
    """The name of beta * C."""
    if scope.is_constant(call.inputs[2]):
        name = f"{call.outputs[0]}.addend"
        scope.constants[name] = scope.weights(call, 2, "C") * np.float32(beta)
        return name
    name = scope.activation(call, 2)
    if beta == 1:
        return name
    return scope.beside("addend", _times(name, beta, call, scope), call)


def _times(name: str, number: float, call: OnnxCall, scope: Scope) -> Lowered:
    """An activation times a number."""
    factor = f"{name}.factor"
    scope.constants[factor] = np.array(number, np.float32)
    return binary.multiply(replace(call, inputs=(name, factor)), scope)
