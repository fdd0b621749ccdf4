"""Shapes of results, and what an operator refuses about the shapes of its operands."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tilefarm.errors import ModelError

from driver.graph.ir import (
    Add,
    Affine,
    AvgPool2d,
    Clip,
    Conv2d,
    Dense,
    Graph,
    GraphInput,
    GraphOutput,
    MaxPool2d,
    Node,
    Operator,
    Reshape,
    Shape,
    Softmax,
    Window,
)

_IMAGE_RANK = 4
_MOST_ELEMENTS = 1 << 30


def result_shape(op: Operator, shapes: Sequence[Shape]) -> Shape:
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
    nodes: Iterable[Node],
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
        raise ModelError("; ".join(reasons))
    return Graph(
        name=name, inputs=tuple(inputs), outputs=tuple(outputs), nodes=tuple(kept), shapes=shapes
    )


def _require_channels(x: Shape, channels: int) -> None:
    if len(x) < 2 or x[1] != channels:
        raise ValueError(f"input {list(x)} does not have the {channels} channels of the weights")


def _slide(x: Shape, window: Window) -> tuple[int, int]:
    if len(x) != _IMAGE_RANK:
        raise ValueError(f"input {list(x)} is not [N, C, H, W]; only 2-D windows are supported")
    rows, columns = window.positions(x[2], x[3])
    if rows < 1 or columns < 1:
        raise ValueError(f"window {list(window.kernel)} does not fit into {list(x)}")
    return rows, columns


def _shape(op: Operator, shapes: Sequence[Shape]) -> Shape:
    x = shapes[0]
    match op:
        case Conv2d(weight=weight, window=window):
            _require_channels(x, weight.shape[1])
            return (x[0], weight.shape[0], *_slide(x, window))
        case Dense(weight=weight):
            if len(x) != 2 or x[1] != weight.shape[1]:
                raise ValueError(f"input {list(x)} does not fit weights [{weight.shape[1]} in]")
            return (x[0], weight.shape[0])
        case Add():
            if shapes[0] != shapes[1]:
                raise ValueError(
                    f"adds {list(shapes[0])} and {list(shapes[1])}; only equal shapes are supported"
                )
        case Affine(mul=mul):
            _require_channels(x, mul.shape[0])
        case MaxPool2d(window=window) | AvgPool2d(window=window):
            return (*x[:2], *_slide(x, window))
        case Reshape(shape=shape):
            if math.prod(x[1:]) != math.prod(shape):
                raise ValueError(f"cannot reshape {list(x)} to {[x[0], *shape]}")
            return (x[0], *shape)
        case Softmax():
            if len(x) < 2 or any(extent != 1 for extent in x[2:]):
                raise ValueError(f"softmax over channels of {list(x)}; only [N, C] is supported")
        case Clip():
            pass
    return x
