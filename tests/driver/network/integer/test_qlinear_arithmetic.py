"""ONNX's own arithmetic against Python's integers and single float32 operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from numpy.typing import NDArray
from tilefarm.dtype import DType

from driver.network.graph.grid import Grid
from driver.network.graph.ir import Add, Product, Window
from driver.network.integer.qlinear import (
    DequantizeLinear,
    DynamicGrid,
    DynamicLayer,
    DynamicQuantizeLinear,
    QLinearAvgPool2d,
    QLinearBinary,
    QLinearConv2d,
    QLinearConvTranspose2d,
    QLinearDense,
    QLinearLookup,
    QLinearMatMul,
    QuantizeLinear,
    Requantization,
)
from driver.network.integer.qlinear_arithmetic import apply_qlinear

Array = NDArray[Any]
TYPES = (np.int8, np.uint8)


def slow_requantized(total: int, scale: Any, to: Requantization) -> int:
    """One sum after the other, every operation rounded to float32 by itself."""
    steps = np.float32(np.int32(total)) * np.float32(scale)
    return min(max(round(float(steps)) + to.zero, to.lo), to.hi)


def bytes_of(rng: np.random.Generator, dtype: type, shape: tuple[int, ...]) -> Array:
    ends = np.iinfo(dtype)
    return rng.integers(ends.min, ends.max + 1, shape).astype(dtype)


def eight_bits(rng: np.random.Generator, dtype: type, channels: int = 1) -> Requantization:
    """Results that reach both ends of the type."""
    ends = np.iinfo(dtype)
    return Requantization(
        scale=rng.uniform(1e-4, 3e-3, channels).astype(np.float32),
        dtype=DType(dtype.__name__),
        zero=int(rng.integers(ends.min, ends.max + 1)),
        lo=int(ends.min),
        hi=int(ends.max),
    )


@pytest.mark.parametrize("x_type", TYPES)
@pytest.mark.parametrize("weight_type", TYPES)
@settings(max_examples=examples(10), deadline=None)
@given(seed=st.integers(0, 2**16), groups=st.sampled_from([1, 2, 4]))
def test_convolutions(x_type: type, weight_type: type, seed: int, groups: int) -> None:
    rng = np.random.default_rng(seed)
    window = Window(kernel=(2, 3), stride=(2, 1), pad=(1, 0, 0, 2), dilation=(1, 2))
    op = QLinearConv2d(
        weight=bytes_of(rng, weight_type, (4, 4 // groups, 2, 3)),
        weight_zero=rng.integers(-3, 140, 4).astype(np.int32),
        bias=rng.integers(-5000, 5000, 4).astype(np.int32),
        x_zero=int(bytes_of(rng, x_type, ())),
        window=window,
        groups=groups,
        to=eight_bits(rng, x_type, 4),
    )
    x = bytes_of(rng, x_type, (2, 4, 4, 6))
    found = apply_qlinear(op, x)
    assert found.dtype == x_type
    for n, co, i, j in np.ndindex(*found.shape):
        total = int(op.bias[co])
        for ci, ki, kj in np.ndindex(*op.weight.shape[1:]):
            row, column = 2 * i + ki - 1, j + 2 * kj
            channel = co // (4 // groups) * (4 // groups) + ci
            if 0 <= row < 4 and 0 <= column < 6:
                steps = int(x[n, channel, row, column]) - op.x_zero
                total += steps * (int(op.weight[co, ci, ki, kj]) - int(op.weight_zero[co]))
        assert found[n, co, i, j] == slow_requantized(total, op.to.scale[co], op.to)


@given(seed=st.integers(0, 2**16))
@settings(max_examples=examples(20), deadline=None)
def test_dense_layers_and_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = bytes_of(rng, np.uint8, (2, 6, 3)), bytes_of(rng, np.int8, (2, 6, 4))
    to = eight_bits(rng, np.int8)
    found = apply_qlinear(QLinearMatMul(groups=2, a_zero=131, b_zero=-4, to=to), a, b)
    for n, i, j in np.ndindex(*found.shape):
        ks = range(i // 3 * 3, i // 3 * 3 + 3)
        total = sum((int(a[n, k, i % 3]) - 131) * (int(b[n, k, j]) + 4) for k in ks)
        assert found[n, i, j] == slow_requantized(total, to.scale[0], to)
    bias = np.arange(4, dtype=np.int32)
    dense = QLinearDense(
        weight=b[0], weight_zero=np.full(6, -4, np.int32), bias=bias[:1], x_zero=9, to=to
    )
    x = bytes_of(rng, np.uint8, (1, 4))
    totals = (x.astype(int) - 9) @ (b[0].astype(int).T + 4)
    wanted = [slow_requantized(int(each), to.scale[0], to) for each in totals[0]]
    assert apply_qlinear(dense, x)[0].tolist() == wanted


def test_transposed_convolution_is_one_for_each_phase() -> None:
    rng = np.random.default_rng(4)
    common: dict[str, Any] = {
        "weight_zero": np.zeros(3, np.int32),
        "bias": rng.integers(-99, 99, 3).astype(np.int32),
        "x_zero": 7,
        "to": eight_bits(rng, np.int8, 3),
    }
    weight = bytes_of(rng, np.int8, (3, 2, 2, 5, 2, 2))
    x = bytes_of(rng, np.int8, (1, 5, 4, 4))
    op = QLinearConvTranspose2d(weight=weight, pad=(1, 0, 0, 1), **common)
    found = apply_qlinear(op, x)
    window = Window(kernel=(2, 2), pad=(1, 0, 0, 1))
    for p, q in np.ndindex(2, 2):
        phase = QLinearConv2d(weight=weight[:, p, q], window=window, groups=1, **common)
        assert (found[:, :, p::2, q::2] == apply_qlinear(phase, x)).all()


def test_ties_go_to_even_and_sums_beyond_24_bits_are_rounded_first() -> None:
    to = Requantization(scale=np.array([0.5], np.float32), dtype=DType.UINT8, zero=10, lo=0, hi=255)
    one = QLinearDense(
        weight=np.ones((1, 1), np.int8),
        weight_zero=np.zeros(1, np.int32),
        bias=np.zeros(1, np.int32),
        x_zero=0,
        to=to,
    )
    x = np.array([[-3], [-1], [1], [3], [5]], np.int8)
    assert apply_qlinear(one, x)[:, 0].tolist() == [8, 10, 10, 12, 12]
    large = QLinearDense(
        weight=one.weight,
        weight_zero=one.weight_zero,
        bias=np.array([(1 << 24) + 1], np.int32),
        x_zero=0,
        to=Requantization(scale=np.ones(1, np.float32)),
    )
    assert apply_qlinear(large, np.zeros((1, 1), np.int8))[0, 0] == 1 << 24


def test_a_bias_in_float32_is_added_to_the_reals() -> None:
    to = Requantization(
        scale=np.array([0.25, 1], np.float32),
        addend=np.array([0.25, -1], np.float32),
        dtype=DType.INT8,
        zero=-2,
        lo=-128,
        hi=0,
    )
    op = QLinearDense(
        weight=np.ones((2, 1), np.uint8),
        weight_zero=np.zeros(2, np.int32),
        bias=np.zeros(2, np.int32),
        x_zero=0,
        to=to,
    )
    assert apply_qlinear(op, np.array([[5], [1]], np.uint8)).tolist() == [[0, 0], [-2, -2]]


def test_a_dynamic_layer_has_the_grid_of_each_sample() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, 4)).astype(np.float32) * np.array([[1], [50], [0]], np.float32)
    grids = apply_qlinear(DynamicGrid(), x)
    scale, zero = grids[:, :1], grids[:, 1:]
    assert grids[2].tolist() == [1, 0]
    layer = QLinearDense(
        weight=bytes_of(rng, np.int8, (2, 4)),
        weight_zero=np.zeros(2, np.int32),
        bias=np.array([7, -7], np.int32),
        x_zero=0,
        to=Requantization(scale=np.array([0.01, 0.02], np.float32)),
    )
    q = apply_qlinear(DynamicQuantizeLinear(), x, grids)
    assert (q == np.clip(np.rint(x / scale) + zero, 0, 255)).all()
    sums = (q.astype(int) - zero.astype(int)) @ layer.weight.astype(int).T + layer.bias
    wanted = sums.astype(np.float32) * (scale * layer.to.scale)
    assert (apply_qlinear(DynamicLayer(layer=layer), q, grids) == wanted).all()


def test_grids_of_data_that_are_no_numbers() -> None:
    """They count for nothing, and become 0; beside infinities all is 0."""
    x = np.array([[np.nan, -1, 4, 0], [np.inf, -3, 2, np.nan], [1e-45, 0, 0, -0.0]], np.float32)
    grids = apply_qlinear(DynamicGrid(), x)
    assert grids.tolist() == [[np.float32(5) / np.float32(255), 51], [np.inf, 0], [0, 0]]
    q = apply_qlinear(DynamicQuantizeLinear(), x, grids)
    assert q.tolist() == [[0, 0, 255, 51], [0, 0, 0, 0], [255, 0, 0, 0]]


def test_quantization_of_what_has_no_integer() -> None:
    grid = Grid(0.5, 3, "uint8")
    x = np.array([np.nan, np.inf, -np.inf, 0.25, 0.75, -9], np.float32)
    assert apply_qlinear(QuantizeLinear(grid=grid), x).tolist() == [0, 255, 0, 3, 5, 0]
    reals = apply_qlinear(DequantizeLinear(grid=grid), np.array([0, 3, 255], np.uint8))
    assert reals.tolist() == [-1.5, 0, 126]


def test_means_sums_and_tables() -> None:
    x = np.array([[[[1, 2], [3, 8]]]], np.uint8)
    to = Requantization(
        scale=np.full((1, 1), 0.125, np.float32), dtype=DType.INT8, zero=-1, lo=-128, hi=127
    )
    mean = QLinearAvgPool2d(window=Window(kernel=(2, 2)), x_zero=2, to=to)
    assert apply_qlinear(mean, x).tolist() == [[[[0]]]]  # 6 / 8 is 0.75: 1, plus -1
    grid = Grid(0.5, 0, "uint8")
    sums = QLinearBinary(op=Add(), a=grid, b=grid, to=grid, lo=0, hi=9)
    assert apply_qlinear(sums, x, x).reshape(-1).tolist() == [2, 4, 6, 9]
    products = QLinearBinary(op=Product(), a=grid, b=grid, to=grid, lo=0, hi=255)
    assert apply_qlinear(products, x, x).reshape(-1).tolist() == [0, 2, 4, 32]
    table = np.arange(256, dtype=np.uint8)[::-1]
    assert apply_qlinear(QLinearLookup(table=table), x).reshape(-1).tolist() == [254, 253, 252, 247]
    rows = np.stack([table, table // 2])
    signed = np.full((1, 2), -128, np.int8)
    assert apply_qlinear(QLinearLookup(table=rows), signed).tolist() == [[255, 127]]
