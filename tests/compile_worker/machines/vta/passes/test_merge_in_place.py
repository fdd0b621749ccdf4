"""Stages share accumulators where nobody needs what they write over, and nowhere else."""

from collections.abc import Callable

import numpy as np
import pytest
from kit.kernels.nests import SIM
from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec

from compile_worker.ir.expr import Cast, Expr, Var
from compile_worker.ir.interpret import interpret
from compile_worker.ir.stmt import Alloc
from compile_worker.machines.vta.passes.merge_in_place import merge_in_place
from compile_worker.passes.nests import of_kind
from compile_worker.te.nest import nest
from compile_worker.te.tensor import Tensor, compute, placeholder

X = placeholder(TensorSpec("x", (2, 3), DType.INT32))
LINE = {"n": 3}

Operand = Callable[[Tensor, Var], Expr]


@pytest.mark.parametrize(
    ("other", "left"),
    [
        pytest.param(lambda s, n: s[1, n], ["s"], id="another part"),
        pytest.param(lambda s, n: s[0, n], ["s", "t"], id="the same part"),
        pytest.param(lambda s, n: s[n - n, n], ["s", "t"], id="a part that nobody knows"),
    ],
)
def test_a_stage_lives_in_a_part_that_nobody_else_reads(other: Operand, left: list[str]) -> None:
    s = compute("s", {"p": 2, **LINE}, lambda p, n: X[p, n] * 3, scope="acc")
    t = compute("t", LINE, lambda n: s[0, n] * 256, scope="acc")
    u = compute("u", LINE, lambda n: t[n] + other(s, n), scope="acc")
    out = compute("out", LINE, lambda n: Cast(DType.INT8, u[n]), scope="dram")
    func = nest("f", [X], [s, t, u, out])
    merged = merge_in_place(func, SIM)
    assert [alloc.buffer.name for alloc in of_kind(merged.body, Alloc)] == left
    arrays = {"x": np.arange(6, dtype=np.int32).reshape(2, 3)}
    assert (interpret(merged, arrays)["out"] == interpret(func, arrays)["out"]).all()


def test_a_stage_lives_in_a_part_of_a_part() -> None:
    every = placeholder(TensorSpec("x", (2, 2, 3), DType.INT32))
    s = compute("s", {"q": 2, "p": 2, **LINE}, lambda q, p, n: every[q, p, n] * 3, scope="acc")
    t = compute("t", {"p": 2, **LINE}, lambda p, n: s[0, p, n] * 256, scope="acc")
    u = compute("u", {"p": 2, **LINE}, lambda p, n: t[p, n] + s[1, p, n], scope="acc")
    v = compute("v", LINE, lambda n: u[1, n] * 256, scope="acc")
    w = compute("w", LINE, lambda n: v[n] + u[0, n], scope="acc")
    out = compute("out", LINE, lambda n: Cast(DType.INT8, w[n]), scope="dram")
    func = nest("f", [every], [s, t, u, v, w, out])
    merged = merge_in_place(func, SIM)
    assert [alloc.buffer.name for alloc in of_kind(merged.body, Alloc)] == ["s"]
    arrays = {"x": np.arange(12, dtype=np.int32).reshape(2, 2, 3)}
    assert (interpret(merged, arrays)["out"] == interpret(func, arrays)["out"]).all()
