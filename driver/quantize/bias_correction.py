"""Bias correction: what quantization adds to the mean of a layer's sums is taken from its biases.

Source: M. Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction,
ICCV 2019, section 4.2; here with means over data. Means of sums are compared, before any clip:
behind a ReLU half of an error would be missing, and all of it where a channel is silent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.graph import float_run
from driver.graph.ir import Affine, Clip, FloatArray, Graph
from driver.graph.shapes import graph_of
from driver.integer import reference
from driver.integer.qir import QAffine, QuantGraph
from driver.quantize.calibrate import by_name
from driver.quantize.channel_weights import Weighted
from driver.quantize.integer_bias import Biased, gain, rounding, with_bias

Reals: TypeAlias = NDArray[np.float64]

_MOST_ELEMENTS: Final = 1 << 22
"""Of the largest tensor over the samples that are looked at: all layers see the same ones at once.
That is 5 of 224 x 224 pixels, whose means are over many pixels, and 600 of a dense network."""


def with_corrected_biases(
    quantized: QuantGraph, graph: Graph, calibration: FloatArray | Mapping[str, FloatArray]
) -> QuantGraph:
    """The integer network in which the sums of each layer have the means of the float network's.

    Layers are corrected in order; each one reads what those before it make after their correction.

    Args:
        quantized: the integer form of `graph`.
        graph: the float network.
        calibration: as for `driver.quantize.calibrate.calibrate`; samples spread over it are used.
    """
    inputs = _spread_samples(graph, by_name(graph, calibration))
    wanted = _mean_sums(graph, inputs)
    layers = {node.output: node.op for node in graph.nodes}
    values: dict[str, NDArray[Any]] = dict(inputs)
    last_use = {name: node for node in quantized.nodes for name in node.inputs}
    nodes = []
    for node in quantized.nodes:
        op, layer = node.op, layers.get(node.output)
        if isinstance(op, Biased) and isinstance(layer, Weighted):
            scale = quantized.tensors[node.output].scale
            assert scale is not None
            sums = float_run.apply(_without_bias(layer, op), values[node.inputs[0]])
            op = _with_mean(op, wanted[node.output] / scale, _mean(sums))
        values[node.output] = reference.apply(op, *(values[name] for name in node.inputs))
        nodes.append(replace(node, op=op))
        for name in {*node.inputs}:
            if last_use[name] is node:
                del values[name]
    return replace(quantized, nodes=tuple(nodes))


def _spread_samples(graph: Graph, inputs: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Samples at even distances over the data, so many that all their tensors can be held."""
    largest = max(math.prod(shape[1:]) for shape in graph.shapes.values())
    count = min(len(values) for values in inputs.values())
    chosen = np.linspace(0, count - 1, max(1, min(count, _MOST_ELEMENTS // largest)))
    return {name: np.asarray(v[chosen.astype(int)], np.float32) for name, v in inputs.items()}


def _mean_sums(graph: Graph, inputs: Mapping[str, FloatArray]) -> dict[str, Reals]:
    """The mean of every layer's sums by channel [Co] before its clip, by the layer's result."""
    nodes, results = [], {}
    for node in graph.nodes:
        if isinstance(node.op, Weighted):
            sums = f"{node.output} before its clip"
            results[sums] = node.output
            clip = replace(node, op=Clip(lo=node.op.lo, hi=node.op.hi), inputs=(sums,))
            nodes += [replace(node, op=_unbounded(node.op), output=sums), clip]
        else:
            nodes.append(node)
    totals: dict[str, Reals] = {}

    def observe(name: str, values: FloatArray) -> None:
        if name in results:
            totals[results[name]] = totals.get(results[name], 0.0) + _mean(values) * len(values)

    float_run.run_float(
        graph_of(graph.name, graph.inputs, graph.outputs, nodes), inputs, observe=observe
    )
    samples = len(next(iter(inputs.values())))
    return {name: total / samples for name, total in totals.items()}


def _mean(values: NDArray[Any]) -> Reals:
    """By channel [C], of values [N, C, ...]."""
    others = tuple(axis for axis in range(values.ndim) if axis != 1)
    return np.asarray(values.mean(axis=others, dtype=np.float64))


def _unbounded(layer: Weighted) -> Weighted:
    return replace(layer, lo=-math.inf, hi=math.inf)


def _without_bias(layer: Weighted, op: Biased) -> Weighted:
    """The float layer with the integer one's weights: its products alone."""
    if isinstance(layer, Affine):
        assert isinstance(op, QAffine)
        bare = replace(layer, mul=op.mul.astype(np.float32), add=np.zeros_like(layer.add))
        return _unbounded(bare)
    assert not isinstance(op, QAffine)
    bias = np.zeros_like(layer.bias)
    return _unbounded(replace(layer, weight=op.weight.astype(np.float32), bias=bias))


def _with_mean(op: Biased, wanted: Reals, products: Reals) -> Biased:
    """The layer whose mean result is `wanted` [Co], in its steps, for the mean of its products.

    What rounds to nearest is no part of the mean.
    """
    return with_bias(op, np.rint(wanted / gain(op) - products) + rounding(op))
