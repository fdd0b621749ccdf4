"""Integers and the reals that they stand for, there and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.network.graph.grid import BOUNDS, Grid

GRIDS = st.builds(
    Grid,
    st.floats(1e-4, 10).map(lambda s: float(np.float32(s))),
    st.integers(-128, 255),
    st.sampled_from(sorted(set(BOUNDS) - {"int32", "uint32", "int64", "uint64"})),
)


@given(GRIDS)
def test_integers_come_back(grid: Grid) -> None:
    lowest, highest = BOUNDS[grid.dtype]
    integers = np.unique(np.linspace(lowest, highest, 300).round().astype(np.int64))
    back = grid.integers(grid.reals(integers))
    assert back.dtype.name == grid.held
    assert (back == integers).all()


def test_reals_are_rounded_half_to_even_and_saturated() -> None:
    grid = Grid(0.5, 3, "uint4")
    reals = np.array([-9, -0.25, 0.25, 0.75, 1.0, 99], np.float32)
    assert grid.integers(reals).tolist() == [0, 3, 3, 5, 5, 15]
    assert (grid.lo, grid.hi) == (-1.5, 6.0)


@pytest.mark.parametrize("scale", [1e-42, 1.0, 3e38])
def test_what_float32_cannot_divide_ends_at_the_grid_without_a_warning(scale: float) -> None:
    reals = np.array([-3e38, -0.0, 3e38, np.inf, -np.inf], np.float32)
    at = 255 if scale < 1e38 else 101
    assert Grid(scale, 100, "uint8").integers(reals).tolist() == [
        0 if at == 255 else 99,
        100,
        at,
        255,
        0,
    ]


@pytest.mark.parametrize(("dtype", "lowest"), [("int64", -(1 << 53)), ("uint64", 0)])
def test_wide_integers_end_where_float64_has_not_all_of_them(dtype: str, lowest: int) -> None:
    back = Grid(1.0, 0, dtype).integers(np.array([-1e30, 1e30], np.float32))
    assert back.dtype == dtype
    assert back.tolist() == [lowest, 1 << 53]


@pytest.mark.parametrize(
    ("grid", "reach"),
    [(Grid(0.5, 128, "uint8"), 63.5), (Grid(1.0, 0, "uint8"), 255), (Grid(1.0, 7, "int8"), 133.9)],
)
def test_the_reach_covers_both_ends(grid: Grid, reach: float) -> None:
    assert grid.reach == pytest.approx(reach, rel=1e-3)
    assert max(grid.hi / 127, -grid.lo / 128) == pytest.approx(grid.reach / 127)
