"""Iterations side by side give the bits that they give one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.target import TARGETS
from tilefarm.workload import TensorSpec, Workload

from compile_worker.ir import interpret as interpreter
from compile_worker.ir.interpret import InterpretError, interpret
from compile_worker.ir.lockstep import lockstep_at
from compile_worker.ir.stmt import For
from compile_worker.ir.visit import find
from compile_worker.te import nest_of

F = DType.FLOAT32

GEMM = """def f(a, b, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
"""
ONLINE_SOFTMAX = """def f(a, b, out):
    for i in range(a.shape[0]):
        top = float32(-1e30)
        total = float32(0)
        for k in range(a.shape[1]):
            higher = max(top, a[i, k])
            total = total * exp(top - higher) + exp(a[i, k] - higher)
            top = higher + float32(0)
        for k in range(a.shape[1]):
            out[i, k] = exp(a[i, k] - top) / total
"""
BRANCHES = """def f(a, b, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            if a[i, j] > 0:
                out[i, j] = a[i, j]
            else:
                out[i, j] = b[i, j]
            if i + j == 3:
                out[i, j] = 7
"""
RECURRENCE = """def f(a, b, out):
    for i in range(out.shape[0]):
        out[i, 0] = a[i, 0]
        for j in range(out.shape[1] - 1):
            out[i, j + 1] = out[i, j] * b[i, j] + a[i, j + 1]
"""


def workload(text: str, n: int = 5) -> Workload:
    spec = [TensorSpec(name, (n, n), F) for name in ("a", "b", "out")]
    return Workload("script", tuple(spec[:2]), (spec[2],), (("source", text),))


def made(text: str) -> NDArray[Any]:
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((5, 5), np.float32) for name in "ab"}
    return interpret(nest_of(workload(text), TARGETS["sim"]), arrays)["out"]


@pytest.mark.parametrize("text", [GEMM, ONLINE_SOFTMAX, BRANCHES, RECURRENCE])
def test_side_by_side_is_one_after_the_other(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nest = nest_of(workload(text), TARGETS["sim"])
    assert any(lockstep_at(loop) for loop in find(nest.body, For)), "some go side by side"
    beside = made(text)
    monkeypatch.setattr(interpreter, "lockstep_at", lambda _: None)
    assert beside.tobytes() == made(text).tobytes()


def test_loops_that_need_one_another_do_not_go_side_by_side() -> None:
    text = """def f(a, b, out):
    for i in range(4):
        for j in range(5):
            out[i + 1, j] = out[i, j] + a[i, j]
"""
    (outer, inner) = find(nest_of(workload(text), TARGETS["sim"]).body, For)
    nest = lockstep_at(outer)
    assert nest is not None
    assert nest.shape == (inner.extent,)


LOOKED_UP = """def f(a, b, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
            for k in range(2):
                out[i, j] += b[int64(a[i, j] * 100), j]
"""


def test_an_element_outside_is_refused_if_a_lane_gets_there() -> None:
    with pytest.raises(InterpretError, match=r"extent 5"):
        made(LOOKED_UP)
    guarded = """def f(a, b, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
            for k in range(2):
                if i < 0:
                    out[i, j] += b[int64(a[i, j] * 100), j]
"""
    assert not made(guarded).any()
