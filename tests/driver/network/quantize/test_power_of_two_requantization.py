"""The numbers of the shift-exact scheme: exact gains, no overflow, no wasted bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.network.quantize.power_of_two_requantization import (
    MAX_MUL,
    bounds,
    layer_parameters,
    least_out_scale,
    mean_parameters,
    most_bias,
    rescale_parameters,
    sum_parameters,
)

scales = st.floats(1e-6, 1e3)


def test_a_layer_by_hand() -> None:
    """Gains 0.5 and 0.01: shifts 7 and 13, since 0.5 * 2^8 and 0.01 * 2^14 exceed 127."""
    weight = np.array([[0.5, -0.25], [0.01, 0.0]], np.float32)
    bias = np.array([1.0, -2.0], np.float32)
    layer = layer_parameters(weight, bias, in_scale=0.1, out_scale=0.1, block=16)
    assert layer.shift.tolist() == [7, 13]
    assert layer.weight.tolist() == [[64, -32], [82, 0]]
    assert layer.bias.tolist() == [10 * 128 + 64, -20 * 8192 + 4096]
    assert layer.weight.dtype == np.int8
    assert layer.bias.dtype == layer.shift.dtype == np.int32


def test_a_bias_keeps_within_one_tile_where_bits_are_to_spare() -> None:
    """A dead channel would have a shift of 30, and half of 2^30 as its rounding."""
    weight = np.array([[0.0], [1e-6], [0.5]], np.float32)
    bias = np.array([100.0, 100.0, 100.0], np.float32)
    layer = layer_parameters(weight, bias, in_scale=1.0, out_scale=1.0, block=16)
    assert most_bias(16) == 127 * 127 * 15 + 63
    assert np.abs(layer.bias).max() <= most_bias(16)
    assert (layer.bias >> layer.shift).tolist() == [100, 100, 100]


@given(scales, st.floats(1.0, 1e3))
def test_a_rescaling_is_as_near_as_seven_bits(scale: float, factor: float) -> None:
    mul, shift = rescale_parameters(scale, scale * factor)
    assert 1 <= mul <= MAX_MUL
    assert 0 <= shift <= 30
    assert math.isclose(mul / 2**shift, 1 / factor, rel_tol=1 / 127)


@given(st.integers(0, 999), scales, st.floats(1e-3, 1e3))
def test_weights_use_the_range_and_sums_stay_within_int32(
    seed: int, in_scale: float, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    weight = (rng.standard_normal((4, 9)) * spread).astype(np.float32)
    out_scale = max(least_out_scale(weight, in_scale), in_scale)
    bias = (rng.standard_normal(4) * out_scale * 50).astype(np.float32)
    layer = layer_parameters(weight, bias, in_scale=in_scale, out_scale=out_scale, block=16)
    largest = np.abs(layer.weight.astype(int)).max(axis=1)
    sums = 128 * np.abs(layer.weight.astype(int)).sum(axis=1) + np.abs(layer.bias.astype(int))
    assert (largest <= 127).all()
    assert ((layer.shift >= 0) & (layer.shift <= 30)).all()
    assert (sums < 2**31).all()
    gains = weight.astype(float) * in_scale / out_scale
    worst = 0.5 / np.exp2(layer.shift)
    assert (
        np.abs(layer.weight / np.exp2(layer.shift)[:, None] - gains) <= worst[:, None] * 1.001
    ).all()
    far = 2 * np.abs(layer.bias.astype(int)) > most_bias(16)
    assert ((largest >= 63) | (layer.shift == 30) | (2 * sums >= 2**31) | far).all()


def test_a_dead_channel_gives_its_bias() -> None:
    layer = layer_parameters(
        np.zeros((1, 4), np.float32),
        np.array([3.0], np.float32),
        in_scale=1.0,
        out_scale=1.0,
        block=8,
    )
    assert (int(layer.bias[0]) >> int(layer.shift[0])) == 3


def test_a_bias_beyond_all_sums_still_saturates_and_is_no_larger_than_that_takes() -> None:
    layer = layer_parameters(
        np.array([[1.0, -0.5], [0.25, 1.0]], np.float32),
        np.array([1e12, -1e12], np.float32),
        in_scale=1.0,
        out_scale=1.0,
        block=16,
    )
    worst = 128 * np.abs(layer.weight.astype(int)).sum(axis=1)
    over, under = layer.bias.astype(int) + worst * np.array([-1, 1]) >> layer.shift
    assert over > 127
    assert under < -128
    assert np.abs(layer.bias).max() < 1 << 17


def test_a_sum_that_cannot_fit_is_refused() -> None:
    with pytest.raises(OverflowError, match="32-bit"):
        layer_parameters(
            np.full((1, 200_000), 100.0, np.float32),
            np.zeros(1, np.float32),
            in_scale=1.0,
            out_scale=1.0,
            block=16,
        )


@given(scales, st.floats(1e-3, 1.0), st.floats(0.5, 2.0), st.booleans())
def test_an_addition_is_exact_for_the_larger_operand(
    big: float, ratio: float, reach: float, swapped: bool
) -> None:
    small, wanted = big * ratio, big * reach
    a, b = (small, big) if swapped else (big, small)
    got = sum_parameters(a, b, wanted)
    mul_big, mul_small = (got.mul_b, got.mul_a) if swapped else (got.mul_a, got.mul_b)
    assert 1 <= mul_small <= mul_big <= MAX_MUL
    assert 0 <= got.shift <= 30
    assert wanted <= got.out_scale * (1 + 1e-9)
    assert got.out_scale <= wanted * 1.06
    assert math.isclose(mul_big / 2**got.shift, big / got.out_scale, rel_tol=1e-9)
    assert mul_small == 1 or abs(mul_small - mul_big * ratio) <= 0.5 + 1e-9


def test_an_addition_of_equal_scales_is_exact_for_both() -> None:
    got = sum_parameters(0.3, 0.3, 0.5)
    assert got.mul_a == got.mul_b


@given(scales, st.integers(1, 256), st.floats(0.05, 1.0))
def test_a_mean_is_exact(in_scale: float, elements: int, reach: float) -> None:
    divisor = np.full((1, 1), elements, np.float32)
    mul, shift, out_scale = mean_parameters(
        divisor, elements, in_scale=in_scale, out_scale=in_scale * reach
    )
    assert 1 <= mul[0, 0] <= MAX_MUL
    assert in_scale * reach <= out_scale * (1 + 1e-9)
    assert math.isclose(mul[0, 0] / 2**shift, in_scale / elements / out_scale, rel_tol=1e-9)
    assert elements * 128 * int(mul[0, 0]) + 2**shift < 2**31


def test_a_border_window_counts_fewer_elements() -> None:
    divisor = np.array([[4.0, 2.0]], np.float32)
    mul, _, _ = mean_parameters(divisor, 4, in_scale=1.0, out_scale=1.0)
    assert mul[0, 1] == 2 * mul[0, 0]


@pytest.mark.parametrize(
    ("lo", "hi", "scale", "expected"),
    [
        (0.0, math.inf, 0.1, (0, 127)),
        (-math.inf, math.inf, 0.1, (-128, 127)),
        (0.0, 6.0, 6 / 127, (0, 127)),
        (-1.0, 1.0, 0.1, (-10, 10)),
        (2.5, 3.5, 1.0, (2, 4)),
        (-1e30, 1e30, 1e-30, (-128, 127)),
    ],
)
def test_bounds(lo: float, hi: float, scale: float, expected: tuple[int, int]) -> None:
    assert bounds(lo, hi, scale) == expected
