"""Shapes of results, and what an operator refuses about the shapes of its operands."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tilefarm.errors import ModelError

from driver.network.graph import ir
from driver.network.graph.ir import Graph, GraphInput, GraphNode, GraphOutput, Shape, Window

_IMAGE_RANK = 4
_MOST_ELEMENTS = 1 << 30


def result_shape(op: ir.Operator, shapes: Sequence[Shape]) -> Shape:
    """The shape of the result of `op` on operands of `shapes`.

    Raises:
        ValueError: the operands do not fit the operator; the text says why.
    """
    shape = _shape(op, shapes)
    if math.prod(shape) > _MOST_ELEMENTS:
        raise ValueError(f"its result {list(shape)} is too large")
    return shape


def graph_of(
    name: str,
    inputs: Sequence[GraphInput],
    outputs: Sequence[GraphOutput],
    nodes: Iterable[GraphNode],
) -> Graph:
    """A graph with the shapes of all its tensors.

    Raises:
        ModelError: operands do not fit; every such node is listed.
    """
    shapes = {i.name: i.shape for i in inputs}
    kept, reasons = [], []
    for node in nodes:
        kept.append(node)
        if any(i not in shapes for i in node.inputs):
            continue
        try:
            shapes[node.output] = result_shape(node.op, [shapes[i] for i in node.inputs])
        except ValueError as reason:
            reasons.append(f"{node.name} ({type(node.op).__name__}): {reason}")
    if reasons:
        raise ModelError("; ".join(reasons), "see that the shapes of its operands fit together")
    return Graph(
        name=name, inputs=tuple(inputs), outputs=tuple(outputs), nodes=tuple(kept), shapes=shapes
    )


def _require_channels(x: Shape, channels: int) -> None:
    if len(x) < 2 or x[1] != channels:
        raise ValueError(f"input {list(x)} does not have the {channels} channels of the weights")


def _require_axes(x: Shape, axes: tuple[int, ...]) -> None:
    """Every sample is worked on by itself: axis 0 is not among them."""
    if not axes or any(not 1 <= axis < len(x) for axis in axes) or len({*axes}) != len(axes):
        raise ValueError(f"works along the axes {list(axes)} of {list(x)}")


def _combined(a: Shape, b: Shape) -> Shape:
    """The shape of a binary operator's result: extents of 1 are repeated, but for the batch."""
    fits = len(a) == len(b) and a[:1] == b[:1]
    if not fits or any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
        raise ValueError(
            f"combines {list(a)} and {list(b)}; only extents of 1 may differ, and not in the batch"
        )
    return tuple(map(max, a, b))


def _multiplied(a: Shape, b: Shape, groups: int) -> Shape:
    """The shape of a product along the channels of both operands."""
    if len(a) != 3 or len(b) != 3 or a[:2] != b[:2] or groups < 1 or a[1] % groups:
        raise ValueError(
            f"multiplies {list(a)} and {list(b)} along their channels in {groups} groups"
        )
    return (a[0], groups * a[2], b[2])


def _taken(places: Shape, x: Shape) -> Shape:
    """The shape of columns of x [N, C, V] at places [N, K]."""
    if len(places) != 2 or len(x) != 3 or places[0] != x[0]:
        raise ValueError(f"takes the places {list(places)} of {list(x)}")
    return (*x[:2], places[1])


def _slide(x: Shape, window: Window) -> tuple[int, int]:
    if len(x) != _IMAGE_RANK:
        raise ValueError(f"input {list(x)} is not [N, C, H, W]; only 2-D windows are supported")
    rows, columns = window.positions(x[2], x[3])
    if rows < 1 or columns < 1:
        raise ValueError(f"window {list(window.kernel)} does not fit into {list(x)}")
    return rows, columns


def _shape(op: ir.Operator, shapes: Sequence[Shape]) -> Shape:
    x = shapes[0]
    match op:
        case ir.Conv2d(weight=weight, window=window, groups=groups):
            _require_channels(x, weight.shape[1] * groups)
            return (x[0], weight.shape[0], *_slide(x, window))
        case ir.ConvTranspose2d(weight=weight, stride=stride):
            _require_channels(x, weight.shape[3])
            rows, columns = _slide(x, op.window)
            return (x[0], weight.shape[0], rows * stride[0], columns * stride[1])
        case ir.Dense(weight=weight):
            if len(x) != 2 or x[1] != weight.shape[1]:
                raise ValueError(f"input {list(x)} does not fit weights [{weight.shape[1]} in]")
            return (x[0], weight.shape[0])
        case ir.MatMul(groups=groups, scale=scale):
            if not scale > 0:
                raise ValueError(f"scales by {scale}, which is not positive")
            return _multiplied(x, shapes[1], groups)
        case ir.Add() | ir.Product() | ir.Extreme():
            return _combined(shapes[0], shapes[1])
        case ir.Slopes(slope=slope):
            _require_channels(x, slope.shape[0])
        case ir.Gather(index=index):
            if index.size and index.max() >= math.prod(x[1:]):
                raise ValueError(f"takes element {index.max()} of {list(x)}")
            return (x[0], *index.shape)
        case ir.Take(table=table):
            return _taken(x, shapes[1] if table is None else (x[0], *table.shape))
        case ir.Concat():
            if any((s[0], *s[2:]) != (x[0], *x[2:]) for s in shapes):
                raise ValueError(f"joins {[list(s) for s in shapes]}; only channels may differ")
            return (x[0], sum(s[1] for s in shapes), *x[2:])
        case ir.Slice(start=start, stop=stop):
            if not 0 <= start < stop <= x[1]:
                raise ValueError(f"takes channels {start} to {stop} of {list(x)}")
            return (x[0], stop - start, *x[2:])
        case ir.Affine(weight=mul):
            _require_channels(x, mul.shape[0])
        case ir.MaxPool2d(window=window) | ir.AvgPool2d(window=window):
            return (*x[:2], *_slide(x, window))
        case ir.Reshape(shape=shape):
            if math.prod(x[1:]) != math.prod(shape):
                raise ValueError(f"cannot reshape {list(x)} to {[x[0], *shape]}")
            return (x[0], *shape)
        case ir.Reduce(axes=axes):
            _require_axes(x, axes)
            return tuple(1 if axis in axes else extent for axis, extent in enumerate(x))
        case ir.Normalize(axes=axes):
            _require_axes(x, axes)
        case ir.Softmax(axis=axis):
            _require_axes(x, (axis,))
        case ir.Custom(held=held):
            return held
        case ir.ScaleSums(scale=scale) if len(scale) > 1:
            _require_channels(x, scale.shape[0])
        case ir.Clip() | ir.SubtractZeroPoint() | ir.Unary() | ir.FakeQuantize() | ir.ScaleSums():
            pass
    return x
