"""Weights that are rounded to fit are whole, within their bounds, and never fit worse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.random_networks import conv, dense, transposed, window
from numpy.typing import NDArray

from driver.network.graph.columns import correlate_groups, correlate_phases
from driver.network.graph.ir import Affine, Conv2d, ConvTranspose2d, Dense
from driver.network.quantize.channel_weights import Weighted
from driver.network.quantize.moments import grouped_rows, mean_sums, moments
from driver.network.quantize.rounding import fitted


def noise(whole: NDArray[np.float64], rows: NDArray[np.float64], h: NDArray[np.float64]) -> float:
    off = whole - rows
    return float(np.einsum("grk,gkl,grl->", off, h, off))


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 999), st.integers(1, 3), st.integers(1, 5), st.integers(1, 150))
def test_what_fits_is_whole_and_no_worse(seed: int, groups: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    operands = rng.standard_normal((groups, 200, columns)) @ rng.standard_normal((columns, columns))
    h = operands.swapaxes(1, 2) @ operands / 200
    real = rng.uniform(-130, 130, (groups, rows, columns))
    whole = fitted(real, h, 127)
    assert np.array_equal(whole, np.rint(whole))
    assert np.abs(whole).max() <= 127
    own = 0.05 * np.trace(h, axis1=1, axis2=2) / columns
    damped = h + own[:, None, None] * np.eye(columns)
    nearest = np.clip(np.rint(real), -127, 127)
    assert noise(whole, real, damped) <= noise(nearest, real, damped) * (1 + 1e-4)


def test_errors_of_operands_that_are_alike_cancel() -> None:
    """Two weights of 0.4 on the same operand are 0 and 1, not 0 and 0."""
    assert fitted(np.full((1, 1, 2), 0.4), np.ones((1, 2, 2)), 127).sum() == 1


def test_operands_that_never_vary_leave_the_nearest() -> None:
    real = np.array([[[0.4, -1.6, 300.0]]])
    assert fitted(real, np.zeros((1, 3, 3)), 127).tolist() == [[[0, -2, 127]]]


RNG = np.random.default_rng(1)
LAYERS: dict[str, Weighted] = {
    "dense": dense(RNG, 12, 5),
    "conv": conv(RNG, 6, 4, window(pad=1)),
    "grouped": conv(RNG, 6, 4, window(3, stride=2), groups=2),
    "depthwise": conv(RNG, 6, 12, window(pad=1), groups=6),
    "transposed": transposed(RNG, 6, 4, (2, 2), (1, 1)),
    "affine": Affine(weight=np.arange(6, dtype=np.float32), bias=np.ones(6, np.float32)),
}


def products(op: Weighted, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums [N, Co, ...] without what is added to them."""
    weight = op.weight.astype(np.float64)
    match op:
        case Affine():
            return x * weight[:, None, None]
        case Dense():
            return np.asarray(x @ weight.T)
        case Conv2d():
            return np.asarray(correlate_groups(x, weight, op.window, op.groups))
        case ConvTranspose2d():
            return np.asarray(correlate_phases(x, weight, op.pad))


@pytest.mark.parametrize("kind", LAYERS)
def test_mean_and_variance_of_sums_are_those_of_running_the_layer(kind: str) -> None:
    op = LAYERS[kind]
    x = RNG.standard_normal((7, 12) if kind == "dense" else (7, 6, 8, 8)) + 0.5
    met, sums = moments(op, x), products(op, x)
    others = tuple(axis for axis in range(sums.ndim) if axis != 1)
    found = mean_sums(op, op.weight, met.mean)
    np.testing.assert_allclose(found, sums.mean(axis=others), rtol=1e-5)
    variance = met.variance_of(grouped_rows(op, op.weight).astype(np.float64))
    if kind == "transposed":  # a channel's variance is over all of its phases
        phases = [sums[:, :, p::2, q::2] for p in (0, 1) for q in (0, 1)]
        wanted = np.stack([each.var(axis=others) for each in phases], axis=1)
    else:
        wanted = sums.var(axis=others)
    np.testing.assert_allclose(variance.reshape(-1), wanted.reshape(-1), rtol=1e-4)
