"""Windows by their definition: parts of any size and combined rows give what whole loops give."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from driver.network.graph import columns
from driver.network.graph.columns import correlate, padded, patches, pooled
from driver.network.graph.ir import Window

RNG = np.random.default_rng(5)
WINDOWS = (
    Window(kernel=(1, 1)),
    Window(kernel=(3, 2), pad=(1, 0, 2, 1)),
    Window(kernel=(2, 3), stride=(2, 1), dilation=(1, 2)),
    Window(kernel=(7, 9)),
    Window(kernel=(3, 3), stride=(3, 2), pad=(1, 1, 1, 1), dilation=(2, 1)),
)


def integers(*shape: int) -> NDArray[np.int8]:
    return RNG.integers(-128, 128, shape, np.int8)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("nbytes", [1, 2000, 1 << 20])
def test_a_convolution_in_parts_is_the_whole_one(
    window: Window, nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, weight = integers(3, 4, 7, 9), integers(5, 4, *window.kernel).astype(np.float64)
    seen = patches(padded(x, window), window).astype(np.float64)
    monkeypatch.setattr(columns, "COLUMNS_NBYTES", nbytes)
    found = correlate(x, weight, window)
    assert found.dtype == weight.dtype
    np.testing.assert_array_equal(found, np.einsum("nchwij,ocij->nohw", seen, weight))


def test_columns_of_a_large_image_are_never_there_at_once() -> None:
    image, weight = np.ones((2, 8, 200, 200), np.float32), np.ones((4, 8, 3, 3), np.float32)
    tracemalloc.start()
    try:
        sums = correlate(image, weight, Window(kernel=(3, 3)))
        _, most_nbytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    all_nbytes = 2 * 198 * 198 * 72 * 4
    assert most_nbytes - sums.nbytes < all_nbytes // 2


def test_no_samples_have_no_sums() -> None:
    found = correlate(integers(0, 4, 7, 9), np.ones((5, 4, 3, 3)), Window(kernel=(3, 3)))
    assert found.shape == (0, 5, 5, 7)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_rows_and_then_columns_are_combined_to_whole_windows(window: Window) -> None:
    x = padded(integers(2, 3, 7, 9), window)
    seen = patches(x, window)
    np.testing.assert_array_equal(pooled(x, window, np.maximum), seen.max(axis=(4, 5)))
    total = pooled(x.astype(np.int64), window, np.add)
    np.testing.assert_array_equal(total, seen.sum(axis=(4, 5), dtype=np.int64))
