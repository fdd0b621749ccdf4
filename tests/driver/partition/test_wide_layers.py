"""Weights and biases of 16 bits in planes of int8."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefarm.target import TARGETS, Target, VtaConfig

from driver.integer.qir import MAX_WIDE
from driver.partition.pack import (
    bias_planes,
    in_planes,
    packed_conv_weight,
    packed_dense_weight,
    unit_rows,
)

SIM = TARGETS["sim"]
NARROW = Target(name="narrow", vta=VtaConfig(log_batch=1, log_block=2))
ENDS = [-MAX_WIDE, -32513, -32512, -129, -128, -1, 0, 127, 128, 255, 32511, 32512, MAX_WIDE]


def test_the_ends_of_the_range_are_high_and_low() -> None:
    weight = np.array(ENDS, np.int16).reshape(-1, 1, 1, 1)
    planes = in_planes(weight, lambda each: packed_conv_weight(each, SIM)).astype(int)
    assert planes.shape == (1, 2, 1, 1, 1, 16, 16)
    high, low = planes[0, :, 0, 0, 0, : len(ENDS), 0]
    assert (256 * high + low).tolist() == ENDS
    assert high.min() == -127
    assert high.max() == 127
    assert low.min() == -128
    assert low.max() == 127


@given(st.integers(0, 99))
def test_planes_are_packed_like_weights_of_8_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight = rng.integers(-MAX_WIDE, MAX_WIDE + 1, (20, 36), dtype=np.int16)
    planes = in_planes(weight, lambda each: packed_dense_weight(each, SIM, (9, 2, 2)))
    small = rng.integers(-127, 128, (20, 36), dtype=np.int8)
    assert planes.shape == (2, 2, 4, 16, 16)
    assert planes.dtype == np.int8
    joined = 256 * planes[:, 0].astype(int) + planes[:, 1]
    as_usual = in_planes(small, lambda each: packed_dense_weight(each, SIM, (9, 2, 2)))
    assert as_usual.shape == joined.shape
    assert np.sort(joined[joined != 0]).tolist() == np.sort(weight[weight != 0]).tolist()
    one = np.where(weight == weight[3, 5], 1, 0).astype(np.int8)
    (places,) = np.nonzero(packed_dense_weight(one, SIM, (9, 2, 2)).reshape(-1))
    assert (joined.reshape(-1)[places] == weight[3, 5]).all()


@pytest.mark.parametrize("target", [SIM, NARROW], ids=lambda target: target.name)
@pytest.mark.parametrize(
    "biases",
    [
        [0],
        [5, -128, 127, 128, -129],
        [256 * (127 * 127 * 15 + 63), -256 * (127 * 127 * 15 + 63)],
        [2**31 - 1, -(2**31), 1, 0, -1, 2**24],
    ],
)
def test_biases_are_sums_of_both_planes(biases: list[int], target: Target) -> None:
    values = np.array(biases, np.int32)
    tiles = bias_planes(values, target)
    unit = unit_rows(target).astype(np.int64)
    planes = np.einsum("bi,kptoi->pkbo", unit, tiles.astype(np.int64))
    joined = 256 * planes[0] + planes[1]
    lanes = joined.transpose(1, 0, 2).reshape(target.vta.batch, -1)
    assert tiles.dtype == np.int8
    assert (lanes[:, : len(biases)] == values).all()
    assert not lanes[:, len(biases) :].any()


def test_a_bias_of_one_tile_has_one() -> None:
    most = 256 * (127 * 127 * 15 + 63)
    assert bias_planes(np.array([most, -most], np.int32), SIM).shape == (1, 2, 1, 16, 16)
    assert bias_planes(np.array([most + most // 2], np.int32), SIM).shape == (1, 2, 2, 16, 16)
