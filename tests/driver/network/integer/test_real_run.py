"""Float operators as calls of kernels: near what floats mean, with sums in their order."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.real_operators import reals

from driver.network.graph import float_run
from driver.network.graph.ir import (
    Affine,
    Conv2d,
    Custom,
    Dense,
    FakeQuantize,
    Operator,
    Reshape,
    ScaleSums,
    Softmax,
    SubtractZeroPoint,
    Unary,
    Window,
)
from driver.network.integer.real_calls import real_calls_of
from driver.network.integer.real_run import run_real
from driver.network.integer.real_views import merged, with_last
from driver.network.quantize.floats import has_no_kernel


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_calls_mean_what_floats_mean(data: st.DataObject, seed: int) -> None:
    rng = np.random.default_rng(seed)
    op, shapes = data.draw(reals(rng))
    operands = [rng.uniform(0.2, 2.0, shape).astype(np.float32) for shape in shapes]
    found, wanted = run_real(op, operands), float_run.apply(op, *operands)
    assert found.shape == wanted.shape
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)


def test_every_operator_that_computes_has_calls() -> None:
    assert has_no_kernel(Reshape(shape=(4,))) == "reshaping computes nothing"
    assert "no fixed order" in has_no_kernel(Unary(function="acosh"))
    with pytest.raises(TypeError, match="moves nothing"):
        real_calls_of(Reshape(shape=(4,)), [(1, 2, 2)])
    drawn = {type(op) for op in _some_of_each()}
    elsewhere = {Reshape, SubtractZeroPoint, FakeQuantize, ScaleSums, Custom}
    assert drawn == {*get_args(Operator)} - elsewhere
    for op in (FakeQuantize(), Reshape(shape=(4,))):
        assert has_no_kernel(op)


def _some_of_each() -> list[Operator]:
    found: list[Operator] = []

    @settings(max_examples=examples(400), deadline=None, database=None, derandomize=True)
    @given(case=reals(np.random.default_rng(0)))
    def collect(case: tuple[Operator, object]) -> None:
        found.append(case[0])

    collect()
    return found


def test_sums_are_made_term_after_term() -> None:
    large, small = np.float32(2**24), np.float32(1)
    weight = np.array([[large, small, small, -large]], np.float32)
    op = Dense(weight=weight, bias=np.zeros(1, np.float32))
    ones = np.ones((1, 4), np.float32)
    assert run_real(op, [ones]) == 0  # 2^24 + 1 is 2^24, twice
    turned = Dense(weight=weight[:, [1, 2, 0, 3]], bias=op.bias)
    assert run_real(turned, [ones]) == 2


def test_factors_of_one_and_addends_of_zero_are_no_calls() -> None:
    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)

    def functions(mul: np.ndarray, add: np.ndarray) -> list[object]:
        calls = real_calls_of(Affine(weight=mul, bias=add, lo=0.0), [(1, 3, 4)])
        assert ["lo" in call.attrs for call in calls] == [*[False] * (len(calls) - 1), True]
        return [call.attrs["function"] for call in calls]

    assert functions(ones + 1, ones) == ["mul", "add"]
    assert functions(ones, ones) == ["add"]
    assert functions(ones + 1, zeros) == functions(ones, zeros) == ["mul"]


def test_pixels_of_a_convolution_of_one_pixel_are_one_row() -> None:
    conv = Conv2d(
        weight=np.ones((2, 3, 1, 1), np.float32),
        bias=np.zeros(2, np.float32),
        window=Window(kernel=(1, 1)),
    )
    (call,) = real_calls_of(conv, [(1, 3, 5, 4)])
    assert call.shape == (1, 1, 2, 1, 20)
    assert call.macs == 2 * 3 * 20


def test_axes_that_are_apart_are_brought_together_and_back() -> None:
    operators = [call.operator for call in real_calls_of(Softmax(axis=1), [(1, 3, 4)])]
    assert operators == ["real_softmax"]
    index = with_last((1, 2, 3, 4), (1, 3))
    assert index.shape == (3, 2, 4)
    assert index[1, 1, 2] == 12 + 4 + 2


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ((2, 3, 4, 5), (2, 3, 1, 1), ((6, 20), (6, 1))),
        ((2, 3, 4, 5), (2, 3, 4, 5), ((1, 120), (1, 120))),
        ((2, 1, 4), (2, 3, 1), ((2, 1, 4), (2, 3, 1))),
        ((1, 1), (1, 1), ((1, 1), (1, 1))),
    ],
)
def test_axes_that_are_repeated_alike_are_one(
    a: tuple[int, ...], b: tuple[int, ...], wanted: tuple[tuple[int, ...], ...]
) -> None:
    assert merged(a, b, tuple(map(max, a, b)))[:2] == wanted
