"""Conditions that become choices, and statements that become stages: pictures and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from kit.golden import Golden
from kit.kernels.nests import SIM
from kit.kernels.scripts import IN_LOCKSTEP, SCRIPTS, script_of
from tilefarm.errors import ScheduleError
from tilefarm.trace import Step, Trace

from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.printer import show
from compile_worker.ir.verify import Stage, verify
from compile_worker.schedule import replay
from compile_worker.schedule.places import blocks
from compile_worker.te import nest_of

LOST = """
def lost(x, out):
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i, k] = 0
        for k in range(x.shape[1]):
            if k + 1 < x.shape[1]:
                out[i, k + 1] = x[i, k]
"""
CARRIED = """
def carried(x, out):
    for i in range(x.shape[0]):
        a = x[i, 0] + 0.0
        for k in range(x.shape[1]):
            a = a * 0.5 + x[i, k]
            out[i, k] = a
"""
CROSSED = """
def crossed(x, out):
    t = buffer(float32, x.shape[1])
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            t[k] = x[i, k] * 2.0
        for k in range(x.shape[1]):
            out[i, k] = t[k] + 1.0
"""
LARGE = """
def large(x, out):
    for i in range(x.shape[0]):
        t = buffer(float32, 70000)
        for k in range(x.shape[1]):
            t[k] = x[i, k] * 2.0
        for k in range(x.shape[1]):
            out[i, k] = t[k] + 1.0
"""
BORDERED = """
def bordered(x, out):
    t = buffer(float32, x.shape[0])
    for i in range(x.shape[0]):
        t[i] = x[i] * 2.0
    for i in range(out.shape[0]):
        out[i] = t[i] if i < x.shape[0] else 0.0
"""
PARTLY = """
def partly(x, out):
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i, k] = 1.0
        for k in range(2):
            out[i, k] = out[i, k] + x[i, k]
"""


def func_of(text: str, *shape: int) -> Func:
    return nest_of(script_of(text, shape, x=shape), SIM)


def after(func: Func, *steps: tuple[str, str]) -> Func:
    made = replay(Trace(tuple(Step(name, (stage,)) for name, stage in steps)), func, SIM)
    verify(made, Stage.NEST)
    return made


def same(before: Func, func: Func) -> bool:
    rng = np.random.default_rng(0)
    inputs = {
        each.name: rng.standard_normal(each.shape).astype(np.float32) for each in before.params[:-1]
    }
    wanted, found = (interpret(each, inputs)["out"] for each in (before, func))
    return np.array_equal(wanted, found)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("rows, one after the other", [("distribute", "out")]),
        ("rows with two states", [("distribute", "out")]),
        ("rows with a condition", [("if_convert", "out"), ("distribute", "out")]),
        ("rows in their output", [("distribute", "out")]),
        ("means of products", [("distribute", "out")]),
        ("sums with a condition", [("if_convert", "out")]),
        ("branches", [("if_convert", "out")]),
    ],
)
def test_picture(name: str, steps: list[tuple[str, str]], golden: Golden) -> None:
    before = nest_of({**SCRIPTS, **IN_LOCKSTEP}[name], SIM)
    func = after(before, *steps)
    golden(show(func))
    assert same(before, func)


@pytest.mark.parametrize(
    ("text", "step", "why"),
    [
        (CARRIED, "if_convert", "it has no condition around stores alone"),
        (LOST, "if_convert", "its condition keeps a store within its buffer"),
        (CROSSED, "distribute", "it is one statement, or its statements need other iterations"),
        (LARGE, "distribute", "it is one statement, or its statements need other iterations"),
    ],
)
def test_what_cannot_be_done_is_refused(text: str, step: str, why: str) -> None:
    func = func_of(text, 6, 70_000) if text is LARGE else func_of(text, 4, 9)
    with pytest.raises(ScheduleError) as caught:
        after(func, (step, "out"))
    assert why in caught.value.what


def test_only_what_was_written_is_changed() -> None:
    func = nest_of(SCRIPTS["gemm"], SIM)
    for step in ("if_convert", "distribute"):
        with pytest.raises(ScheduleError, match="it is a sum"):
            after(func, (step, "out"))


def test_what_carries_a_value_on_stays_together() -> None:
    before = func_of(CARRIED, 4, 9)
    func = after(before, ("distribute", "out"))
    assert len(blocks(func.body)) == 2
    assert same(before, func)


def test_what_is_not_stored_over_stays_where_it_is() -> None:
    before = func_of(PARTLY, 4, 9)
    func = after(before, ("distribute", "out"))
    assert "before" not in show(func)
    assert same(before, func)


@pytest.mark.parametrize("size", [4, 7])
def test_a_stage_that_is_longer_or_shorter_than_what_it_reads_is_not_moved_there(size: int) -> None:
    """The border of 7 would never be done, and of 4 more than there is."""
    before = nest_of(script_of(BORDERED, (size,), x=(6,)), SIM)
    steps = Trace((Step("split", ("t_i", 2)), Step("reverse_compute_at", ("out", "t_i_0"))))
    with pytest.raises(ScheduleError, match="it does not read t element by element"):
        replay(steps, before, SIM)
    whole = nest_of(script_of(BORDERED, (6,), x=(6,)), SIM)
    assert same(whole, replay(steps, whole, SIM))
