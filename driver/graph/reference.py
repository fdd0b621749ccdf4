"""Right answers: the integer network, a single workload and a partitioned network in numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.workload import Workload

from driver.graph import integer
from driver.graph.blocks import from_blocks, lanes_from_blocks, to_blocks, weight_from_blocks
from driver.graph.ir import FloatArray, Window
from driver.graph.network import Network
from driver.graph.parts import in_parts
from driver.graph.qir import (
    Dequantize,
    QAdd,
    QAffine,
    QAvgPool2d,
    QConv2d,
    QDense,
    QMaxPool2d,
    QReshape,
    QSoftmax,
    QuantGraph,
    Quantize,
    QuantOperator,
)

Array: TypeAlias = NDArray[Any]


def run(
    graph: QuantGraph, inputs: Mapping[str, FloatArray], *, keep: bool = False
) -> dict[str, Array]:
    """The outputs by name, float32 [samples, ...], for inputs [samples, ...] in the graph's layout.

    With `keep` every tensor by its own name comes with them.
    """
    return in_parts(lambda part: _run_part(graph, part, keep=keep), inputs)


def _run_part(
    graph: QuantGraph, inputs: Mapping[str, FloatArray], *, keep: bool
) -> dict[str, Array]:
    values: dict[str, Array] = {
        i.name: np.asarray(inputs[i.name], np.float32) for i in graph.inputs
    }
    last_use = {name: node for node in graph.nodes for name in node.inputs}
    wanted = {output.tensor for output in graph.outputs}
    for node in graph.nodes:
        values[node.output] = apply(node.op, *(values[name] for name in node.inputs))
        for name in {*node.inputs}:
            if not keep and name not in wanted and last_use[name] is node:
                del values[name]
    results = {output.name: values[output.tensor] for output in graph.outputs}
    return {**values, **results} if keep else results


def apply(op: QuantOperator, *operands: Array) -> Array:
    """The result of one integer operator on logical tensors."""
    x = operands[0]
    match op:
        case QConv2d():
            return integer.conv2d(
                x, op.weight, op.bias, op.shift, window=op.window, lo=op.lo, hi=op.hi
            )
        case QDense():
            return integer.dense(x, op.weight, op.bias, op.shift, lo=op.lo, hi=op.hi)
        case QAdd(mul_a=mul_a, mul_b=mul_b, shift=shift):
            return integer.add(
                x, operands[1], mul_a=mul_a, mul_b=mul_b, shift=shift, lo=op.lo, hi=op.hi
            )
        case QAffine():
            return integer.affine(x, op.mul, op.add, op.shift, lo=op.lo, hi=op.hi)
        case QMaxPool2d(window=window):
            return integer.max_pool2d(x, window=window)
        case QAvgPool2d():
            return integer.avg_pool2d(
                x, op.mul, window=op.window, shift=op.shift, lo=op.lo, hi=op.hi
            )
        case QReshape(shape=shape):
            return x.reshape(x.shape[0], *shape)
        case QSoftmax(table=table):
            return integer.softmax(x, table)
        case Quantize(inv_scale=inv_scale):
            return integer.quantize(x, inv_scale=inv_scale)
        case Dequantize(scale=scale):
            return integer.dequantize(x, scale=scale)


def run_workload(workload: Workload, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The workload's outputs by name, on blocked arrays as `tilefarm.workload.OPERATORS` says."""
    out = workload.outputs[0]
    arrays = [inputs[spec.name].reshape(spec.shape) for spec in workload.inputs]
    result = _blocked_result(workload, arrays)
    return {out.name: np.ascontiguousarray(result.reshape(out.shape))}


def run_network(network: Network, inputs: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """One run of a partitioned network: inputs and outputs by name in their logical shapes."""
    values: dict[str, Array] = dict(network.constants)
    for i in network.inputs:
        values[i.name] = np.asarray(inputs[i.name], np.float32).reshape(i.shape)
    for step in network.steps:
        specs = step.workload.inputs
        arrays = {spec.name: values[name] for spec, name in zip(specs, step.inputs, strict=True)}
        results = run_workload(step.workload, arrays)
        for spec, name in zip(step.workload.outputs, step.outputs, strict=True):
            values[name] = results[spec.name]
    return {output.name: values[output.tensor].reshape(output.shape) for output in network.outputs}


def _blocked_result(workload: Workload, arrays: list[Array]) -> Array:
    match workload.operator:
        case "conv2d" | "dense":
            return _blocked_layer(workload, arrays)
        case "quantize" | "dequantize" | "relayout" | "softmax":
            return _blocked_edge(workload, arrays)
    x = from_blocks(arrays[0])
    result = _blocked_lanewise(workload, x, arrays[1:])
    return to_blocks(result, *_tile(workload))


def _blocked_layer(workload: Workload, arrays: list[Array]) -> Array:
    data, weight, bias, shift = arrays
    x, kernel = from_blocks(data), weight_from_blocks(weight)
    lanes, shifts = lanes_from_blocks(bias), lanes_from_blocks(shift)
    lo, hi = workload.attr_int("lo"), workload.attr_int("hi")
    if workload.operator == "dense":
        result = integer.dense(x, kernel, lanes, shifts, lo=lo, hi=hi)
    else:
        window = _window(workload, kernel.shape[2:])
        result = integer.conv2d(x, kernel, lanes, shifts, window=window, lo=lo, hi=hi)
    return to_blocks(result, *_tile(workload))


def _blocked_lanewise(workload: Workload, x: Array, others: list[Array]) -> Array:
    """Operators that keep every lane where it is; absent lanes are computed like the others."""
    attr = workload.attr_int
    match workload.operator:
        case "add":
            b = from_blocks(others[0])
            return integer.add(
                x,
                b,
                mul_a=attr("mul_a"),
                mul_b=attr("mul_b"),
                shift=attr("shift"),
                lo=attr("lo"),
                hi=attr("hi"),
            )
        case "affine":
            mul, addend, shift = map(lanes_from_blocks, others)
            return integer.affine(x, mul, addend, shift, lo=attr("lo"), hi=attr("hi"))
        case "max_pool2d":
            return integer.max_pool2d(x, window=_window(workload, workload.attr_ints("kernel")))
        case "avg_pool2d":
            window = _window(workload, workload.attr_ints("kernel"))
            return integer.avg_pool2d(
                x, others[0], window=window, shift=attr("shift"), lo=attr("lo"), hi=attr("hi")
            )
    raise ValueError(f"no reference for operator {workload.operator!r}")


def _blocked_edge(workload: Workload, arrays: list[Array]) -> Array:
    """Operators that know the logical shape: absent lanes are cut off or made zero."""
    out = workload.outputs[0]
    x = arrays[0]
    match workload.operator:
        case "quantize":
            steps = integer.quantize(x, inv_scale=workload.attr_float("inv_scale"))
            return to_blocks(steps, *_tile(workload))
        case "dequantize":
            scale = workload.attr_float("scale")
            return integer.dequantize(from_blocks(x, out.shape), scale=scale)
        case "softmax":
            return integer.softmax(from_blocks(x, out.shape), arrays[1])
    logical = from_blocks(x, workload.attr_ints("logical_in"))
    return to_blocks(logical.reshape(workload.attr_ints("logical_out")), *_tile(workload))


def _tile(workload: Workload) -> tuple[int, int]:
    """The batch and block of the workload's blocked output."""
    batch, block = workload.outputs[0].shape[-2:]
    return batch, block


def _window(workload: Workload, kernel: tuple[int, ...]) -> Window:
    """The window that the attributes describe."""
    stride, pad = workload.attr_ints("stride"), workload.attr_ints("pad")
    dilation = workload.attr_ints("dilation") if workload.operator == "conv2d" else (1, 1)
    return Window(
        kernel=(kernel[0], kernel[1]),
        stride=(stride[0], stride[1]),
        pad=(pad[0], pad[1], pad[2], pad[3]),
        dilation=(dilation[0], dilation[1]),
    )
