"""Runs a float network in numpy, many samples at once: what integers are compared with.

Integers are made from it, too, and have to be the same on every machine. In which order a sum is
made is for BLAS to say, whose kernels and threads each have theirs, and the last bits show it. So
products and powers are made in float64, and rounded to float32 once: of 10^7 sums or more, one has
another last bit elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from driver.network.graph import ir
from driver.network.graph.columns import (
    correlate_groups,
    correlate_phases,
    gathered,
    multiplied,
    padded,
    pooled,
    taken,
    weighted,
)
from driver.network.graph.custom_run import run_custom
from driver.network.graph.functions import evaluate
from driver.network.graph.grid import on_own_grid
from driver.network.graph.ir import FloatArray, Graph, GraphNode
from driver.network.graph.parts import in_parts, samples_at_once, threads_for


def look_away(_name: str, _values: FloatArray) -> None:
    """The observer that observes nothing."""


def run_float(
    graph: Graph,
    inputs: Mapping[str, FloatArray],
    *,
    observe: Callable[[str, FloatArray], None] = look_away,
    heard: Callable[[int], None] | None = None,
) -> dict[str, FloatArray]:
    """The outputs by name, float32 [samples, ...], for inputs [samples, ...] in the graph's layout.

    `observe` sees every tensor, the inputs included, a part of the samples at a time, in order;
    `heard` gets the number of samples of a part that is done.
    """
    most = samples_at_once(graph.shapes.values())
    threads = threads_for(most) if observe is look_away else 1
    return in_parts(
        lambda part: _run_part(graph, part, observe), inputs, most, heard, threads=threads
    )


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


def apply(op: ir.Operator, *operands: FloatArray) -> FloatArray:
    """The result of one operator on float32 operands."""
    x = operands[0]
    match op:
        case ir.Conv2d(weight=weight, bias=bias, window=window, groups=groups):
            sums = _rounded(correlate_groups(x, _exactly(weight), window, groups))
            return _clip(sums + bias[:, None, None], op.lo, op.hi)
        case ir.ConvTranspose2d(weight=weight, bias=bias, pad=pad):
            sums = _rounded(correlate_phases(x, _exactly(weight), pad))
            return _clip(sums + bias[:, None, None], op.lo, op.hi)
        case ir.Dense(weight=weight, bias=bias):
            return _clip(_rounded(weighted(_exactly(x), weight)) + bias, op.lo, op.hi)
        case ir.MatMul(groups=groups, scale=scale):
            sums = _rounded(multiplied(_exactly(x), _exactly(operands[1]), groups))
            return np.asarray(sums * np.float32(scale))
        case ir.Add(subtracts=subtracts):
            total = x - operands[1] if subtracts else x + operands[1]
            return _clip(total, op.lo, op.hi)
        case ir.Affine(weight=mul, bias=add):
            lanes = (-1, *(1,) * (x.ndim - 2))
            return _clip(x * mul.reshape(lanes) + add.reshape(lanes), op.lo, op.hi)
        case ir.Clip():
            return _clip(x, op.lo, op.hi)
        case ir.SubtractZeroPoint(middle=middle):
            return x - np.float32(middle)
        case ir.Unary(function=function, parameters=parameters):
            return evaluate(function, x, parameters).astype(np.float32)
        case ir.Slopes(slope=slope):
            return np.where(x < 0, x * slope.reshape(-1, *(1,) * (x.ndim - 2)), x)
        case ir.Product(divides=divides):
            return x / operands[1] if divides else x * operands[1]
        case ir.Extreme(kind=kind):
            return _EXTREMES[kind](x, operands[1])
        case ir.Gather(index=index, fill=fill):
            return gathered(x, index, fill)
        case ir.Take(table=table):
            return taken(x, operands[1] if table is None else table[None])
        case ir.MaxPool2d(window=window):
            return pooled(padded(x, window, -np.inf), window, np.maximum)
        case ir.AvgPool2d(window=window, divisor=divisor):
            total = pooled(padded(x, window), window, np.add)
            return _clip(total / divisor, op.lo, op.hi)
        case ir.Concat():
            return np.concatenate(operands, axis=1)
        case ir.Slice(start=start, stop=stop):
            return x[:, start:stop]
        case ir.Reshape(shape=shape):
            return x.reshape(x.shape[0], *shape)
        case ir.Reduce(kind=kind, axes=axes):
            return np.asarray(_REDUCTIONS[kind](x, axis=axes, keepdims=True), np.float32)
        case ir.Normalize():
            return _normalized(x, op)
        case ir.Softmax(axis=axis, log=log):
            return _softmax(x, axis, log=log)
        case ir.Custom():
            return run_custom(op, operands)
        case ir.FakeQuantize(grid=grid):
            return on_own_grid(x) if grid is None else grid.reals(grid.integers(x))
        case ir.ScaleSums():
            return _scaled(op, x)


def _normalized(x: FloatArray, op: ir.Normalize) -> FloatArray:
    away = x - x.mean(axis=op.axes, keepdims=True) if op.centered else x
    spread = np.square(away).mean(axis=op.axes, keepdims=True) + np.float32(op.epsilon)
    return np.asarray(away / np.sqrt(spread), np.float32)


def _softmax(x: FloatArray, axis: int, *, log: bool) -> FloatArray:
    below = _exactly(x - x.max(axis=axis, keepdims=True))
    powers = np.exp(below)
    total = powers.sum(axis=axis, keepdims=True)
    return np.asarray(below - np.log(total) if log else powers / total, np.float32)


def _scaled(op: ir.ScaleSums, sums: FloatArray) -> FloatArray:
    lanes = (-1, *(1,) * (sums.ndim - 2))
    whole = sums / np.float32(op.step or 1) + op.bias.reshape(lanes)
    with np.errstate(over="ignore"):
        return np.asarray(whole * op.scale.reshape(lanes), np.float32)


_EXTREMES: Final = {"max": np.maximum, "min": np.minimum}

_REDUCTIONS: Final[Mapping[ir.ReduceKind, Callable[..., FloatArray]]] = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
}


def _exactly(x: FloatArray) -> NDArray[np.float64]:
    return x.astype(np.float64)


def _rounded(sums: NDArray[np.float64]) -> FloatArray:
    return sums.astype(np.float32)


def _clip(x: FloatArray, lo: float, hi: float) -> FloatArray:
    if lo == -np.inf and hi == np.inf:
        return x
    return np.clip(x, np.float32(lo), np.float32(hi))


def _forget(
    values: dict[str, FloatArray],
    node: GraphNode,
    last_use: Mapping[str, GraphNode],
    wanted: set[str],
) -> None:
    """Drops what nobody reads any more: whole calibration sets of activations are large."""
    for name in {*node.inputs, node.output}:
        if name not in wanted and last_use.get(name, node) is node:
            values.pop(name, None)
