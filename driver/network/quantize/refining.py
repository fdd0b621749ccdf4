"""What calibration data improve in an integer network, layer by layer, each behind those before it.

* Channels of a block share a shift (an immediate, a cycle less for every output vector) if none of
  them shows it: what their weights lose then changes each channel's results by less than their
  rounding to int8 does. A layer's weights as a whole say nothing about that: channels with small
  weights would vanish beside those with large ones.
* Weights are rounded to fit, see `quantize.rounding`, where their rounding shows.
* What quantization adds to the mean of a channel's sums is taken from its bias, before any clip:
  behind a ReLU half of an error would be missing, and all of it where a channel is silent. Source:
  M. Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, ICCV
  2019, section 4.2; here with means over data.

All of it follows from the mean and the covariance of what the weights meet (`moments`). Without
data, for a model that gives its ranges, these are assumed: operands that are never negative rise
and fall together, so their weights are rounded such that errors of one sign do not add up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.network.graph import float_run
from driver.network.graph.ir import FloatArray, Graph, GraphNode
from driver.network.graph.parts import samples_at_once
from driver.network.integer import qir, reference
from driver.network.integer.qir import QuantGraph, QuantNode
from driver.network.integer.signs import KEEP_SIGNS
from driver.network.quantize.calibrate import by_name
from driver.network.quantize.channel_weights import Weighted
from driver.network.quantize.integer_bias import (
    Biased,
    fits_int32,
    gain,
    has_wide_weights,
    rounding,
    weight_rows,
    with_bias,
    with_weights,
)
from driver.network.quantize.moments import (
    Moments,
    assumed,
    grouped_rows,
    is_large,
    mean_operands,
    mean_sums,
    moments,
)
from driver.network.quantize.observed import Observed
from driver.network.quantize.power_of_two_requantization import MAX_MUL, of_blocks
from driver.network.quantize.rounding import fitted

Reals: TypeAlias = NDArray[np.float64]

_ROUNDING: Final = 1 / 12
"""The variance of what rounding adds to a result, in its steps."""
_MAY_ADD: Final = 0.5
"""Of the noise that a layer has with shifts of its channels: what shared ones may add, 1.8 dB."""
_MOST_ADDED: Final = 1.0
"""Of the variance of rounding a result: what they may add to any one channel."""
_SHOWS: Final = 0.02
"""Of the same: rounding of weights that is less is not worth fitting them."""
_MOST_ELEMENTS: Final = 1 << 24
"""Of the largest tensor over the samples that are looked at: all layers see the same ones at once.
That is 21 of 224 x 224 pixels and 16 channels, whose moments are over many pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refinement:
    """Which of the three are wanted; `block` is the number of channels that share a shift.

    With `shares_all` they do so even where results show it.
    """

    block: int
    shares: bool = True
    shares_all: bool = False
    fits: bool = True
    corrects: bool = True

    @property
    def is_any(self) -> bool:
        """Whether there is anything to do."""
        return self.shares or self.fits or self.corrects


def refined(
    quantized: QuantGraph,
    graph: Graph,
    calibration: FloatArray | Mapping[str, FloatArray],
    wanted: Refinement,
) -> QuantGraph:
    """The integer network whose layers are better on the data.

    Args:
        quantized: the integer form of `graph`.
        graph: the float network.
        calibration: as for `quantize.calibrate.calibrate`; samples spread over it are used.
    """
    if not wanted.is_any:
        return quantized
    inputs = _spread_samples(graph, by_name(graph, calibration))
    layers = _layers(graph)
    sums = _mean_sums(graph, inputs)
    values: dict[str, NDArray[Any]] = dict(inputs)
    last_use = {name: node for node in quantized.nodes for name in node.inputs}
    nodes = []
    for node in quantized.nodes:
        if isinstance(node.op, Biased) and node.output in layers:
            layer, _ = layers[node.output]
            met = moments(layer, values[node.inputs[0]])
            better = _Layer(quantized, node, layer, met, wanted)
            op = better.with_better_weights()
            if wanted.corrects:
                op = better.with_bias_for(op, sums[node.output])
            node = replace(node, op=op)
        operands = [values[name] for name in node.inputs]
        values[node.output] = _applied(node, operands)
        nodes.append(node)
        for name in {*node.inputs}:
            if last_use[name] is node:
                del values[name]
    return replace(quantized, nodes=tuple(nodes))


def refined_at_once(
    quantized: QuantGraph, graph: Graph, observed: Observed, wanted: Refinement
) -> QuantGraph:
    """The same by what a run of the float network told, without a run of the integer network.

    Shifts are shared, and biases make up for rounded weights; not for what the layers before have
    added, and weights are not rounded to fit, for which variances alone are not enough.
    """
    layers, nodes = _layers(graph), []
    wanted = replace(wanted, fits=False)
    for node in quantized.nodes:
        step = quantized.tensors[node.inputs[0]].scale
        if isinstance(node.op, Biased) and node.output in layers and step:
            layer, source = layers[node.output]
            met = observed.moments(layer, source, step)
            better = _Layer(quantized, node, layer, met, wanted)
            op = better.with_better_weights()
            if wanted.corrects:
                sums = mean_sums(layer, layer.weight, met.mean) * step + layer.bias
                op = better.with_bias_for(op, sums)
            node = replace(node, op=op)
        nodes.append(node)
    return replace(quantized, nodes=tuple(nodes))


def refined_without_data(quantized: QuantGraph, graph: Graph, wanted: Refinement) -> QuantGraph:
    """The same as far as it goes without data: weights rounded to fit what may be assumed."""
    layers, positive, nodes = _layers(graph), _never_negative(quantized), []
    for node in quantized.nodes:
        if isinstance(node.op, Biased) and node.output in layers:
            layer, _ = layers[node.output]
            met = assumed(layer, is_positive=node.inputs[0] in positive)
            only_fits = replace(wanted, shares=False, corrects=False)
            better = _Layer(quantized, node, layer, met, only_fits)
            node = replace(node, op=better.with_better_weights())
        nodes.append(node)
    return replace(quantized, nodes=tuple(nodes))


class _Layer:
    """One layer and what its weights meet."""

    def __init__(
        self,
        quantized: QuantGraph,
        node: QuantNode,
        layer: Weighted,
        met: Moments,
        wanted: Refinement,
    ) -> None:
        assert isinstance(node.op, Biased)
        source, result = (quantized.tensors[name] for name in (node.inputs[0], node.output))
        assert source.scale
        assert result.scale
        self._op: Biased = node.op
        self._layer, self._met, self._wanted = layer, met, wanted
        self._scale, self._in_steps = result.scale, source.scale / result.scale
        self._middle = source.middle / source.scale
        self._largest = source.largest
        self._errors = met if wanted.corrects else met.about_zero()

    def with_better_weights(self) -> Biased:
        """The layer with shared shifts where they do not show, and weights rounded to fit.

        Weights of 16 bits share shifts already, and their rounding does not show.
        """
        if has_wide_weights(self._op):
            return self._op
        if is_large(self._layer):  # a shift of its own is below one of a hundred cycles there
            return self._op
        real = grouped_rows(self._layer, self._layer.weight) * self._in_steps
        shares = self._wanted.shares and self._op.factor is None
        op = (self._shared(self._op, real) if shares else None) or self._fitted(self._op, real)
        if op is self._op or not self._middle:
            return op
        more = [(weight_rows(each) * gain(each)[:, None]).sum(axis=1) for each in (op, self._op)]
        bias = op.bias + (more[0] - more[1]) * self._middle / gain(op)
        return with_bias(op, bias, self._largest)

    def with_bias_for(self, op: Biased, sums: Reals) -> Biased:
        """The layer whose mean sums [Co] before their clip are these, in real units.

        What rounds to nearest is no part of the mean.
        """
        products = mean_sums(self._layer, op.weight, self._met.mean)
        bias = np.rint(sums / self._scale / gain(op) - products) + rounding(op)
        return with_bias(op, bias, self._largest)

    def _shared(self, op: Biased, real: Reals) -> Biased | None:
        """The layer in which the channels of a block share a shift; None if a channel shows it."""
        shift = of_blocks(op.shift, self._wanted.block)
        if np.array_equal(shift, op.shift):
            return None
        whole = np.rint(real / self._lanes(np.exp2(-shift.astype(np.float64)), real))
        other = with_weights(op, whole, shift)
        bias = (op.bias - rounding(op)) * (gain(op) / gain(other)) + rounding(other)
        other = with_bias(other, bias, self._largest)
        other = self._fitted(other, real)
        if self._wanted.shares_all:
            return other
        own = self._noise(op, real)
        more = self._noise(other, real) - own
        shows = more.mean() > _MAY_ADD * (own.mean() + _ROUNDING)
        return None if shows or more.max() > _MOST_ADDED * _ROUNDING else other

    def _fitted(self, op: Biased, real: Reals) -> Biased:
        """The layer with weights rounded to fit, if their rounding shows in any channel."""
        if not self._wanted.fits or self._noise(op, real).max() <= _SHOWS * _ROUNDING:
            return op
        whole = fitted(real / self._lanes(gain(op), real), self._errors.covariance, MAX_MUL)
        other = with_weights(op, whole, op.shift)
        return other if fits_int32(other, self._largest) else op

    def _noise(self, op: Biased, real: Reals) -> Reals:
        """[G, R]: the variance of what rounding the weights adds to the results, in their steps."""
        whole = grouped_rows(self._layer, op.weight) * self._lanes(gain(op), real)
        return self._errors.variance_of(whole - real)

    @staticmethod
    def _lanes(values: Reals, real: Reals) -> Reals:
        """What each channel [Co] has, for its rows [G, R, 1]."""
        groups, rows, _ = real.shape
        return np.repeat(values, groups * rows // len(values)).reshape(groups, rows, 1)


def _layers(graph: Graph) -> dict[str, tuple[Weighted, str]]:
    """The layers by their results, with what they read."""
    return {
        node.output: (node.op, node.inputs[0])
        for node in graph.nodes
        if isinstance(node.op, Weighted)
    }


def _spread_samples(graph: Graph, inputs: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Samples at even distances over the data, so many that all their tensors can be held."""
    largest = max(math.prod(shape[1:]) for shape in graph.shapes.values())
    count = min(len(values) for values in inputs.values())
    chosen = np.linspace(0, count - 1, max(1, min(count, _MOST_ELEMENTS // largest)))
    return {name: np.asarray(v[chosen.astype(int)], np.float32) for name, v in inputs.items()}


def _mean_sums(graph: Graph, inputs: Mapping[str, FloatArray]) -> dict[str, Reals]:
    """The mean of every layer's sums by channel [Co] before its clip, by the layer's result."""
    readers: dict[str, list[GraphNode]] = {}
    for node in graph.nodes:
        if isinstance(node.op, Weighted):
            readers.setdefault(node.inputs[0], []).append(node)
    totals: dict[str, Reals] = {}

    def observe(name: str, values: FloatArray) -> None:
        if name in readers:
            totals[name] = totals.get(name, 0.0) + values.sum(axis=0, dtype=np.float64)

    float_run.run_float(graph, inputs, observe=observe)
    samples = len(next(iter(inputs.values())))
    found: dict[str, Reals] = {}
    for name, nodes in readers.items():
        for node in nodes:
            assert isinstance(node.op, Weighted)
            operands = mean_operands(node.op, totals[name] / samples)
            found[node.output] = mean_sums(node.op, node.op.weight, operands)
            found[node.output] += node.op.bias
    return found


def _applied(node: QuantNode, operands: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The node's result for all samples, some at a time."""
    most = samples_at_once([operands[0].shape])
    parts = [
        reference.apply(node.op, *(each[start : start + most] for each in operands))
        for start in range(0, len(operands[0]), most)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _never_negative(quantized: QuantGraph) -> frozenset[str]:
    """The tensors that stand for reals of at least zero, as ReLUs and grids from zero make them."""
    found: set[str] = set()
    for node in quantized.nodes:
        tensor = quantized.tensors[node.output]
        if isinstance(node.op, KEEP_SIGNS):
            is_positive = all(name in found for name in node.inputs)
        elif isinstance(node.op, Biased | qir.QAdd | qir.QAvgPool2d) and tensor.scale:
            is_positive = (node.op.lo + 0.5) * tensor.scale + tensor.middle >= 0
        else:
            is_positive = False
        if is_positive:
            found.add(node.output)
    return frozenset(found)
