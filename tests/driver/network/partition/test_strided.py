"""Indices that are even, and those that are not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from driver.network.partition.strided import Strided, strided_form

PLACES = np.arange(60, dtype=np.int32).reshape(3, 4, 5)

EVEN = {
    "turned": (PLACES.transpose(2, 0, 1), Strided((5, 12), (1, 5), 0)),
    "turned twice": (PLACES.transpose(0, 2, 1), Strided((3, 5, 4), (20, 1, 5), 0)),
    "a part": (PLACES[1:3, 1:3, 2:], Strided((2, 2, 3), (20, 5, 1), 27)),
    "every second": (PLACES.reshape(-1)[1::2], Strided((30,), (2,), 1)),
    "one": (PLACES[2, 3, 4:], Strided((1,), (1,), 59)),
}


@pytest.mark.parametrize("case", EVEN)
def test_even_indices(case: str) -> None:
    index, wanted = EVEN[case]
    assert strided_form(index.reshape(-1)) == wanted


@pytest.mark.parametrize(
    "index",
    [
        np.array([0, 1, 2, 4], np.int32),
        np.array([0, 1, -1, 3], np.int32),
        np.array([3, 2, 1, 0], np.int32),
        np.array([0, 1, 5, 6, 11, 12], np.int32),
        np.array([], np.int32),
    ],
    ids=["a gap", "an absent place", "backwards", "uneven", "nothing"],
)
def test_others(index: NDArray[np.int32]) -> None:
    assert strided_form(index) is None
