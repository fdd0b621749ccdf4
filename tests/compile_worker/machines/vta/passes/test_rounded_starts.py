"""Tiles that start from the constant that rounds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.golden import Golden
from kit.kernels.nests import SIM, conv2d, scaled_add, window
from kit.kernels.schedules import keeps_meaning, lowering
from tilefarm.workload import Workload

from compile_worker.ir.func import Func
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import MicroKernel
from compile_worker.ir.visit import find
from compile_worker.machines.vta.features import features_of
from compile_worker.machines.vta.passes.rounded_starts import rounded_starts, start_of
from compile_worker.schedule import replay
from compile_worker.space import generate
from compile_worker.te import nest_of

RESIDUAL = scaled_add((1, 2, 4, 4, 1, 16), shift=3)


def scheduled(work: Workload, **choice: int) -> Func:
    trace = generate(work, SIM).trace(choice)
    return replay(trace, nest_of(work, SIM), SIM)


def residual(work: Workload = RESIDUAL, **choice: int) -> Func:
    tiles = {"tile_co": 1, "tile_oh": 2, "tile_ow": 4, "slots": 2, "acc_slots": 2}
    return scheduled(work, **(tiles | choice))


def changed(func: Func) -> bool:
    placed = dict(lowering(func))["place_sram"]
    return rounded_starts(placed, SIM) is not placed


def test_picture(golden: Golden) -> None:
    after = dict(lowering(residual()))
    golden(f"{show(after['place_sram'])}\n\n{show(after['rounded_starts'])}")


@pytest.mark.parametrize("shift", [6, 7, 8])
@pytest.mark.parametrize("lo", [-128, 0])
@pytest.mark.parametrize("acc_slots", [1, 2])
def test_every_pass_keeps_the_meaning(shift: int, lo: int, acc_slots: int) -> None:
    work = scaled_add((1, 2, 4, 4, 1, 16), shift, lo)
    func = residual(work, acc_slots=acc_slots)
    assert changed(func)
    keeps_meaning(work, func)


def test_sums_over_windows_start_so_too() -> None:
    work = window("window_sum2d", 2, (8, 8))
    func = scheduled(work, tile_co=1, tile_oh=2, tile_ow=4, tile_kh=1, slots=2, acc_slots=2)
    assert changed(func)
    keeps_meaning(work, func)


UNCHANGED: dict[str, Callable[[], Func]] = {
    "nothing is rounded": lambda: residual(scaled_add((1, 2, 4, 4, 1, 16), shift=0)),
    "the rounding is not the first operation": (
        lambda: residual(scaled_add((1, 2, 4, 4, 1, 16), shift=17))
    ),
    "no slot is used again": lambda: residual(tile_oh=4),
    "a maximum": lambda: scheduled(window("window_max2d"), tile_co=1),
    "a convolution": lambda: scheduled(conv2d(1, 1), tile_oh=2),
}


@pytest.mark.parametrize("made", UNCHANGED.values(), ids=UNCHANGED.keys())
def test_left_alone(made: Callable[[], Func]) -> None:
    assert not changed(made())


def test_a_tile_is_reset_once_for_each_slot() -> None:
    after = dict(lowering(residual()))
    before, now = (features_of(after[name], SIM) for name in ("place_sram", "rounded_starts"))
    tile = 8
    assert before["reset_cycles"] == 4 * tile
    assert now["reset_cycles"] == 2 * tile
    assert now["alu_cycles"] == before["alu_cycles"]
    assert now["uops"] == before["uops"]


def test_constants_of_the_clips_move_with_the_start() -> None:
    func = dict(lowering(residual()))["rounded_starts"]
    alu = [(k.opcode, k.imm) for k in find(func, MicroKernel) if k.engine == "alu"]
    assert alu == [("max", 4 + (256 << 3)), ("shr", 3), ("max", 256), ("min", 127 + 256)]


ENDS = st.tuples(st.integers(-128, 127), st.integers(-128, 127)).map(sorted)


@given(st.integers(1, 15), ENDS, st.integers(-(1 << 24), 1 << 24))
def test_a_start_gives_the_same_bits(shift: int, ends: list[int], total: int) -> None:
    low, high = ends
    start = start_of(1 << (shift - 1), shift, low, high)
    assert start is not None
    one: Any = {"max": max, "min": min}[start.opcode]
    for left in (0, *range(low + start.offset, high + start.offset + 1)):
        assert one(left, start.value) == start.value
    wanted = min(max((total + (1 << (shift - 1))) >> shift, low), high)
    found = (total + start.value) >> shift
    found = min(max(found, low + start.offset), high + start.offset)
    assert np.int64(found).astype(np.int8) == wanted


def test_no_start_fits_where_the_clips_leave_no_room() -> None:
    assert start_of(1 << 14, 15, -128, 32_000) is None
