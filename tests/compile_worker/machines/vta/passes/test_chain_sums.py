"""Sums of two planes are one after the other where that gives the same, and else side by side."""

import numpy as np
import pytest
from kit.kernels.nests import SIM, conv2d
from kit.kernels.schedules import keeps_meaning
from tilefarm.dtype import DType
from tilefarm.trace import Step, Trace
from tilefarm.workload import TensorSpec

from compile_worker.ir.expr import Cast, Var
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.stmt import Alloc, MicroKernel
from compile_worker.lowering import lower
from compile_worker.machines.vta.passes.chain_sums import chain_sums
from compile_worker.machines.vta.passes.merge_in_place import merge_in_place
from compile_worker.passes.decompose_reductions import decompose_reductions
from compile_worker.passes.nests import of_kind
from compile_worker.schedule import replay
from compile_worker.space import generate
from compile_worker.te import nest_of
from compile_worker.te.nest import nest
from compile_worker.te.tensor import Reduction, compute, placeholder, total

A = placeholder(TensorSpec("a", (3, 4), DType.INT32))
W = placeholder(TensorSpec("w", (2, 3, 4), DType.INT32))
START = placeholder(TensorSpec("start", (2, 3), DType.INT32))
ARRAYS = {
    "a": np.arange(12, dtype=np.int32).reshape(3, 4) - 5,
    "w": np.arange(24, dtype=np.int32).reshape(2, 3, 4) % 7 - 3,
    "start": np.arange(6, dtype=np.int32).reshape(2, 3),
}
LINE = {"n": 3}


def sums(*, start: bool = False, raised: int = 0, lines: int = 3) -> Func:
    """out = s[0] * 256 + s[1], or of other parts and lines; as `merge_in_place` leaves it."""

    def products(p: Var, n: Var) -> Reduction:
        begin = START[p, n] if start else None
        return total(DType.INT32, {"k": 4}, lambda k: A[n, k] * W[p, n, k], start=begin)

    s = compute("s", {"p": 2, **LINE}, products, scope="acc")
    t = compute("t", {"n": lines}, lambda n: s[raised, n] * 256, scope="acc")
    u = compute("u", {"n": lines}, lambda n: t[n] + s[1 - raised, n], scope="acc")
    out = compute("out", {"n": lines}, lambda n: Cast(DType.INT8, u[n]), scope="dram")
    inputs = [A, W, START] if start else [A, W]
    steps_outside = Trace((Step("reorder", ("s_k", "s_p", "s_n")),))
    func = replay(steps_outside, nest("f", inputs, [s, t, u, out]), SIM)
    return merge_in_place(decompose_reductions(func, SIM), SIM)


def shape(func: Func) -> tuple[int, ...]:
    """That of the sums."""
    return next(a.buffer.shape for a in of_kind(func.body, Alloc) if a.buffer.name == "s")


@pytest.mark.parametrize(
    ("func", "left"),
    [
        pytest.param(sums(), (1, 3), id="from 0"),
        pytest.param(sums(raised=1), (1, 3), id="the second first"),
        pytest.param(sums(start=True), (2, 3), id="from other values"),
        pytest.param(sums(lines=2), (2, 3), id="not all of them"),
    ],
)
def test_sums_go_on_from_what_they_are_added_to(func: Func, left: tuple[int, ...]) -> None:
    chained = chain_sums(func, SIM)
    assert shape(chained) == left
    assert (interpret(chained, ARRAYS)["out"] == interpret(func, ARRAYS)["out"]).all()


@pytest.mark.parametrize("data_planes", [1, 2])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3)])
def test_planes_are_side_by_side_where_the_reduction_is_in_steps(
    kernel: tuple[int, int], data_planes: int
) -> None:
    down, across = kernel[0] // 2, kernel[1] // 2
    pad, planes = (down, across, down, across), 3 - data_planes
    work = conv2d(2, 2, 4, 4, kernel, pad=pad, planes=planes, data_planes=data_planes)
    made, plain = generate(work, SIM), nest_of(work, SIM)
    point = {"tile_oh": 4, "tile_kh": kernel[0], "tile_kw": kernel[1]}
    for parts, planes in ((2, 2), (1, 1)):
        at = 1 if parts == 1 else 0
        chosen = {**point, "tile_ci": 2 // parts, "weight_at": at, "data_at": at}
        func = replay(made.trace(chosen), plain, SIM)
        keeps_meaning(work, func)
        low = lower(func, SIM)
        acc = next(a.buffer for a in of_kind(low.body, Alloc) if a.buffer.scope == "acc")
        assert acc.shape[1] == planes
        added = [k for k in of_kind(low.body, MicroKernel) if k.opcode == "add"]
        assert len(added) == planes - 1


def test_where_data_and_weights_are_planes_only_those_of_data_are_chained() -> None:
    work = conv2d(2, 2, 4, 4, planes=2, data_planes=2)
    for parts, sums in ((2, 4), (1, 2)):
        at = 1 if parts == 1 else 0
        chosen = {"tile_oh": 4, "tile_kh": 3, "tile_kw": 3, "weight_at": at, "data_at": at}
        chosen["tile_ci"] = 2 // parts
        func = replay(generate(work, SIM).trace(chosen), nest_of(work, SIM), SIM)
        keeps_meaning(work, func)
        low = lower(func, SIM)
        acc = next(a.buffer for a in of_kind(low.body, Alloc) if a.buffer.scope == "acc")
        assert acc.shape[1] * acc.shape[2] == sums
        added = [k for k in of_kind(low.body, MicroKernel) if k.opcode == "add"]
        assert len(added) == sums // 2


def test_a_layer_without_planes_is_left_alone() -> None:
    func = replay(generate(conv2d(), SIM).trace({}), nest_of(conv2d(), SIM), SIM)
    assert chain_sums(func, SIM) is func
