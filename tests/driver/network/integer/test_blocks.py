"""Blocked layout: every element where the picture says, everything else zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples

from driver.network.integer.blocks import (
    blocked_shape,
    from_blocks,
    is_view,
    lane_blocks,
    lanes_from_blocks,
    to_blocks,
    weight_blocks,
    weight_from_blocks,
)

extents = st.integers(1, 5)


def test_an_element_lies_in_its_block_and_lane() -> None:
    x = np.arange(2 * 20 * 3 * 4).reshape(2, 20, 3, 4)
    tiles = to_blocks(x, 2, 16)
    assert tiles.shape == (1, 2, 3, 4, 2, 16)
    assert tiles[0, 1, 2, 3, 1, 3] == x[1, 19, 2, 3]
    assert not tiles[0, 1, ..., 4:].any()


def test_weights_have_the_output_lane_before_the_input_lane() -> None:
    w = np.arange(20 * 5).reshape(20, 5, 1, 1)
    tiles = weight_blocks(w, 16)
    assert tiles.shape == (2, 1, 1, 1, 16, 16)
    assert tiles[1, 0, 0, 0, 2, 4] == w[18, 4, 0, 0]


def test_lanes_repeat_over_the_batch() -> None:
    tiles = lane_blocks(np.arange(20, dtype=np.int32), 2, 16)
    assert tiles.shape == (2, 2, 16)
    assert (tiles[:, 0] == tiles[:, 1]).all()
    assert tiles[1, 1, 3] == 19
    assert lanes_from_blocks(tiles)[:20].tolist() == list(range(20))


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(extents, min_size=2, max_size=5), st.sampled_from([1, 2]), st.sampled_from([1, 4]))
def test_blocking_and_back_changes_nothing(shape: list[int], batch: int, block: int) -> None:
    x = np.random.default_rng(0).integers(-128, 128, shape, dtype=np.int8)
    tiles = to_blocks(x, batch, block)
    assert tiles.shape == blocked_shape(tuple(shape), batch, block)
    assert (from_blocks(tiles, tuple(shape)) == x).all()
    assert np.abs(tiles.astype(int)).sum() == np.abs(x.astype(int)).sum()
    assert (weight_from_blocks(weight_blocks(x, block))[: shape[0], : shape[1]] == x).all()


@pytest.mark.parametrize(
    ("before", "after", "free"),
    [
        ((1, 64, 1, 1), (1, 64), True),
        ((1, 32, 4, 4), (1, 32, 16), True),
        ((1, 32, 4, 4), (1, 512), False),
        ((1, 16, 2), (1, 2, 16), False),
    ],
)
def test_a_reshape_is_free_when_the_bytes_stay(
    before: tuple[int, ...], after: tuple[int, ...], free: bool
) -> None:
    assert is_view(before, after) is free
    x = np.arange(np.prod(before)).reshape(before)
    same = to_blocks(x, 1, 16).reshape(-1)
    other = to_blocks(x.reshape(after), 1, 16).reshape(-1)
    assert (same.size == other.size and bool((same == other).all())) is free
