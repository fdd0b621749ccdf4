"""Vectorized loops as LLVM text, and lanes that are side by side."""

from __future__ import annotations

import pytest
from kit.golden import Golden
from kit.kernels.nests import SIM, nest
from tilefarm.dtype import DType

from compile_worker.codegen.lane_runs import LaneRun, runs
from compile_worker.emit import kernel_text
from compile_worker.ir.expr import Buffer, Const, Lt, Select, Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, For, LoopKind, Store, sequence
from compile_worker.lowering import lower

I = Var("i")  # noqa: E741
OUT = Buffer("out", (64,), DType.INT64)


def test_lanes_side_by_side_are_one_run() -> None:
    everything = (True,) * 4
    assert list(runs((7, 8, 9, 10), everything)) == [LaneRun(0, 4, 7)]
    assert list(runs((0, 1, 5, 6), everything)) == [LaneRun(0, 2, 0), LaneRun(2, 2, 5)]
    assert list(runs((3, 2, 1, 0), everything)) == [LaneRun(i, 1, 3 - i) for i in range(4)]


def test_lanes_that_are_not_active_are_in_no_run() -> None:
    assert list(runs((0, 1, 2, 3), (True, True, False, True))) == [
        LaneRun(0, 2, 0),
        LaneRun(3, 1, 3),
    ]
    assert list(runs((0, 1), (False, False))) == []


def test_a_cpu_kernel_in_vectors(golden: Golden) -> None:
    golden(kernel_text(lower(nest("add"), SIM), "entry", SIM))


def strided(count: int, step: int, *, chosen: bool = False) -> str:
    """The text of a vectorized loop of stores that each read one byte of a few side by side."""
    x, out = Buffer("x", (16 * step,), DType.INT8), Buffer("out", (16 * step,), DType.INT8)
    zero = Const(0, DType.INT8)
    reads = [x[I * step + at] for at in range(count)]
    values = [Select(Lt(each, zero), zero, each) if chosen else each for each in reads]
    stores = [Store(out, (I + 16 * at,), value) for at, value in enumerate(values)]
    loop = For(I, 16, sequence(stores), LoopKind.VECTORIZED)
    return kernel_text(Func("f", (x, out), loop), "entry", SIM)


def test_loads_that_fill_memory_are_one() -> None:
    assert strided(4, 4).count("load <64 x i8>") == 1
    assert "load i8" not in strided(4, 4)
    assert "load <64 x i8>" not in strided(3, 4), "a byte that nobody reads may not be there"
    assert "load <64 x i8>" not in strided(4, 4, chosen=True), "nor one that is not chosen"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (Alloc(OUT, Store(OUT, (I,), I)), "Alloc in a vectorized loop"),
        (Store(OUT, (OUT[I],), I), "lanes of out are stored at unknown distances"),
    ],
    ids=["storage", "unknown"],
)
def test_what_has_no_vector_code_is_a_bug_of_the_caller(body: Alloc | Store, why: str) -> None:
    func = Func("f", (OUT,), For(I, 8, body, LoopKind.VECTORIZED))
    with pytest.raises(TypeError, match=why):
        kernel_text(func, "entry", SIM)
