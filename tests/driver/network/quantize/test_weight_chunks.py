"""Large layers some rows at a time: the same integers as all at once."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from driver.network.graph import columns
from driver.network.integer import arithmetic
from driver.network.quantize import weight_chunks as module
from driver.network.quantize.fixed_point_requantization import multiplied_parameters
from driver.network.quantize.integer_weights import added_noise
from driver.network.quantize.power_of_two_requantization import LayerParameters, layer_parameters
from driver.network.quantize.weight_chunks import bands

RNG = np.random.default_rng(3)
WEIGHT = (RNG.standard_normal((70, 12, 3, 3)) * np.exp(RNG.standard_normal((70, 1, 1, 1)))).astype(
    np.float32
)
BIAS = RNG.standard_normal(70).astype(np.float32)


@pytest.mark.parametrize(
    ("rows", "columns", "block", "steps"),
    [(70, 100, 16, [32, 32, 6]), (70, 10**9, 16, [16, 16, 16, 16, 6]), (3, 1, 1, [3])],
)
def test_rows_come_in_whole_blocks_and_in_order(
    rows: int, columns: int, block: int, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ELEMENTS", 4700)
    weight = np.broadcast_to(np.zeros(1), (rows, columns))
    found = [range(rows)[band] for band in bands(weight, block)]
    assert [len(each) for each in found] == steps
    assert [row for each in found for row in each] == list(range(rows))


def parameters(kind: str) -> LayerParameters:
    if kind == "factors":
        return multiplied_parameters(WEIGHT, BIAS, in_scale=0.1, out_scale=0.3, block=16)
    return layer_parameters(WEIGHT, BIAS, in_scale=0.1, out_scale=0.3, block=16)


@pytest.mark.parametrize("kind", ["shifts", "factors"])
def test_parameters_are_those_of_the_whole_layer(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = parameters(kind)
    noise = added_noise(WEIGHT, whole, in_scale=0.1, out_scale=0.3)
    monkeypatch.setattr(module, "MOST_ELEMENTS", 2000)
    parts = parameters(kind)
    for name in ("weight", "bias", "shift", "factor"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
        assert getattr(parts, name) is None or (
            getattr(parts, name).dtype == getattr(whole, name).dtype
        )
    assert added_noise(WEIGHT, parts, in_scale=0.1, out_scale=0.3) == pytest.approx(noise)


@pytest.mark.parametrize("terms", [100, 5000])
def test_products_are_exact_in_parts(terms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = RNG.integers(-128, 128, (3, terms), np.int8)
    weight = RNG.integers(-128, 128, (37, terms), np.int8)
    wanted = x.astype(np.int64) @ weight.astype(np.int64).T
    monkeypatch.setattr(columns, "ROWS_ELEMENTS", 4 * terms)
    np.testing.assert_array_equal(arithmetic.products(x, weight), wanted)


def test_a_large_layer_takes_little_memory_besides_itself() -> None:
    """64 MiB of weights; the whole of it in float64 would be 128 MiB, several times over."""
    weight = np.ones((1024, 16384), np.float32)
    tracemalloc.start()
    layer = layer_parameters(
        weight, np.zeros(1024, np.float32), in_scale=0.01, out_scale=1.0, block=16
    )
    sums = arithmetic.products(np.ones((1, 16384), np.int8), layer.weight)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sums.shape == (1, 1024)
    assert peak < 4 * weight.nbytes
