"""Reductions along axes: sums, means, extremes, norms, and what is computed from them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from driver.network.frontend.batch_layout import Along, along
from driver.network.frontend.call import Lowered, OnnxCall, Scope, axis_within
from driver.network.graph import ir
from driver.network.graph.ir import Shape, Window

_SOFTMAX_AXIS_CHANGED: Final = 13
_IMAGE_RANKS: Final = (3, 4, 5)
_LARGEST: Final = float(np.finfo(np.float32).max)
_FINITE: Final = ir.Clip(lo=-_LARGEST, hi=_LARGEST)
_SQUARE: Final = ir.Unary(function="power", parameters=(2.0,))

KINDS: Final[dict[str, tuple[tuple[ir.Operator, ...], ir.ReduceKind, tuple[ir.Operator, ...]]]] = {
    "ReduceL1": ((ir.Unary(function="abs"),), "sum", ()),
    "ReduceL2": ((_SQUARE,), "sum", (ir.Unary(function="sqrt"),)),
    "ReduceLogSum": ((), "sum", (ir.Unary(function="log"),)),
    "ReduceMax": ((), "max", ()),
    "ReduceMean": ((), "mean", ()),
    "ReduceMin": ((), "min", ()),
    "ReduceProd": ((), "prod", ()),
    "ReduceSum": ((), "sum", ()),
    "ReduceSumSquare": ((_SQUARE,), "sum", ()),
}
"""What is done to every element, what is taken along the axes, and what is done to the result."""


def reduction(call: OnnxCall, scope: Scope) -> Lowered:
    """Any of the operators above, along constant axes."""
    name = scope.activation(call)
    shape, axes = scope.shapes[name], _axes(call, scope)
    first, kind, last = KINDS[call.operator]
    form = along(shape, axes, scope.batch)
    middle = _reduced(form, kind) if axes else ()
    return Lowered((*form.before, *first, *middle, *last), (name,), _left(call, shape, axes))


def log_sum_exp(call: OnnxCall, scope: Scope) -> Lowered:
    """ReduceLogSumExp: m + log(sum(exp(x - m))), m the largest, or the largest finite number.

    Of infinities the difference would be NaN.
    """
    name = scope.activation(call)
    shape, axes = scope.shapes[name], _axes(call, scope)
    form = along(shape, axes, scope.batch)
    kept = tuple(1 if axis in form.axes else e for axis, e in enumerate(form.shape))
    x = scope.beside("x", Lowered(form.before, (name,), form.shape), call)
    largest = scope.beside(
        "largest", Lowered((ir.Reduce(kind="max", axes=form.axes), _FINITE), (x,), kept), call
    )
    below = Lowered((ir.Add(subtracts=True), ir.Unary(function="exp")), (x, largest), form.shape)
    powers = scope.beside("powers", below, call)
    chain = (ir.Reduce(kind="sum", axes=form.axes), ir.Unary(function="log"))
    logs = scope.beside("logs", Lowered(chain, (powers,), kept), call)
    return Lowered((ir.Add(),), (logs, largest), _left(call, shape, axes))


def softmax(call: OnnxCall, scope: Scope) -> Lowered:
    """Softmax along an axis; before opset 13 along this one and all behind it together."""
    return _softmax(call, scope, log=False)


def log_softmax(call: OnnxCall, scope: Scope) -> Lowered:
    """LogSoftmax as x - m - log(sum(exp(x - m))), m the largest, however small it is.

    ONNX's reference has the logarithm of what float32 keeps of a softmax, which ends at -104.
    """
    return _softmax(call, scope, log=True)


def _softmax(call: OnnxCall, scope: Scope, *, log: bool) -> Lowered:
    name = scope.activation(call)
    shape = scope.shapes[name]
    together = call.opset < _SOFTMAX_AXIS_CHANGED
    axis = axis_within(call.integer("axis", 1 if together else -1), len(shape))
    rows = (*shape[:axis], math.prod(shape[axis:])) if together else shape
    form = along(rows, (axis,), scope.batch)
    flat: tuple[ir.Operator, ...] = (ir.Reshape(shape=form.shape[1:]),)
    before = form.before or (flat if len(rows) < len(shape) else ())
    return Lowered((*before, ir.Softmax(axis=form.axes[0], log=log)), (name,), shape)


def _axes(call: OnnxCall, scope: Scope) -> tuple[int, ...]:
    """The axes from the input or the attribute; where none is given, all of them or none."""
    rank = len(scope.shapes[scope.activation(call)])
    given = scope.integers(call, 1, "axes") if call.has_input(1) else call.integers("axes")
    if not given:
        return () if call.integer("noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(sorted({axis_within(axis, rank) for axis in given}))


def _left(call: OnnxCall, shape: Shape, axes: tuple[int, ...]) -> Shape:
    """The shape of the result in the file."""
    if call.integer("keepdims", 1):
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def _reduced(form: Along, kind: ir.ReduceKind) -> tuple[ir.Operator, ...]:
    """The reduction; that of whole images is a pooling, which the accelerator has."""
    rank = len(form.shape)
    of_images = rank in _IMAGE_RANKS and form.axes == tuple(range(2, rank))
    if not of_images or kind in ("min", "prod"):
        return (ir.Reduce(kind=kind, axes=form.axes),)
    channels, *extents = form.shape[1:]
    height, width = extents if rank == 4 else (1, math.prod(extents))
    before = () if rank == 4 else (ir.Reshape(shape=(channels, height, width)),)
    window, area = Window(kernel=(height, width)), height * width
    if kind == "max":
        return (*before, ir.MaxPool2d(window=window))
    divisor = np.full((1, 1), area if kind == "mean" else 1, np.float32)
    return (*before, ir.AvgPool2d(window=window, divisor=divisor))
