"""Whatever primitives accept, in whatever order, the result of a function stays the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.kernels.nests import EXAMPLES, SIM, convolutions, denses, inputs_of
from kit.kernels.traces import ARGUMENTS, Args, scheduled, started
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.verify import Stage, verify
from compile_worker.schedule import PRIMITIVES, Schedule, replay
from compile_worker.te import nest_of

from .random_stages import programs

LENGTH: Final = 8
EXPLORED: Final = 60
DEEPLY: Final = 1000

Inputs = Mapping[str, npt.NDArray[Any]]

GEMM: Final[tuple[tuple[str, Args], ...]] = (
    ("cache_read", ("weight", "wgt")),
    ("cache_read", ("data", "inp")),
    ("set_scope", ("dot", "acc")),
    ("reorder", ("dot_ci", "dot_b", "dot_o", "dot_i")),
)
"""What a dense layer needs before its innermost loops are a GEMM's."""


def works() -> st.SearchStrategy[Workload]:
    small = [EXAMPLES[name] for name in ("affine", "softmax", "max_pool2d", "add")]
    return st.one_of(convolutions(), st.sampled_from(small))


@st.composite
def beginnings(draw: st.DrawFn) -> tuple[Inputs, Schedule]:
    """Something to schedule: stages at random, an operator, or a layer half way to a GEMM."""
    match draw(st.integers(0, 3)):
        case 0:
            work = draw(works())
            return inputs_of(work), Schedule(nest_of(work, SIM), SIM)
        case 1:
            work = draw(denses())
            return inputs_of(work), started(nest_of(work, SIM), SIM, *GEMM)
        case _:
            program = draw(programs())
            return program.arrays(), Schedule(program.func, SIM)


def explore(accepted: Counter[str], examples: int, *, derandomize: bool) -> None:
    """Draw functions and steps; compare results, and replay the trace."""

    @settings(max_examples=examples, deadline=None, derandomize=derandomize, database=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        inputs, beginning = data.draw(beginnings())
        schedule = data.draw(_schedules(beginning, accepted))
        same_result(beginning.func, schedule.func, inputs)
        verify(schedule.func, Stage.SCHEDULED)
        steps = schedule.trace.steps[len(beginning.trace.steps) :]
        trace = Trace.from_json(Trace(steps).to_json())
        assert replay(trace, beginning.func, SIM) is schedule.func

    check()


@st.composite
def _schedules(draw: st.DrawFn, beginning: Schedule, accepted: Counter[str]) -> Schedule:
    return scheduled(draw, beginning, LENGTH, accepted)


def same_result(before: Func, after: Func, inputs: Inputs) -> None:
    wanted, found = interpret(before, inputs), interpret(after, inputs)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def test_result_stays_the_same() -> None:
    accepted: Counter[str] = Counter()
    explore(accepted, EXPLORED, derandomize=True)
    legal = accepted.total() - accepted["refused"]
    assert legal >= EXPLORED * 2, accepted
    assert legal >= accepted.total() * 0.4, accepted


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_result_stays_the_same_after_every_primitive() -> None:
    accepted: Counter[str] = Counter()
    explore(accepted, DEEPLY, derandomize=settings().derandomize)
    # Those of scripts are drawn where scripts are, in test_scripts_as_python.
    wanted = set(ARGUMENTS) - {"if_convert", "distribute"}
    assert {name for name in wanted if accepted[name] >= 5} == wanted, accepted


def test_every_primitive_is_drawn() -> None:
    # A pass of a user's changes nothing before lowering, where it has to be known.
    assert set(ARGUMENTS) == set(PRIMITIVES) - {"lower_with"}
