"""Cycles by cause: nothing is counted twice, nothing is left out."""

from __future__ import annotations

import numpy as np
from tilefarm.measurement import Counters

from device_server.vta.programs.instructions import Alu, Finish, Gemm, Transfer
from driver.program.vta.cycle_breakdown import CAUSES, CycleBreakdown, spent

ACC, INP = 3, 2


def test_every_cycle_has_one_cause() -> None:
    records = (
        Transfer(store=False, memory=INP, x_size=8, y_size=1),
        Transfer(store=False, memory=ACC, x_size=8, y_size=1),
        Gemm(reset=1, uop_begin=0, uop_end=1, iter_out=4, iter_in=2),
        Gemm(uop_begin=0, uop_end=3, iter_out=4, iter_in=2),
        Alu(use_imm=1, uop_begin=0, uop_end=1, iter_out=8, iter_in=1),
        Alu(use_imm=0, uop_begin=0, uop_end=1, iter_out=8, iter_in=1),
        Finish(),
    )
    ends = [(0, 90), (0, 50), (60, 75), (80, 111), (112, 127), (128, 151), (151, 152)]
    counters = Counters(
        cycles=155,
        compute_memory_stall_cycles=30,
        compute_token_stall_cycles=10,
        compute_queue_stall_cycles=4,
    )
    found = spent(records, np.array(ends), counters)
    assert found == CycleBreakdown(
        gemm=24, reset=8, alu=8 + 16, start=7 + 7 + 7 + 7 + 1, load=20, memory=30, token=10,
        queue=4, idle=6,
    )  # fmt: skip
    assert found.cycles == counters.cycles


def test_sums() -> None:
    one = CycleBreakdown(gemm=3, idle=1)
    assert (one + one).gemm == one.times(2).gemm == 6
    assert one.times(3).cycles == 12
    assert CAUSES[0] == "gemm"
