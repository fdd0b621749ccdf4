"""Ranges from data: counted in pieces, cut where the method says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.random_networks import Builder, dense
from tilefarm.errors import DataError

from driver.network.graph.ir import FloatArray, Graph
from driver.network.quantize.calibrate import calibrate
from driver.network.quantize.entropy import divergence, entropy_range
from driver.network.quantize.histograms import BINS, Histogram, percentile
from driver.network.quantize.methods import calibration_method

METHODS = ("percentile:99.9", "percentile", "entropy")


def counted(*pieces: FloatArray) -> Histogram:
    histogram = Histogram()
    for piece in pieces:
        histogram.add(piece)
    return histogram


def spread(count: int, seed: int = 3) -> FloatArray:
    return np.random.default_rng(seed).normal(size=count).astype(np.float32)


def network() -> Graph:
    b = Builder((1, 8))
    return b.graph(b.put(dense(np.random.default_rng(5), 8, 4), "x"))


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=60), st.data())
def test_counts_do_not_depend_on_how_the_values_came(
    values: list[float], data: st.DataObject
) -> None:
    array = np.array(values, np.float32)
    cut = data.draw(st.integers(0, len(values)))
    whole, pieces = counted(array), counted(array[cut:], array[:cut])
    assert (whole.reach, whole.width) == (pieces.reach, pieces.width)
    assert (whole.counts == pieces.counts).all()
    assert whole.counts.sum() == np.count_nonzero(array)
    assert whole.reach == np.abs(array).max()


def test_memory_does_not_grow_with_the_values() -> None:
    histogram = counted(*(np.full(10, 3.0**i, np.float32) for i in range(40)))
    assert histogram.counts.shape == (BINS,)
    assert histogram.counts.sum() == 400


@pytest.mark.parametrize("percent", [50.0, 90.0, 99.9, 100.0])
def test_percentiles_of_evenly_spread_values(percent: float) -> None:
    values = np.arange(1, 10_001, dtype=np.float32)
    got = percentile(counted(-values, np.zeros(9999, np.float32)), percent)
    width = 16384 / BINS
    assert percent * 100 <= got <= percent * 100 + 2 * width
    assert got <= 10_000


def test_few_outliers_do_not_decide() -> None:
    values = np.append(spread(100_000), np.float32(1000.0))
    histogram = counted(values)
    assert histogram.reach == 1000.0
    assert percentile(histogram, 99.9) < 5
    assert entropy_range(histogram) < 130
    assert percentile(histogram, 100.0) == 1000.0


def test_entropy_clips_the_tail_of_a_bell() -> None:
    histogram = counted(spread(200_000))
    assert 2.5 < entropy_range(histogram) < histogram.reach


def test_entropy_does_not_clip_the_picture_for_its_background() -> None:
    """Nearly all values are the background's; the others reach much further and matter."""
    rng = np.random.default_rng(0)
    histogram = Histogram()
    histogram.add(rng.normal(0.2, 0.02, 90_000).astype(np.float32))
    histogram.add(rng.uniform(0.5, 2.8, 1_000).astype(np.float32))
    assert entropy_range(histogram) > 2.5


def test_entropy_keeps_what_has_no_tail() -> None:
    """Evenly spread magnitudes lose by every cut; so do those of one size alone."""
    even = counted(np.linspace(0.01, 0.999, 100_000, dtype=np.float32))
    assert entropy_range(even) > 0.97
    alone = counted(np.full(100, 5.0, np.float32))
    assert entropy_range(alone) == 5.0


def test_divergence_is_zero_where_every_bin_has_its_level() -> None:
    counts = np.zeros(BINS, np.int64)
    counts[:128] = np.arange(1, 129)
    assert divergence(counts, 128) == pytest.approx(0.0, abs=1e-12)
    assert divergence(counts, 64) > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_ranges_of_a_network(method: str) -> None:
    data = spread(8 * 500).reshape(500, 8)
    most, got = (calibrate(network(), data, calibration_method(m)) for m in ("minmax", method))
    assert got.keys() == most.keys()
    assert all(0.3 * most[name] < got[name] <= most[name] for name in most)
    assert got == calibrate(network(), data.copy(), calibration_method(method))


@pytest.mark.parametrize("method", METHODS)
def test_rare_values_among_zeros_still_have_a_range(method: str) -> None:
    data = np.zeros((50_000, 8), np.float32)
    data[7, 3] = 2.0
    assert calibrate(network(), data, calibration_method(method))["x"] == 2.0


@pytest.mark.parametrize("method", METHODS)
def test_zeros_alone_are_refused(method: str) -> None:
    with pytest.raises(DataError, match="all 4 samples of input 'x' are zero"):
        calibrate(network(), np.zeros((4, 8), np.float32), calibration_method(method))
    with pytest.raises(DataError, match="beyond float32"):
        calibrate(network(), np.full((4, 8), np.nan, np.float32), calibration_method(method))
