"""Nodes whose operands are all known are computed at import, as ONNX's own reference does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import onnx

from driver.network.frontend.call import Array, OnnxCall, RefusedError, Scope
from driver.network.frontend.file import tensor_array
from driver.network.frontend.integers.stored import dequantized, quantized
from driver.network.frontend.operators.functions import PLAIN, WITH_PARAMETERS, function_of
from driver.network.graph.functions import evaluate

_OF_SHAPES: Final = frozenset({"Shape", "Size"})
_BY_REFERENCE: Final = frozenset(
    {"Add", "And", "CastLike", "Cast", "Clip", "Concat", "ConstantOfShape", "CumSum", "Div"}
    | {"Dropout", "Equal", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Greater"}
    | {"GreaterOrEqual", "Identity", "IsInf", "IsNaN", "Less", "LessOrEqual", "MatMul", "Max"}
    | {"Min", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot", "Or", "Pow", "Range", "ReduceMax"}
    | {"ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Relu", "Reshape", "ScatterND"}
    | {"Slice", "Split", "Squeeze", "Sub", "Sum", "Tile", "Transpose", "Trilu", "Unsqueeze"}
    | {"Where", "Xor"}
)
"""The arithmetic of shapes, indices and masks. Others are slow there: see `computed`."""
_MOST_ELEMENTS: Final = 1 << 26


def constant_results(call: OnnxCall, scope: Scope) -> tuple[Array, ...] | None:
    """The values of a node that needs no activation; None where it needs one, or is no rule here.

    Raises:
        RefusedError: its operands do not fit.
    """
    if call.operator in _OF_SHAPES:
        shape = _shape(call, scope)
        return None if shape is None else (shape,)
    names = [name for name in call.inputs if name]
    if call.operator == "CastLike" and scope.is_constant(names[0]):
        return (_cast_like(names, scope),)
    if call.operator not in CONSTANT_OPERATORS:
        return None
    if not all(scope.is_constant(name) for name in names):
        return None
    if not names and call.operator != "Constant":
        return None
    operands = [scope.constants.get(name, _NOTHING) for name in call.inputs]
    try:
        with np.errstate(all="ignore"):
            if call.operator in _RULES:
                return (np.asarray(_RULES[call.operator](call, operands)),)
            return _by_reference(call, operands)
    except Exception as error:  # damaged models make numpy and the reference raise anything
        raise RefusedError(f"cannot be computed at import: {error}") from None


_NOTHING: Final = np.zeros(0, np.int64)


def _by_reference(call: OnnxCall, operands: Sequence[Array]) -> tuple[Array, ...]:
    """What the reference makes of a node; reals of unlike precision are brought to the best."""
    from onnx.reference import ReferenceEvaluator  # few networks need what takes a tenth of a start

    if call.operator in _GROWING:
        shape = [int(extent) for extent in _GROWING[call.operator](operands)]
        if math.prod(shape) > _MOST_ELEMENTS:  # which only a broken file asks for
            raise RefusedError(f"makes a constant of shape {shape}")
    if call.operator == "Div" and operands[1].dtype.kind in "iu" and not operands[1].all():
        raise RefusedError("divides by zero")
    reals = [each.dtype for each in operands if each.dtype.kind == "f"]
    best = np.result_type(*reals) if reals else None
    inputs = [str(at) if name else "" for at, name in enumerate(call.inputs)]
    feeds = {
        str(at): each if best is None or each.dtype.kind != "f" else each.astype(best, copy=False)
        for at, each in enumerate(operands)
    }
    node = onnx.helper.make_node(call.operator, inputs, call.outputs, **call.attrs)
    results = [onnx.helper.make_empty_tensor_value_info(name) for name in call.outputs if name]
    graph = onnx.helper.make_graph([node], call.name, [], results)
    opset = onnx.helper.make_opsetid("", call.opset)
    made = ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=[opset]))
    found = iter(made.run(None, {name: feeds[name] for name in inputs if name}))
    return tuple(_single(np.asarray(next(found))) if name else _NOTHING for name in call.outputs)


_GROWING: Final[Mapping[str, Callable[[Sequence[Array]], Sequence[int] | Array]]] = {
    "ConstantOfShape": lambda x: x[0],
    "Expand": lambda x: np.broadcast_shapes(x[0].shape, tuple(int(v) for v in x[1])),
    "OneHot": lambda x: (x[0].size, int(x[1].reshape(()))),
    "Range": lambda x: [math.ceil((float(x[1].item()) - float(x[0].item())) / x[2].item())],
    "Tile": lambda x: [e * int(r) for e, r in zip(x[0].shape, x[1], strict=True)],
}
"""Operators whose results may be larger than what the file holds, with these results' shapes."""


def _single(values: Array) -> Array:
    """The float32 that a bfloat16 is the upper half of."""
    return values.astype(np.float32) if values.dtype.name == "bfloat16" else values


def _cast_like(names: Sequence[str], scope: Scope) -> Array:
    """A constant in the type of another tensor; activations are float32."""
    like = scope.constants.get(names[-1])
    return scope.constants[names[0]].astype(np.float32 if like is None else like.dtype)


def _shape(call: OnnxCall, scope: Scope) -> Array | None:
    name = call.inputs[0] if call.has_input(0) else ""
    known = scope.constants[name].shape if name in scope.constants else None
    shape = known if known is not None else scope.shapes.get(scope.resolved(name))
    if shape is None:
        return None
    if call.operator == "Size":
        return np.array(math.prod(shape), np.int64)
    end = call.attrs.get("end")
    return np.array(shape[call.integer("start", 0) : end], np.int64)


def _constant(call: OnnxCall, _: list[Array]) -> Array:
    for name in ("value_float", "value_floats"):
        if name in call.attrs:
            return np.array(call.attrs[name], np.float32)
    for name in ("value_int", "value_ints"):
        if name in call.attrs:
            return np.array(call.attrs[name], np.int64)
    if "value" not in call.attrs:
        raise RefusedError(f"has no numeric value but {sorted(call.attrs)}")
    return tensor_array(call.attrs["value"])


def _function(call: OnnxCall, operands: list[Array]) -> Array:
    (x,) = operands
    function = function_of(call)
    return evaluate(function.function, x, function.parameters).astype(x.dtype)


_RULES: Final[Mapping[str, Callable[[OnnxCall, list[Array]], Array]]] = {
    **dict.fromkeys({*PLAIN, *WITH_PARAMETERS} - _BY_REFERENCE, _function),
    "Constant": _constant,
    "DequantizeLinear": dequantized,
    "QuantizeLinear": quantized,
}

CONSTANT_OPERATORS: Final = _BY_REFERENCE | _OF_SHAPES | _RULES.keys()
"""The operators that are computed at import where their inputs are known."""
