"""Integer operators against loops that anyone can check by eye."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from numpy.typing import NDArray

from driver.network.graph.ir import Window
from driver.network.integer import arithmetic as integer
from driver.network.integer.qir import MAX_WIDE

Array = NDArray[Any]
Place = tuple[int, ...]


def clipped(value: int, lo: int, hi: int) -> int:
    return min(max(value, lo), hi)


def slow_conv(
    x: Array, w: Array, bias: Array, shift: Array, window: Window, lo: int, hi: int
) -> Array:
    oh, ow = window.positions(x.shape[2], x.shape[3])
    out = np.zeros((x.shape[0], w.shape[0], oh, ow), np.int64)
    for n, co, i, j in itertools.product(*map(range, out.shape)):
        acc = int(bias[co])
        for ci, ki, kj in itertools.product(*map(range, w.shape[1:])):
            row = i * window.stride[0] + ki * window.dilation[0] - window.pad[0]
            column = j * window.stride[1] + kj * window.dilation[1] - window.pad[1]
            if 0 <= row < x.shape[2] and 0 <= column < x.shape[3]:
                acc += int(x[n, ci, row, column]) * int(w[co, ci, ki, kj])
        out[n, co, i, j] = clipped(acc >> int(shift[co]), lo, hi)
    return out


def slow_pool(x: Array, window: Window, outside: int) -> list[tuple[Place, list[int]]]:
    """The elements under every place of the window."""
    oh, ow = window.positions(x.shape[2], x.shape[3])
    found: list[tuple[Place, list[int]]] = []
    for n, c, i, j in itertools.product(range(x.shape[0]), range(x.shape[1]), range(oh), range(ow)):
        under = []
        for ki, kj in itertools.product(range(window.kernel[0]), range(window.kernel[1])):
            row = i * window.stride[0] + ki - window.pad[0]
            column = j * window.stride[1] + kj - window.pad[1]
            inside = 0 <= row < x.shape[2] and 0 <= column < x.shape[3]
            under.append(int(x[n, c, row, column]) if inside else outside)
        found.append(((n, c, i, j), under))
    return found


@st.composite
def windows(draw: st.DrawFn, *, dilated: bool) -> Window:
    pairs = st.tuples(st.integers(1, 2), st.integers(1, 2))
    return Window(
        kernel=draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
        stride=draw(pairs),
        pad=draw(st.tuples(*[st.integers(0, 1)] * 4)),
        dilation=draw(pairs) if dilated else (1, 1),
    )


def int8s(rng: np.random.Generator, *shape: int) -> NDArray[np.int8]:
    return rng.integers(-128, 128, shape, dtype=np.int8)


@settings(max_examples=examples(25), deadline=None)
@given(windows(dilated=True), st.integers(0, 999), st.booleans())
def test_conv2d_is_the_loop(window: Window, seed: int, relu: bool) -> None:
    rng = np.random.default_rng(seed)
    x, w = int8s(rng, 2, 3, 5, 6), int8s(rng, 4, 3, *window.kernel)
    bias = rng.integers(-5000, 5000, 4, dtype=np.int32)
    shift = rng.integers(0, 12, 4, dtype=np.int32)
    lo = 0 if relu else -128
    got = integer.conv2d(x, w, bias, shift, window=window, lo=lo, hi=127)
    assert (got == slow_conv(x, w, bias, shift, window, lo, 127)).all()


@settings(max_examples=examples(25), deadline=None)
@given(windows(dilated=True), st.integers(0, 999))
def test_weights_of_16_bits_are_the_loop(window: Window, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = int8s(rng, 2, 3, 5, 6)
    w = rng.integers(-32768, 32768, (4, 3, *window.kernel), dtype=np.int16)
    bias = rng.integers(-(1 << 29), 1 << 29, 4, dtype=np.int32)
    shift = rng.integers(14, 24, 4, dtype=np.int32)
    got = integer.conv2d(x, w, bias, shift, window=window, lo=-128, hi=127)
    assert (got == slow_conv(x, w, bias, shift, window, -128, 127)).all()


@pytest.mark.parametrize("terms", [4, 5, 500])
def test_weights_of_16_bits_are_exact_where_float32_is_not(terms: int) -> None:
    """Four products with 128 * 32768 make 2^24; the biases leave the last units of each sum."""
    x = np.full((1, terms), -128, np.int8)
    w = np.full((3, terms), -32768, np.int16)
    w[:, -1] += np.array([0, 1, 3], np.int16)
    exact = x.astype(np.int64) @ w.astype(np.int64).T
    bias = (np.array([5, 6, 7]) - exact[0]).astype(np.int32)
    zero = np.zeros(3, np.int32)
    assert integer.dense(x, w, bias, zero, lo=-128, hi=127).tolist() == [[5, 6, 7]]
    image = x.reshape(1, terms, 1, 1)
    pixel = integer.conv2d(
        image,
        w[:, :, None, None],
        bias,
        zero,
        window=Window(kernel=(1, 1)),
        lo=-128,
        hi=127,
    )
    assert pixel.reshape(3).tolist() == [5, 6, 7]


@settings(max_examples=examples(25), deadline=None)
@given(windows(dilated=True), st.integers(0, 999), st.booleans())
def test_tensors_of_16_bits_are_the_loop(window: Window, seed: int, depthwise: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-MAX_WIDE, MAX_WIDE + 1, (2, 3, 5, 6), dtype=np.int16)
    w = int8s(rng, 3, 1 if depthwise else 3, *window.kernel)
    bias = rng.integers(-(1 << 29), 1 << 29, 3, dtype=np.int32)
    shift = rng.integers(6, 20, 3, dtype=np.int32)
    groups = 3 if depthwise else 1
    got = integer.conv2d(x, w, bias, shift, window=window, groups=groups, lo=-500, hi=MAX_WIDE)
    whole = w if not depthwise else np.eye(3, dtype=np.int8)[:, :, None, None] * w
    assert got.dtype == np.int16
    assert (got == slow_conv(x, whole, bias, shift, window, -500, MAX_WIDE)).all()


def test_results_have_the_type_that_holds_their_bounds() -> None:
    x, w, zero = np.array([[300]], np.int16), np.array([[1]], np.int8), np.zeros(1, np.int32)
    for lo, hi, dtype, value in (
        (-128, 127, np.int8, 127),
        (0, 128, np.int16, 128),
        (-129, 5, np.int16, 5),
        (-MAX_WIDE, MAX_WIDE, np.int16, 300),
    ):
        got = integer.dense(x, w, zero, zero, lo=lo, hi=hi)
        assert got.dtype == np.dtype(dtype)
        assert got.tolist() == [[value]]


@pytest.mark.parametrize("terms", [3, 4, 5, 200])
def test_tensors_of_16_bits_are_exact_where_float32_is_not(terms: int) -> None:
    """Four products of 127 and 32,639 are not far below 2^24, five beyond."""
    x = np.full((1, terms), MAX_WIDE, np.int16)
    w = np.full((2, terms), 127, np.int8)
    w[1, 0] = 126
    bias = (np.array([5, 6]) - x.astype(np.int64) @ w.astype(np.int64).T)[0].astype(np.int32)
    zero = np.zeros(2, np.int32)
    assert integer.dense(x, w, bias, zero, lo=-128, hi=127).tolist() == [[5, 6]]


@pytest.mark.parametrize("terms", [1023, 1024, 1025, 4609])
def test_dense_is_exact_where_float32_is_not(terms: int) -> None:
    """Odd sums beyond 2^24 have no float32; the biases leave only the last unit of each."""
    rng = np.random.default_rng(terms)
    x = rng.integers(100, 128, (1, terms), dtype=np.int8)
    w = rng.integers(100, 128, (40, terms), dtype=np.int8)
    left = np.arange(40) - 20
    bias = (left - w.astype(np.int64) @ x[0].astype(np.int64)).astype(np.int32)
    got = integer.dense(x, w, bias, np.zeros(40, np.int32), lo=-128, hi=127)
    assert got[0].tolist() == left.tolist()


@pytest.mark.parametrize(
    ("more", "wanted"), [(0, np.float32), (1, np.float64)], ids=["just exact", "one too many"]
)
def test_a_convolution_is_in_float32_where_its_own_weights_sum_exactly(
    more: int, wanted: type[np.floating]
) -> None:
    """2^24 = 128 * (1024 * 127 + 1024): the largest sum that all terms may reach."""
    weight = np.concatenate([np.full(1024, 127), np.full(512, -2), [more]]).astype(np.int8)
    kernel = weight.reshape(1, -1, 1, 1)
    assert integer.exact(kernel).dtype == wanted
    assert integer.exact(np.full((2, 1025, 1, 1), -128, np.int8)).dtype == np.float64
    x = np.where(weight < 0, 127, -128).astype(np.int8)
    total = int(x.astype(np.int64) @ weight.astype(np.int64))
    bias, shift = np.array([-total], np.int32), np.zeros(1, np.int32)
    window = Window(kernel=(1, 1))
    got = integer.conv2d(
        x.reshape(1, -1, 1, 1), kernel, bias, shift, window=window, lo=-128, hi=127
    )
    assert got.item() == 0


def test_sums_wrap_as_the_accelerators_do() -> None:
    got = integer.dense(
        np.array([[1]], np.int8),
        np.array([[1]], np.int8),
        np.array([2**31 - 1], np.int32),
        np.array([24], np.int32),
        lo=-128,
        hi=127,
    )
    assert got.tolist() == [[-128]]


@settings(max_examples=examples(15), deadline=None)
@given(windows(dilated=False), st.integers(0, 999))
def test_pools_are_the_loop(window: Window, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = int8s(rng, 1, 2, 5, 4)
    mul = rng.integers(1, 128, window.positions(5, 4), dtype=np.int32)
    largest = integer.max_pool2d(x, window=window)
    for place, under in slow_pool(x, window, -128):
        assert largest[place] == max(under)
    mean = integer.avg_pool2d(x, mul, window=window, shift=9, lo=-128, hi=127)
    for place, under in slow_pool(x, window, 0):
        expected = (sum(under) * int(mul[place[2:]]) + 256) >> 9
        assert mean[place] == clipped(expected, -128, 127)


@given(
    st.integers(-128, 127), st.integers(-128, 127), st.integers(1, 127), st.integers(1, 127),
    st.integers(0, 12),
)  # fmt: skip
def test_add_is_its_formula(a: int, b: int, mul_a: int, mul_b: int, shift: int) -> None:
    got = integer.add(
        np.array([a], np.int8),
        np.array([b], np.int8),
        mul_a=mul_a,
        mul_b=mul_b,
        shift=shift,
        lo=-100,
        hi=90,
    )
    half = 2 ** (shift - 1) if shift else 0
    assert got[0] == clipped((a * mul_a + b * mul_b + half) // 2**shift, -100, 90)


def test_affine_is_its_formula_per_channel() -> None:
    x = np.array([[[3, -3], [10, -128]]], np.int8)
    mul, add, shift = (np.array(v, np.int32) for v in ([5, -127], [1, 64], [1, 7]))
    got = integer.affine(x, mul, add, shift, lo=-128, hi=127)
    assert got.tolist() == [[[8, -7], [(64 - 1270) >> 7, 127]]]


def test_quantize_rounds_half_to_even_and_saturates() -> None:
    x = np.array([0.5, 1.5, -0.5, -2.5, 1e9, -1e9, 3.49], np.float32)
    assert integer.quantize(x, inv_scale=1.0).tolist() == [0, 2, 0, -2, 127, -128, 3]


def test_dequantize_is_one_product() -> None:
    got = integer.dequantize(np.array([-128, 5], np.int8), scale=float(np.float32(0.1)))
    assert got.dtype == np.float32
    assert got.tolist() == [float(np.float32(-128) * np.float32(0.1)), 0.5]


def test_softmax_sums_in_channel_order() -> None:
    table = np.exp(-np.arange(256) * 0.05).astype(np.float32)
    x = int8s(np.random.default_rng(1), 3, 40)
    got = integer.softmax(x, table)
    for row, values in zip(got, x, strict=True):
        powers = [table[int(values.max()) - int(v)] for v in values]
        total = np.float32(0)
        for power in powers:
            total = np.float32(total + power)
        assert row.tolist() == [float(np.float32(p / total)) for p in powers]
        assert math.isclose(float(row.sum()), 1.0, rel_tol=1e-5)
