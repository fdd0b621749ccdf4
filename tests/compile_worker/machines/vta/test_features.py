"""Features of lowered kernels, counted by hand."""

import pytest
from kit.kernels.nests import SIM, conv2d, with_epilogue
from kit.kernels.schedules import Tiling, scheduled

from compile_worker.lowering import lower
from compile_worker.machines.vta.features import features_of

CONV = conv2d(ci=2, co=2, height=8, width=8)

UNIT = 16
"""Bytes of the vector that biases are multiplied by."""


def features(tiling: Tiling) -> dict[str, float]:
    return features_of(lower(scheduled(CONV, tiling), SIM), SIM)


def test_traffic_of_whole_tiles() -> None:
    found = features(Tiling(co=2, h=8, w=8, ci=2))
    assert found["inp_nbytes"] == 2 * 8 * 8 * 16 + UNIT
    assert found["wgt_nbytes"] == (2 * 2 * 9 + 2) * 256
    assert found["acc_nbytes"] == 0
    assert found["out_nbytes"] == 2 * 8 * 8 * 16
    assert (found["inp_dmas"], found["wgt_dmas"], found["acc_dmas"]) == (2 + 1, 1 + 1, 0)
    assert (found["inp_rows"], found["wgt_rows"]) == (16 + 1, 1 + 1)
    assert found["out_rows"] == 2  # stored in halves


def test_traffic_of_shifts_by_lane() -> None:
    work = with_epilogue(CONV, shift="lanes")
    func = scheduled(work, Tiling(co=2, h=8, w=8, ci=2, shift_by_lane=True))
    found = features_of(lower(func, SIM), SIM)
    assert (found["acc_nbytes"], found["acc_dmas"]) == (2 * 64, 1)
    assert found["alu_cycles"] == 2 * 8 * 8 * (2 + 1 + 1)


def test_padding_is_not_traffic() -> None:
    """Rows -1 to 4 and 3 to 8 of an image with rows 0 to 7, likewise columns."""
    found = features(Tiling(co=2, h=4, w=4, ci=2))
    assert found["inp_nbytes"] == pytest.approx(2 * (5 + 5) * (5 + 5) * 16 + UNIT)


def test_cycles_of_compute() -> None:
    found = features(Tiling(co=2, h=4))
    vectors = 2 * 8 * 8
    assert found["gemm_cycles"] == vectors * (2 * 9 + 1)
    assert found["reset_cycles"] == vectors
    assert found["alu_cycles"] == vectors * (1 + 1 + 1)


def test_steps_tiles_and_copies() -> None:
    found = features(Tiling(h=4, slots=2, acc_slots=2))
    tiles = 2 * 2 * 2
    assert (found["tiles"], found["steps"]) == (tiles, tiles * (2 + 1))  # the bias is one more
    assert (found["operand_copies"], found["acc_copies"]) == (2, 2)


def test_micro_ops_once_for_every_slot_combination() -> None:
    """The reset and the clips need one, the bias and the shift one for each block of channels."""
    rest = 3 + 2 + 2
    assert features(Tiling(h=4))["uops"] == 16 + rest
    assert features(Tiling(h=4, slots=2))["uops"] == 2 * 16 + rest
    assert features(Tiling(h=4, slots=2, acc_slots=2))["uops"] == 4 * 16 + 2 * rest


def test_a_lower_bound_is_below_the_sum() -> None:
    found = features(Tiling(h=4, slots=2))
    assert 0 < found["bound_cycles"] < found["serial_cycles"]
