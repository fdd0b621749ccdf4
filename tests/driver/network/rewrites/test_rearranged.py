"""Moves as axes that are split, permuted and joined: found in places alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from driver.network.rewrites.rearranged import inverse, is_bijective, rearrangement_of


def test_heads_of_tokens_are_two_axes_of_the_channels() -> None:
    places = np.arange(3 * 8, dtype=np.int32).reshape(2, 4, 3)  # heads, channels, tokens
    found = rearrangement_of(np.ascontiguousarray(places.transpose(0, 2, 1)))
    assert found is not None
    assert found.split == (2, 4, 3)
    assert found.joined == ((0,), (2,), (1,))
    joined = rearrangement_of(np.ascontiguousarray(places.transpose(2, 1, 0)).reshape(3, 8))
    assert joined is not None
    assert joined.joined == ((2,), (1, 0))


@given(st.data())
def test_any_split_permuted_and_joined_is_found(data: st.DataObject) -> None:
    split = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    order = data.draw(st.permutations(range(len(split))))
    cut = data.draw(st.integers(0, len(split)))
    turned = np.arange(np.prod(split), dtype=np.int32).reshape(split).transpose(order)
    shape = (int(np.prod(turned.shape[:cut])), *turned.shape[cut:])
    index = np.ascontiguousarray(turned).reshape(shape)
    found = rearrangement_of(index)
    assert found is not None
    np.testing.assert_array_equal(found.places(found.split), index)
    assert is_bijective(index, index.size)
    np.testing.assert_array_equal(index.reshape(-1)[inverse(index)], np.arange(index.size))


def test_the_same_move_of_other_extents() -> None:
    found = rearrangement_of(np.arange(6, dtype=np.int32).reshape(2, 3).T)
    assert found is not None
    assert found.places((1, 3)).tolist() == [[0], [1], [2]]


def test_other_moves_are_none() -> None:
    assert rearrangement_of(np.array([0, 2, 1, 3, 5, 4], np.int32)) is None
    assert rearrangement_of(np.array([3, 2, 1, 0], np.int32)) is None
    assert rearrangement_of(np.array([[0, 1], [1, 2]], np.int32)) is None
    assert rearrangement_of(np.array([0, 2, 4], np.int32)) is None
    assert not is_bijective(np.array([0, 0, 1], np.int32), 3)
    assert not is_bijective(np.array([0, -1, 1], np.int32), 3)
    assert not is_bijective(np.array([0, 1], np.int32), 3)
