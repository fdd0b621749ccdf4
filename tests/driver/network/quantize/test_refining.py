"""What data improve in a layer: shifts that are shared, weights that fit, means that are right."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from kit.examples import examples
from kit.networks.random_networks import Builder, conv, dense, networks, samples_for, window
from numpy.typing import NDArray

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Affine, Graph, Reshape
from driver.network.integer.qir import QConv2d, QDense, QuantGraph
from driver.network.integer.reference import run_integer
from driver.network.quantize.calibrate import calibrate
from driver.network.quantize.observed import Calibration
from driver.network.quantize.options import Quantization
from driver.network.quantize.quantizer import quantize
from driver.network.quantize.refining import Refinement, refined, refined_at_once

PLAIN = Quantization(activations="symmetric", correct_bias=False, fit_weights=False)
CORRECTED = replace(PLAIN, correct_bias=True)


def two_layers(*, hidden: float = 0.0, last: float = 0.0) -> Graph:
    """A convolution with a ReLU, a scaling and a dense layer, of few levels for most weights."""
    rng = np.random.default_rng(5)
    b = Builder((1, 4, 6, 6))
    first = conv(rng, 4, 8, window(pad=1))
    weight = first.weight.copy()
    weight[:, 0, 1, 1] = 6  # one large weight a channel takes the levels of the others
    name = b.put(replace(first, weight=weight, bias=first.bias + hidden, lo=0.0), "x")
    ones = np.ones(8, np.float32)
    name = b.put(Affine(weight=ones * 0.7, bias=ones * 0.3), name)
    name = b.put(Reshape(shape=(288,)), name)
    layer = dense(rng, 288, 5)
    return b.graph(b.put(replace(layer, bias=layer.bias + last), name))


def positive(samples: int, seed: int) -> NDArray[np.float32]:
    """Images that are never negative: rounding of the weights then has a mean."""
    return np.random.default_rng(seed).uniform(0, 1, (samples, 4, 6, 6)).astype(np.float32)


def mean_error(graph: Graph, quantized: QuantGraph, data: NDArray[np.float32]) -> NDArray[Any]:
    """Of every channel of the result, over the samples."""
    floats, integers = run_float(graph, {"x": data}), run_integer(quantized, {"x": data})
    return np.asarray(np.abs((integers["out0"] - floats["out0"]).mean(axis=0)))


def test_means_are_right_and_the_noise_is_less_on_other_samples() -> None:
    graph, data, others = two_layers(), positive(200, 0), positive(200, 1)
    plain, better = quantize(graph, data, PLAIN), quantize(graph, data, CORRECTED)
    step = better.tensors["t3"].scale
    assert step is not None
    assert mean_error(graph, better, data).max() < 0.1 * step
    assert mean_error(graph, plain, data).max() > 0.3 * step
    assert mean_error(graph, better, others).sum() < mean_error(graph, plain, others).sum() / 2


def test_only_biases_change() -> None:
    graph, data = two_layers(), positive(50, 0)
    plain = quantize(graph, data, PLAIN)
    wanted = Refinement(block=16, shares=False, fits=False)
    better = refined(plain, graph, data, wanted)
    assert better.tensors == plain.tensors
    for node, other in zip(plain.nodes, better.nodes, strict=True):
        assert (node.name, node.inputs, type(node.op)) == (other.name, other.inputs, type(other.op))
        if isinstance(node.op, QConv2d | QDense) and isinstance(other.op, QConv2d | QDense):
            assert np.array_equal(node.op.weight, other.op.weight)
            assert np.array_equal(node.op.shift, other.op.shift)
            assert not np.array_equal(node.op.bias, other.op.bias)


def test_channels_that_a_relu_silences_stay_silent() -> None:
    """Behind the ReLU there is no mean to compare: the sums before it are."""
    graph, data = two_layers(hidden=-40.0), positive(50, 0)
    quantized = quantize(graph, data, CORRECTED)
    hidden = run_integer(quantized, {"x": data}, keep=True)["t0"]
    assert not hidden.any()


@settings(max_examples=examples(15), deadline=None)
@given(networks())
def test_every_network_can_be_corrected(case: tuple[Graph, int]) -> None:
    graph, seed = case
    data = samples_for(graph, seed)
    quantized = quantize(graph, data, CORRECTED)
    for node in quantized.nodes:
        if isinstance(node.op, QConv2d | QDense):
            rows = np.abs(node.op.weight.reshape(len(node.op.weight), -1).astype(np.int64))
            worst = 128 * rows.sum(axis=1) + np.abs(node.op.bias.astype(np.int64))
            assert worst.max() < 1 << 31
    assert all(np.isfinite(values).all() for values in run_integer(quantized, data).values())


def test_a_bias_that_no_accumulator_holds_ends_at_the_last_that_does() -> None:
    graph, far, data = two_layers(), two_layers(last=1e9), positive(10, 0)
    wanted = Refinement(block=16, shares=False, fits=False)
    corrected = refined(quantize(graph, data, PLAIN), far, {"x": data}, wanted)
    (last,) = (node.op for node in corrected.nodes if isinstance(node.op, QDense))
    room = 2**31 - 1 - 128 * np.abs(last.weight.astype(np.int64)).sum(axis=1)
    assert np.array_equal(last.bias, room)


@pytest.mark.parametrize("samples", [1, 3])
def test_few_samples_do(samples: int) -> None:
    graph, data = two_layers(), positive(samples, 0)
    assert math.isfinite(mean_error(graph, quantize(graph, data, CORRECTED), data).max())


def many_channels(large: float, *, groups: int = 1) -> Graph:
    """A convolution behind a ReLU; its first channel reads the first one alone, which is so small
    that weights so large make its results like the others."""
    rng = np.random.default_rng(7)
    b = Builder((1, 16, 5, 5))
    first = conv(rng, 16, 16, window(1))
    layer = conv(rng, 16, 32 if groups == 1 else 16, window(pad=1), groups=groups)
    small = np.where(np.arange(16) == 0, 1 / large, 1).astype(np.float32)
    first = replace(first, weight=first.weight * small[:, None, None, None], bias=0 * first.bias)
    name = b.put(replace(first, lo=0.0), "x")
    weight = layer.weight.copy()
    weight[0, 1:] = 0
    weight[0, 0] *= large
    return b.graph(b.put(replace(layer, weight=weight), name))


def of_noise(samples: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((samples, 16, 5, 5)).astype(np.float32)


def lit(samples: int, seed: int) -> NDArray[np.float32]:
    """Positive images, some of them brighter than others."""
    light = np.random.default_rng(seed).uniform(0, 1, (samples, 1, 1, 1)).astype(np.float32)
    return positive(samples, seed) * light


def last_layer(quantized: QuantGraph) -> QConv2d:
    (op,) = (node.op for node in quantized.nodes if node.output == "t1")
    assert isinstance(op, QConv2d)
    return op


@pytest.mark.parametrize("groups", [1, 16])
@pytest.mark.parametrize(("large", "is_shared"), [(1.0, True), (100.0, False)])
def test_channels_share_a_shift_only_if_none_of_them_shows_it(
    large: float, is_shared: bool, groups: int
) -> None:
    """Weights a hundred times as large: at their shift the others would be all but zero."""
    graph = many_channels(large, groups=groups)
    shift = last_layer(quantize(graph, of_noise(30, 0))).shift
    assert (len(np.unique(shift[:16])) == 1) is is_shared


def test_weights_that_fit_leave_less_noise_on_other_samples() -> None:
    """Operands that are never negative rise and fall together."""
    graph, data, others = two_layers(), lit(200, 0), lit(200, 1)
    fits = replace(CORRECTED, fit_weights=True)
    floats = run_float(graph, {"x": others})["out0"]
    errors = [
        np.square(run_integer(quantize(graph, data, how), {"x": others})["out0"] - floats).mean()
        for how in (CORRECTED, fits)
    ]
    assert errors[1] < 0.8 * errors[0]


def test_a_model_with_ranges_of_its_own_has_weights_that_fit_what_may_be_assumed() -> None:
    """No data: errors of one sign do not add up behind a ReLU."""
    rng = np.random.default_rng(5)
    b = Builder((1, 64))
    hidden = dense(rng, 64, 256)
    name = b.put(replace(hidden, weight=hidden.weight / np.float32(4), lo=0.0), "x")
    graph = b.graph(b.put(dense(rng, 256, 40), name))
    x = rng.standard_normal((300, 64)).astype(np.float32)
    graph = replace(graph, ranges=calibrate(graph, x))
    floats = run_float(graph, {"x": x})["out0"]
    means = [
        np.square(
            (run_integer(quantize(graph, None, how), {"x": x})["out0"] - floats).mean(axis=0)
        ).mean()
        for how in (PLAIN, replace(PLAIN, fit_weights=True))
    ]
    assert means[1] < 0.7 * means[0]


def test_one_run_of_the_float_network_makes_most_of_it_right() -> None:
    """Means are those of the float network's operands; the noise before a layer is left out."""
    graph, data, others = two_layers(), positive(200, 0), positive(200, 1)
    calibration = Calibration({"x": data})
    calibrate(graph, calibration)
    assert calibration.observed is not None
    plain, thorough = quantize(graph, data, PLAIN), quantize(graph, data, CORRECTED)
    wanted = Refinement(block=16, shares=False)
    better = refined_at_once(plain, graph, calibration.observed, wanted)
    before, after, best = (
        mean_error(graph, each, others).sum() for each in (plain, better, thorough)
    )
    assert after - best < (before - best) / 2
    assert [n.op.shift.tolist() for n in better.nodes if isinstance(n.op, QConv2d | QDense)] == [
        n.op.shift.tolist() for n in plain.nodes if isinstance(n.op, QConv2d | QDense)
    ]
    shared = refined_at_once(
        plain, graph, calibration.observed, Refinement(block=16, shares_all=True)
    )
    assert all(len({*n.op.shift.tolist()}) == 1 for n in shared.nodes if isinstance(n.op, QConv2d))


def test_where_nothing_is_wanted_nothing_is_run() -> None:
    graph, data = two_layers(), positive(8, 0)
    plain = quantize(graph, data, PLAIN)
    nothing = Refinement(block=16, shares=False, fits=False, corrects=False)
    assert refined(plain, graph, data, nothing) is plain
