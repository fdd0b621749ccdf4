"""Iterations side by side: pictures, refusals, and random scripts with what is left over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from kit.golden import Golden
from kit.kernels.nests import SIM
from kit.kernels.random_rows import row_scripts
from kit.kernels.scripts import HISTOGRAM, IN_LOCKSTEP, TURNED, script_of
from tilefarm.errors import ScheduleError
from tilefarm.trace import Step, Trace

from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.printer import show
from compile_worker.ir.verify import Stage, verify
from compile_worker.schedule import replay
from compile_worker.schedule.lockstep import WAYS
from compile_worker.te import nest_of


def after(func: Func, *steps: Step) -> Func:
    made = replay(Trace(steps), func, SIM)
    verify(made, Stage.SCHEDULED)
    return made


def same(before: Func, func: Func, seed: int = 0) -> bool:
    rng = np.random.default_rng(seed)
    inputs = {
        each.name: rng.standard_normal(each.shape).astype(np.float32) for each in before.params[:-1]
    }
    wanted, found = (interpret(each, inputs)["out"] for each in (before, func))
    return np.array_equal(wanted, found, equal_nan=True)


def lockstep(loop: str, lanes: int, way: str = "vectors") -> Step:
    return Step("lockstep", ("out", f"out_{loop}", lanes, way))


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("average", [lockstep("c", 64)]),
        ("recurrence", [lockstep("i", 3, "written out")]),
        ("moments", [lockstep("i", 8)]),
        ("place of the largest", [Step("if_convert", ("out",)), lockstep("i", 16)]),
        ("two nests", [lockstep("c", 37)]),
        ("resets", [lockstep("c", 8), Step("reorder", ("out_b", "out_c_0"))]),
        ("buffers of states", [lockstep("c", 37)]),
        ("buffers of states", [lockstep("c", 37, "written out")]),
    ],
)
def test_picture(name: str, steps: list[Step], golden: Golden) -> None:
    before = nest_of(IN_LOCKSTEP[name], SIM)
    func = after(before, *steps)
    golden(show(func))
    assert same(before, func)


@given(
    row_scripts(),
    st.sampled_from([(3, 17), (4, 8), (6, 5)]),
    st.integers(1, 6),
    st.sampled_from([*WAYS]),
    st.integers(0, 99),
)
def test_random_scripts_compute_the_same(
    text: str, shape: tuple[int, int], lanes: int, way: str, seed: int
) -> None:
    assume("x[" in text and "y[" in text)
    before = nest_of(script_of(text, shape, x=shape, y=shape), SIM)
    func = after(before, lockstep("i", min(lanes, shape[0]), way))
    assert same(before, func, seed), text


@pytest.mark.parametrize(
    ("name", "step", "why"),
    [
        ("average", lockstep("c", 0), "0 of 75 iterations cannot be side by side"),
        ("average", lockstep("c", 76), "76 of 75 iterations cannot be side by side"),
        ("average", lockstep("t", 4), "out_t is not around all of it"),
        ("average", lockstep("c", 4, "somehow"), "there is no way 'somehow'"),
        ("two nests", lockstep("t", 4), "iterations of out_t need one another"),
    ],
)
def test_refusals(name: str, step: Step, why: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        after(nest_of(IN_LOCKSTEP[name], SIM), step)
    assert why in str(refusal.value)


def test_what_other_steps_have_changed_is_refused() -> None:
    func = nest_of(IN_LOCKSTEP["average"], SIM)
    with pytest.raises(ScheduleError, match="other steps have changed it"):
        after(func, Step("parallel", ("out_c",)), lockstep("c", 4))
    with pytest.raises(ScheduleError, match="there already is a stage of this name"):
        after(func, lockstep("c", 10), Step("lockstep", ("out", "out_c_0", 2, "vectors")))


def test_a_loop_side_by_side_stays_inside() -> None:
    func = nest_of(script_of(TURNED, (6, 4), x=(4, 6)), SIM)
    made = after(func, lockstep("i", 4), Step("lockstep", ("out", "out_j", 2, "vectors")))
    assert "for out_j_1 in 2\n        vectorized out_i_1 in 4\n" in show(made)
    assert same(func, made)


def test_bins_that_any_element_may_change_are_refused() -> None:
    func = nest_of(script_of(HISTOGRAM, (8,), x=(40,)), SIM)
    with pytest.raises(ScheduleError, match="iterations of out_i need one another"):
        after(func, lockstep("i", 4))
