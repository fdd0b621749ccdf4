"""Factors: no product leaves int32, weights use all of int8, and results round to nearest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.random_networks import Builder, networks, samples_for
from numpy.typing import NDArray
from tilefarm.errors import SettingsError
from tilefarm.target import TARGETS

from driver.network.integer import arithmetic as integer
from driver.network.integer.qir import QAffine, QDense
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.fixed_point_requantization import multiplied_parameters
from driver.network.quantize.integer_bias import Biased, gain, weight_rows
from driver.network.quantize.options import Quantization
from driver.network.quantize.power_of_two_requantization import (
    ENOUGH_SHIFT,
    LayerParameters,
    least_out_scale,
    most_bias,
)
from driver.network.rewrites.fold import fold

BLOCK = 4
MUL = Quantization(requantize="mul")

Reals = NDArray[np.float64]


@st.composite
def layers(draw: st.DrawFn) -> tuple[Reals, Reals, float, float]:
    """Weights [Co, K], biases, and the scales of input and output, ordinary and extreme."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    channels, terms = draw(st.integers(1, 9)), draw(st.sampled_from([1, 9, 60, 2000]))
    sizes = 10.0 ** rng.uniform(*draw(st.sampled_from([(0, 0), (-1, 0), (-9, 3)])), (channels, 1))
    weight = np.clip(rng.standard_normal((channels, terms)), -3, 3) * sizes
    weight[rng.random(channels) < 0.1] = 0
    in_scale = 10.0 ** draw(st.integers(-6, 3))
    spread = draw(st.sampled_from([1.0, 3.0, 1e4]))
    least = least_out_scale(weight.astype(np.float32), in_scale)
    out_scale = max(least * spread, 1e-20)
    bias = rng.standard_normal(channels) * out_scale * draw(st.sampled_from([0, 50, 1e4]))
    return weight, bias, in_scale, out_scale


def made(layer: tuple[Reals, Reals, float, float], *, were_whole: bool = False) -> LayerParameters:
    weight, bias, in_scale, out_scale = layer
    return multiplied_parameters(
        weight.astype(np.float32),
        bias.astype(np.float32),
        in_scale=in_scale,
        out_scale=out_scale,
        block=BLOCK,
        were_whole=were_whole,
    )


def factors(layer: LayerParameters) -> NDArray[np.int64]:
    assert layer.factor is not None
    return layer.factor.astype(np.int64)


def unwrapped(layer: LayerParameters, x: NDArray[Any]) -> NDArray[np.int64]:
    """Products [N, Co] in 64 bits, which is how they are meant."""
    sums = x.astype(np.int64) @ layer.weight.astype(np.int64).T + layer.bias
    return np.asarray(sums * factors(layer))


@settings(max_examples=examples(40), deadline=None)
@given(layers())
def test_no_operand_whatever_makes_a_product_leave_int32(
    case: tuple[Reals, Reals, float, float],
) -> None:
    layer = made(case)
    signs = np.where(layer.weight > 0, 127, -128), np.where(layer.weight > 0, -128, 127)
    ends = np.concatenate([*signs, np.full((1, layer.weight.shape[1]), -128)]).astype(np.int8)
    wide = unwrapped(layer, ends)
    assert np.abs(wide).max() < 1 << 31
    assert (factors(layer) >= 1).all()
    got = integer.dense(
        ends, layer.weight, layer.bias, layer.shift, factor=layer.factor, lo=-128, hi=127
    )
    np.testing.assert_array_equal(got, np.clip(wide >> layer.shift, -128, 127))


@settings(max_examples=examples(40), deadline=None)
@given(layers())
def test_weights_are_as_near_as_int8_can_be(case: tuple[Reals, Reals, float, float]) -> None:
    weight, _, in_scale, out_scale = case
    layer = made(case)
    unit = 2.0**-layer.shift * out_scale / in_scale
    step = factors(layer) * unit
    stored = layer.weight * step[:, None]
    assert (np.abs(stored - weight) <= (0.5 + 1e-4) * step[:, None]).all()
    needed = np.abs(weight).max(axis=1) / 127 * (1 + 1e-6) + unit
    enough = 2.0**-ENOUGH_SHIFT * out_scale / in_scale
    assert (step <= np.maximum(needed, enough)).all()
    for start in range(0, len(weight), BLOCK):
        assert len(set(layer.shift[start : start + BLOCK])) == 1


@settings(max_examples=examples(40), deadline=None)
@given(layers(), st.integers(0, 1 << 16))
def test_results_are_rounded_to_nearest(case: tuple[Reals, Reals, float, float], seed: int) -> None:
    _, bias, _, out_scale = case
    layer = made((case[0], np.clip(bias, -90 * out_scale, 90 * out_scale), *case[2:]))
    x = np.random.default_rng(seed).integers(-128, 128, (20, layer.weight.shape[1])).astype(np.int8)
    got = integer.dense(
        x, layer.weight, layer.bias, layer.shift, factor=layer.factor, lo=-128, hi=127
    )
    steps = factors(layer) * 2.0**-layer.shift
    sums = x.astype(np.int64) @ layer.weight.astype(np.int64).T
    real = sums * steps + np.clip(bias / out_scale, -90, 90)
    assert (np.abs(got - np.clip(real, -128, 127)) <= 0.5 + steps / 2 + 1e-4).all()


def test_far_biases_fit_a_tile_where_weights_are_small() -> None:
    weight, bias = np.full((4, 8), 1e-9), np.array([40.0, -40.0, 0.0, 1e9])
    weight[2] = 0.1
    layer = made((weight, bias, 1.0, 1.0))
    assert (np.abs(layer.bias[:3]) <= most_bias(BLOCK)).all()
    none = np.zeros((1, 8), np.int8)
    got = integer.dense(
        none, layer.weight, layer.bias, layer.shift, factor=layer.factor, lo=-128, hi=127
    )
    assert got.tolist() == [[40, -40, 0, 127]]


def test_a_tie_goes_up() -> None:
    layer = made((np.array([[127.0, 64.0]]), np.zeros(1), 1.0, 256.0))
    x = np.array([[0, -6], [0, -2], [0, 2], [0, 6]], np.int8)
    got = integer.dense(
        x, layer.weight, layer.bias, layer.shift, factor=layer.factor, lo=-128, hi=127
    )
    assert got.ravel().tolist() == [-1, 0, 1, 2]


def test_weights_that_were_whole_stay_so() -> None:
    rng = np.random.default_rng(4)
    whole = rng.integers(-127, 128, (6, 40))
    whole[:, 0] = [100, 63, 127, -90, 101, 1]
    units = np.array([0.3, 0.1, 0.2, 1.0, 0.3, 0.3])
    layer = made((whole * units[:, None], np.zeros(6), 0.037, 2.9), were_whole=True)
    np.testing.assert_array_equal(layer.weight, whole)
    wanted = units * 0.037 / 2.9
    found = factors(layer) * 2.0**-layer.shift
    assert (np.abs(found / wanted - 1) <= 0.5 / factors(layer) + 1e-6).all()


def test_sums_that_never_fit_are_refused() -> None:
    with pytest.raises(OverflowError, match="32-bit accumulator"):
        made((np.full((1, 1 << 18), 127.0), np.zeros(1), 1.0, 1.0))


@pytest.mark.parametrize("how", [MUL, Quantization(requantize="mul", correct_bias=True)])
def test_a_network_has_factors_in_all_its_layers(how: Quantization) -> None:
    @settings(max_examples=examples(10), deadline=None)
    @given(networks())
    def holds(case: tuple[Any, int]) -> None:
        graph = fold(case[0])
        quantized = quantize_for(TARGETS["sim-mul"], graph, samples_for(graph, case[1]), how)
        for node in quantized.nodes:
            if isinstance(node.op, Biased):
                assert node.op.factor is not None
                worst = 128 * np.abs(weight_rows(node.op)).sum(axis=1) + np.abs(
                    node.op.bias.astype(np.int64)
                )
                assert (worst * node.op.factor < 1 << 31).all()

    holds()


def test_the_gain_of_a_layer() -> None:
    three = np.array([3], np.int32)
    dense = QDense(weight=np.ones((1, 1), np.int8), bias=three, shift=three, factor=three)
    affine = QAffine(weight=three, bias=three, shift=three)
    assert (gain(dense).tolist(), gain(affine).tolist()) == ([3 / 8], [1 / 8])


def test_a_target_without_mul_is_named_with_those_that_have_it() -> None:
    with pytest.raises(SettingsError, match="--requantize mul: the ALU of sim has no MUL") as no:
        quantize_for(TARGETS["sim"], Builder((1, 1)).graph("x"), None, MUL)
    assert no.value.hint.startswith("--target sim-mul, ")
