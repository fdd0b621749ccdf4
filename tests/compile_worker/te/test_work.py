"""Several outputs, recurrences and hand-written statements: as numpy has it, compiled as well."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kit.golden import Golden
from kit.kernels.nests import EXAMPLES, SIM
from tilefarm.dtype import DType
from tilefarm.errors import ScheduleError
from tilefarm.trace import Step, Trace
from tilefarm.workload import TensorSpec

from compile_worker.ir.expr import Buffer, Cast, Const, Load, Lt, Max, Select, Var, index
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.parser import parse
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import For, Stmt, Store, Synchronize
from compile_worker.ir.verify import Stage, verify
from compile_worker.schedule import replay
from compile_worker.te.extern import extern
from compile_worker.te.joint import Joint, joint
from compile_worker.te.nest import nest
from compile_worker.te.operators import expressions_of
from compile_worker.te.scan import scan
from compile_worker.te.tensor import Tensor, compute, placeholder
from compile_worker.te.work import ExpressionError, Work

from .machine import run_compiled

INT = DType.INT32
X = placeholder(TensorSpec("x", (4, 10), INT))
Array = npt.NDArray[Any]


def arrays(seed: int = 0, spread: int = 5) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {"x": rng.integers(-spread, spread, X.shape).astype(np.int32)}


def argmax() -> Work:
    def best(n: Var) -> Joint:
        return Joint(
            over={"k": 10},
            start=(Const(-128, INT), Const(0, INT)),
            combine=lambda old, new: (
                Max(old[0], new[0]),
                Select(Lt(old[0], new[0]), new[1], old[1]),
            ),
            elements=lambda k: (X[n, k], Cast(INT, k)),
        )

    return joint(["best", "where"], {"n": 4}, best, scope="dram")


def rotated() -> Work:
    """(a, b) -> (a*x - b, a + b*x): each needs what the other was before."""

    def both(n: Var) -> Joint:
        return Joint(
            over={"k": 10},
            start=(Const(1, INT), Const(2, INT)),
            combine=lambda old, new: (old[0] * new[0] - old[1], old[0] + old[1] * new[1]),
            elements=lambda k: (X[n, k], X[n, k]),
        )

    return joint(["a", "b"], {"n": 4}, both, scope="dram")


def pair() -> Work:
    return joint(["twice", "less"], {"n": 4}, lambda n: (X[n, 0] * 2, X[n, 1] - 1), scope="dram")


def sums() -> Work:
    return scan(
        "sums",
        10,
        {"n": 4},
        init=lambda n: X[n, 0],
        update=lambda before, t, n: before(n) + X[n, t],
        scope="dram",
    )


def highest() -> Work:
    return scan(
        "highest",
        10,
        {"n": 4},
        init=lambda n: X[n, 0],
        update=lambda before, t, n: Max(before(n), X[n, t]),
        scope="dram",
    )


def drift() -> Work:
    """Each element takes from its neighbour in the state before."""
    return scan(
        "drift",
        10,
        {"n": 4},
        init=lambda n: X[n, 0],
        update=lambda before, t, n: before((n + 1) % 4) + X[n, t],
        scope="dram",
    )


def backwards() -> Work:
    i, k, out = Var("i"), Var("k"), Buffer("out", (4, 10), INT)
    body = For(i, 4, For(k, 10, Store(out, (i, index(9) - k), X[i, k])))
    return extern("backwards", [X], [out], body)


def _rotated(x: Array) -> tuple[Array, Array]:
    a, b = np.ones(4, np.int32), np.full(4, 2, np.int32)
    for k in range(10):
        a, b = a * x[:, k] - b, a + b * x[:, k]
    return a, b


def _drift(x: Array) -> Array:
    states = [x[:, 0]]
    for t in range(1, 10):
        states.append(np.roll(states[-1], -1) + x[:, t])
    return np.stack(states)


CASES: dict[str, tuple[Callable[[], Work], Callable[[Array], Sequence[Array]]]] = {
    "argmax": (argmax, lambda x: (x.max(1), x.argmax(1))),
    "rotated": (rotated, _rotated),
    "pair": (pair, lambda x: (x[:, 0] * 2, x[:, 1] - 1)),
    "sums": (sums, lambda x: (np.cumsum(x, 1).T,)),
    "highest": (highest, lambda x: (np.maximum.accumulate(x, 1).T,)),
    "drift": (drift, lambda x: (_drift(x),)),
    "backwards": (backwards, lambda x: (x[:, ::-1],)),
}


def func_of(*stages: Tensor | Work) -> Func:
    return nest("f", [X], stages)


@pytest.mark.parametrize("case", CASES)
def test_it_is_what_numpy_says(case: str, golden: Golden, tmp_path: Path) -> None:
    make, wanted = CASES[case]
    func = func_of(make())
    verify(func, Stage.NEST)
    assert parse(show(func)) is func
    golden(show(func))
    for seed in range(2):
        inputs = arrays(seed)
        expected: Sequence[Array] = wanted(inputs["x"])
        for found, array in zip(interpret(func, inputs).values(), expected, strict=True):
            np.testing.assert_array_equal(found, array)
        if platform.machine() == "x86_64":
            compiled = run_compiled(tmp_path, func, inputs)
            for found, array in zip(compiled.values(), expected, strict=True):
                np.testing.assert_array_equal(found, array)


def test_stages_read_what_work_makes(tmp_path: Path) -> None:
    states = scan(
        "states",
        10,
        {"n": 4},
        init=lambda n: X[n, 0],
        update=lambda before, t, n: before(n) + X[n, t],
    )
    (made,) = states
    out = compute("out", {"n": 4}, lambda n: made[9, n] * 2, scope="dram")
    func = func_of(states, out)
    inputs = arrays()
    wanted = inputs["x"].sum(1) * 2
    np.testing.assert_array_equal(interpret(func, inputs)["out"], wanted)
    if platform.machine() == "x86_64":
        np.testing.assert_array_equal(run_compiled(tmp_path, func, inputs)["out"], wanted)


REFUSED = {
    "steps do not run at once": (sums, ("parallel", "sums_t"), "sums reduces over it"),
    "steps keep their order": (sums, ("vectorize", "sums_n"), ""),
    "neighbours keep theirs": (drift, ("vectorize", "drift_n"), "drift reduces over it"),
    "ties go to the first": (argmax, ("rfactor", "best", "best_k"), "not a sum or maximum"),
    "there are two writers": (sums, ("cache_write", "sums", "local"), "sums writes sums too"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_schedules_leave_the_order_alone(case: str) -> None:
    make, (primitive, *args), why = REFUSED[case]
    trace = Trace((Step(primitive, tuple(args)),))
    if not why:
        replay(trace, func_of(make()), SIM)
        return
    with pytest.raises(ScheduleError, match=why):
        replay(trace, func_of(make()), SIM)


def test_steps_in_two_loops_stay_in_order() -> None:
    trace = Trace((Step("split", ("best_k", 5)), Step("reorder", ("best_k_1", "best_k_0"))))
    with pytest.raises(ScheduleError, match="best depends on the order"):
        replay(trace, func_of(argmax()), SIM)


def copied(body: Stmt) -> Work:
    return extern("copied", [X], [Buffer("out", (4,), INT)], body)


OUT, OTHER, I = Buffer("out", (4,), INT), Buffer("other", (4,), INT), Var("i")  # noqa: E741

BAD: dict[str, tuple[Callable[[], Work], str]] = {
    "an input that is not declared": (
        lambda: copied(For(I, 4, Store(OUT, (I,), Load(OTHER, (I,))))),
        "extern copied reads other",
    ),
    "an output that is not declared": (
        lambda: copied(For(I, 4, Store(OTHER, (I,), X[I, 0]))),
        "extern copied writes other",
    ),
    "an output that is left alone": (
        lambda: extern("copied", [X], [OUT, OTHER], For(I, 4, Store(OUT, (I,), X[I, 0]))),
        "extern copied does not write other",
    ),
    "a variable of nobody": (
        lambda: copied(Store(OUT, (I,), X[0, 0])),
        "extern copied uses i",
    ),
    "an instruction": (lambda: copied(Synchronize()), "extern copied holds Synchronize"),
    "no steps": (
        lambda: scan("s", 0, {}, init=lambda: X[0, 0], update=lambda before, t: before()),
        "scan s has 0 steps",
    ),
    "another type": (
        lambda: scan("s", 2, {}, init=lambda: X[0, 0], update=lambda before, t: t),
        "scan s starts with int32 and goes on with int64",
    ),
    "two names, one value": (
        lambda: joint(["a", "b"], {"n": 4}, lambda n: (X[n, 0],)),
        "a, b: 1 value for 2 tensors",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case: str) -> None:
    make, why = BAD[case]
    with pytest.raises(ExpressionError) as caught:
        make()
    assert why in caught.value.what
    assert caught.value.hint


def test_an_operator_that_is_a_script_has_no_expressions() -> None:
    work = EXAMPLES["softmax"]
    with pytest.raises(TypeError, match="softmax is not made of tensor expressions alone"):
        expressions_of(work, [placeholder(spec) for spec in work.inputs])
