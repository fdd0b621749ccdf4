"""Runs a float network in numpy, many samples at once: what integers are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from driver.graph.columns import correlate, padded, patches
from driver.graph.ir import (
    Add,
    Affine,
    AvgPool2d,
    Clip,
    Conv2d,
    Dense,
    FloatArray,
    Graph,
    MaxPool2d,
    Node,
    Operator,
    Reshape,
    Softmax,
)
from driver.graph.parts import in_parts


def look_away(_name: str, _values: FloatArray) -> None:
    """The observer that observes nothing."""


def run_float(
    graph: Graph,
    inputs: Mapping[str, FloatArray],
    *,
    observe: Callable[[str, FloatArray], None] = look_away,
) -> dict[str, FloatArray]:
    """The outputs by name, float32 [samples, ...], for inputs [samples, ...] in the graph's layout.

    `observe` sees every tensor, the inputs included, a part of the samples at a time.
    """
    return in_parts(lambda part: _run_part(graph, part, observe), inputs)


def _run_part(
    graph: Graph, inputs: Mapping[str, FloatArray], observe: Callable[[str, FloatArray], None]
) -> dict[str, FloatArray]:
    values: dict[str, FloatArray] = {}
    for i in graph.inputs:
        values[i.name] = np.asarray(inputs[i.name], np.float32)
        observe(i.name, values[i.name])
    last_use = {name: node for node in graph.nodes for name in node.inputs}
    wanted = {output.tensor for output in graph.outputs}
    for node in graph.nodes:
        result = apply(node.op, *(values[name] for name in node.inputs))
        observe(node.output, result)
        values[node.output] = result
        _forget(values, node, last_use, wanted)
    return {output.name: values[output.tensor] for output in graph.outputs}


def apply(op: Operator, *operands: FloatArray) -> FloatArray:
    """The result of one operator on float32 operands."""
    x = operands[0]
    match op:
        case Conv2d(weight=weight, bias=bias, window=window):
            return _clip(correlate(x, weight, window) + bias[:, None, None], op.lo, op.hi)
        case Dense(weight=weight, bias=bias):
            return _clip(x @ weight.T + bias, op.lo, op.hi)
        case Add():
            return _clip(x + operands[1], op.lo, op.hi)
        case Affine(mul=mul, add=add):
            lanes = (-1, *(1,) * (x.ndim - 2))
            return _clip(x * mul.reshape(lanes) + add.reshape(lanes), op.lo, op.hi)
        case Clip():
            return _clip(x, op.lo, op.hi)
        case MaxPool2d(window=window):
            return np.asarray(patches(padded(x, window, -np.inf), window).max(axis=(4, 5)))
        case AvgPool2d(window=window, divisor=divisor):
            total = patches(padded(x, window), window).sum(axis=(4, 5), dtype=np.float32)
            return _clip(total / divisor, op.lo, op.hi)
        case Reshape(shape=shape):
            return x.reshape(x.shape[0], *shape)
        case Softmax():
            powers = np.exp(x - x.max(axis=1, keepdims=True))
            return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)


def _clip(x: FloatArray, lo: float, hi: float) -> FloatArray:
    if lo == -np.inf and hi == np.inf:
        return x
    return np.clip(x, np.float32(lo), np.float32(hi))


def _forget(
    values: dict[str, FloatArray], node: Node, last_use: Mapping[str, Node], wanted: set[str]
) -> None:
    """Drops what nobody reads any more: whole calibration sets of activations are large."""
    for name in {*node.inputs, node.output}:
        if name not in wanted and last_use.get(name, node) is node:
            values.pop(name, None)
